"""Hosts as people see them: what waits for each, how often it is asked and on whose word, and what keeps it back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lienworker.db.clock import now_ms, rfc3339, to_ms
from lienworker.db.database import all_rows, dict_rows
from lienworker.hostnames import same_host, site_of
from lienworker.outbox.pacing import DELAYS, SITE_OF_H, booked_until, chosen_delay, open_at_most, seconds_of
from lienworker.outbox.pauses import paused_counties
from lienworker.queries.forecast.facts import facts_now
from lienworker.queries.forecast.model import SiteForecast, forecast
from lienworker.queries.forecast.words import clock, span_as_facts
from lienworker.settings import Settings

_HOSTS = f"""
SELECT h.host, coalesce((SELECT sum(b.waiting) FROM backlog b WHERE b.topic = 'fetch' AND b.host = h.host), 0)
    AS waiting, s.delay, s.robots_delay, s.operator_delay, s.over_robots, s.concurrency, s.operator_concurrency,
    s.flow_width, s.paused_at, max(h.cooling_until, s.cooling_until) AS cooling_until, h.failures_in_a_row,
    h.failing_since, h.reason, h.served, h.failed, s.requests
FROM hosts h JOIN hosts s ON s.host = {SITE_OF_H}
"""
_BUSY = f"{_HOSTS} WHERE EXISTS (SELECT 1 FROM backlog b WHERE b.topic = 'fetch' AND b.host = h.host AND b.waiting > 0)"
_ORDER = " ORDER BY h.failures_in_a_row DESC, waiting DESC, h.host LIMIT ?"


def hosts(settings: Settings, limit: int = 20, *, busy: bool = True) -> list[dict[str, Any]]:
    """Return hosts, those with problems first and then those with most work; with `busy` only those with work."""
    rows = dict_rows((_BUSY if busy else _HOSTS) + _ORDER, (limit,))
    ends = {site.facts.site: site for site in forecast(facts_now(settings)).sites}
    return [{**_shown(row, settings), "ends": _ends(ends, row["host"])} for row in rows]


def _ends(found: Mapping[str, SiteForecast], host: str) -> dict[str, str] | None:
    """Return when the last task of a host ends; None where nothing waits, or where that depends on a person."""
    site = found.get(host) or found.get(site_of(host))
    return span_as_facts(site.ends) if site else None


def host_named(name: str, settings: Settings) -> dict[str, Any] | None:
    """Return one host, however it is spelled; None where it is not known."""
    found = next(dict_rows(f"{_HOSTS} WHERE h.host = ?", (same_host(name),)), None)
    return _shown(found, settings) if found else None


def _shown(row: dict[str, Any], settings: Settings) -> dict[str, Any]:
    """Return a host with the delay and the number of open requests that apply, and whose word each is."""
    wishes = {name: row.pop(name) for name in DELAYS}
    delay, delay_from = chosen_delay(settings.host_delay, *wishes.values())
    most_open, most_open_from = _most_open(row, settings)
    cooling = max(0, booked_until(row.pop("cooling_until")) - now_ms()) // 1000
    return {
        **row,
        "delay": delay,
        "delay_from": delay_from,
        "said": _said(wishes, settings),
        "concurrency": most_open,
        "concurrency_from": most_open_from,
        "cooling_seconds": cooling,
        "reason": row["reason"] if cooling or row["failures_in_a_row"] else None,
        "paused_at": rfc3339(row["paused_at"]) if row["paused_at"] else None,
        "failing_since": rfc3339(row["failing_since"]) if row["failing_since"] else None,
        "over_robots": bool(wishes["over_robots"]),
    }


def _most_open(row: dict[str, Any], settings: Settings) -> tuple[int, str]:
    by_hand, by_platform = row.pop("operator_concurrency"), row.pop("concurrency")
    flows = open_at_most(row.pop("flow_width"), 0)
    words = ((by_hand, "operator"), (by_platform, "platform"), (settings.host_concurrency, "setting"))
    most, source = next((open_at_most(value, 0), source) for value, source in words if open_at_most(value, 0))
    return (flows, "sessions of its flow") if 0 < flows < most else (most, source)


def _said(wishes: dict[str, Any], settings: Settings) -> dict[str, float]:
    """Return what each of those who have a say asks for, s."""
    asked = {
        "operator": seconds_of(wishes["operator_delay"]),
        "platform": seconds_of(wishes["delay"]),
        "robots.txt": seconds_of(wishes["robots_delay"]),
        "setting": settings.host_delay,
    }
    return {who: seconds for who, seconds in asked.items() if seconds is not None}


def pace_in_words(host: dict[str, Any]) -> str:
    """Return how often a host is asked, and on whose word."""
    return f"{host['delay']:g} s ({host['delay_from']})"


def state_in_words(host: dict[str, Any]) -> str:
    """Return what keeps a host back, if anything does."""
    return "; ".join(_troubles(host))


def _troubles(host: dict[str, Any]) -> Iterator[str]:
    if host["paused_at"]:
        yield f"paused since {_clock(host['paused_at'])}"
    if host["failing_since"]:
        yield f"has not answered since {_clock(host['failing_since'])} ({host['reason'] or 'no answer'})"
    if host["cooling_seconds"]:
        yield f"left alone for {host['cooling_seconds']} s"


def _clock_of(ends: Mapping[str, str] | None) -> str | None:
    return clock(to_ms(ends["at"]), now_ms()) if ends else None


def _clock(moment: str) -> str:
    return f"{moment[:10]} {moment[11:16]} UTC"


#: The columns of a table of hosts on a terminal.
HEADS = ("host", "waiting", "ends", "delay", "open", "served", "failed", "state")


def in_table(rows: Sequence[dict[str, Any]]) -> list[list[Any]]:
    """Return the lines of a table of hosts, under `HEADS`."""
    counts = ("concurrency", "served", "failed")
    return [
        [
            row["host"],
            row["waiting"],
            _clock_of(row["ends"]),
            pace_in_words(row),
            *(row[name] for name in counts),
            state_in_words(row),
        ]
        for row in rows
    ]


def paused_by_hand() -> list[str]:
    """Return the sites and counties that an operator has paused."""
    sites = [host for (host,) in all_rows("SELECT host FROM hosts WHERE paused_at IS NOT NULL ORDER BY host")]
    return [*sites, *(f"{county} {state}" for state, county, _ in paused_counties())]
