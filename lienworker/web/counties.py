"""Counties: how well each is scraped, how politely, and what its failures look like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lienworker.hostnames import host_of
from lienworker.queries import counties as store
from lienworker.queries.chance import at_least
from lienworker.queries.forecast.facts import forecast_of_county
from lienworker.queries.forecast.words import as_facts
from lienworker.queries.health import FAILS, TROUBLED
from lienworker.queries.hosts import host_named, pace_in_words, state_in_words
from lienworker.store.counts import this_minute
from lienworker.store.history import History, history_of
from lienworker.store.history import Place as CountyPlace
from lienworker.web.pages import NotThereError, Page, Place, Question
from lienworker.web.results import HAS_EXCEL

_LATELY = 24 * 60
#: How many counties' hosts are looked up for the list.
_SHOWN = 100
#: How the list can be sorted, besides by trouble: in words, and by what.
ORDERS: dict[str, tuple[str, Callable[[dict[str, Any]], Any]]] = {
    "name": ("by name", lambda row: (row["county"].lower(), row["state"], row["platform"])),
    "waiting": ("most waiting first", lambda row: -row["waiting"]),
    "ended": ("most ended first", lambda row: -row["ended"]),
    "failed": ("most failed ever first", lambda row: -row["failed"]),
}


def counties(place: Place, question: Question) -> Page:
    text = (question.text("text") or "").lower()
    rows = store.counties(this_minute() // 1440 * 1440 - _LATELY, limit=1_000_000)
    rows = [row for row in rows if text in f"{row['platform']} {row['state']} {row['county']}".lower()]
    sort = question.text("sort")
    if sort in ORDERS:
        rows.sort(key=ORDERS[sort][1])
    for row in rows[:_SHOWN]:
        row |= _success(row) | _host(place, row["platform"], row["county"])
        row["median_ms"] = store.median_ms(row["platform"], row["county"])
        row["fell"] = [rate for rate in store.field_rates(_history(row)) if rate["fell"]]
    orders = [(name, words) for name, (words, _) in ORDERS.items()]
    return Page(
        "counties.html",
        "Counties",
        {"rows": rows[:_SHOWN], "n": len(rows), "text": text, "sort": sort, "orders": orders},
    )


def county(place: Place, question: Question) -> Page:
    """Return one county, its fields compared with their own past, and a task of each kind of failure."""
    platform, state, name = (question.text(key) or "" for key in ("platform", "state", "county"))
    every = store.counties(this_minute() // 1440 * 1440 - _LATELY, limit=1_000_000)
    found = [row for row in every if (row["platform"], row["state"], row["county"]) == (platform, state, name)]
    if not found:
        raise NotThereError(f"There is no task of {platform} {state} {name}.")
    row = found[0] | _success(found[0]) | _host(place, platform, name)
    history = _history(row)
    facts = {
        "row": row,
        "median_ms": store.median_ms(platform, name),
        "fields": store.field_rates(history),
        "pages": {"now": len(history.recent), "before": history.pages},
        "sample_task": history.sample_task,
        "has_excel": HAS_EXCEL,
        "failures": store.samples_of_failures(platform, name),
        "forecast": as_facts(forecast_of_county(place.settings, platform, state, name)),
    }
    return Page("county.html", f"{name or 'No county'} ({platform or 'no platform'})", facts)


def _history(row: dict[str, Any]) -> History:
    """Return the drift guard's history of a county, which names an unnamed county by its host."""
    return history_of(CountyPlace(row["platform"], row["state"], row["county"] or None, row["host"] or ""))


def _success(row: dict[str, Any]) -> dict[str, Any]:
    def rate(ended: int, failed: int) -> float | None:
        return (ended - failed) / ended if ended else None

    fails = at_least(row["failed_now"], row["ended_now"])
    return {
        "success": rate(row["ended"], row["failed"]),
        "success_now": rate(row["ended_now"], row["failed_now"]),
        "trouble": "bad" if fails > FAILS else "warn" if fails > TROUBLED else "no",
    }


def _host(place: Place, platform: str, county: str) -> dict[str, Any]:
    """Return how the county's site is treated now."""
    url = store.newest_url(platform, county)
    facts = host_named(host_of(url), place.settings) if url else None
    if facts is None:
        return {"host": None, "pace": None, "host_state": ""}
    return {"host": facts["host"], "pace": pace_in_words(facts), "host_state": state_in_words(facts)}
