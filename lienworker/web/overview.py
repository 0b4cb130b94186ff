"""The overview: the state, the speed, and what is stuck."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from lienworker.db.clock import now_ms, rfc3339
from lienworker.queries import waiting
from lienworker.queries.health import judge
from lienworker.queries.lists import failures_by_reason
from lienworker.queries.outbox import lanes
from lienworker.queries.snapshot import facts_of
from lienworker.store.counts import by_minute, this_minute, values_by_minute
from lienworker.store.refusals import refusals, refusing_hosts
from lienworker.web import charts
from lienworker.web.pages import NotThereError, Page, Place, Question

#: Rows of each backlog table; the API has more.
_SHOWN = 15
_DAY = 24 * 60
#: Sites that refused us within a day.
_REFUSING = 10
#: A slope needs some time to be meaningful.
_SLOPE_MINUTES = 10


def overview(place: Place, _question: Question) -> Page:
    facts = facts_of(place.settings, place.folder)
    facts |= {
        "health": asdict(judge(place.settings, facts)),
        "mode": place.settings.mode,
        "lanes": lanes(),
        "failures": failures_by_reason(),
        "refusals": refusing_hosts(rfc3339(now_ms() - _DAY * 60_000), _REFUSING),
        "disk_full_seconds": _time_to_full(facts["disk_free_mb"], this_minute()),
        "backlog": backlog(),
        "charts": [asdict(chart) for chart in _charts(this_minute())],
    }
    return Page("overview.html", "Overview", facts)


def _charts(now: int) -> list[charts.Chart]:
    counts = by_minute("task", now - _DAY)
    return [
        charts.throughput(counts, now, 60, 1, "the last hour, by the minute"),
        charts.throughput(counts, now, 72, 20, "the last day, in steps of 20 minutes"),
    ]


def backlog() -> dict[str, Any]:
    """Return county sites (or lanes to the Gateway), and counties, by age."""
    found = waiting.backlog()
    for row in (*found["rows"], *found["counties"]):
        most = max(row["ages"]) or 1
        row["cells"] = [{"n": n, "heat": _heat(n, most, index)} for index, n in enumerate(row.pop("ages"))]
    heads = waiting.heads()
    return found | {"heads": heads, "columns": [(n, head, "n") for n, head in enumerate(heads)], "shown": _SHOWN}


def _heat(n: int, most: int, index: int) -> int:
    """Return the shade of a cell: 0 for nothing, 1 to 3 for young, up to 6 for what has waited long."""
    if not n:
        return 0
    amount = 1 + (n * 10 > most) + (n * 2 > most)
    return min(6, amount + (3 if index >= 4 else 0))


def _time_to_full(free_mb: int, now: int) -> float | None:
    """Return the time until the disk is full, by our own growth in the last hours; None where we do not grow.

    What others write and delete there says nothing about us, and swings.
    """
    noted = values_by_minute("data_mb", "", now - 6 * 60)
    if not noted:
        return None
    first, last = min(noted), max(noted)
    grown_mb, minutes = noted[last] - noted[first], last - first
    return free_mb / (grown_mb / minutes) * 60 if minutes >= _SLOPE_MINUTES and grown_mb > 0 else None


def refusals_of(_place: Place, question: Question) -> Page:
    """Return the last pages on which a site refused us, as text."""
    host, reason = question.text("host") or "", question.text("reason") or ""
    pages = refusals(host, reason)
    if not pages:
        raise NotThereError(f"No page of {host} is kept for {reason}.")
    return Page("refusals.html", f"{host} {reason}", {"host": host, "reason": reason, "pages": pages})
