"""Counties: how well each is scraped, from the rollups, and what its failures look like."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from lienworker.db.clock import rfc3339
from lienworker.db.database import all_rows, dict_rows
from lienworker.outbox.pauses import paused_counties
from lienworker.queries.chance import at_least, has_dropped
from lienworker.queries.waiting import places_waiting
from lienworker.steps.drift import rates
from lienworker.store.counts import this_minute
from lienworker.store.history import History, Place, history_of, paused_places
from lienworker.store.pages import PAGE

#: How many of a county's newest tasks or results are looked at.
WINDOW = 2_000
_COUNTS = ("ended", "failed", "ended_now", "failed_now", "waiting")
#: A county as it is listed: platform, state, name.
Key = tuple[str, str, str]
#: Tasks that ended last, and of each county the newest of them: what a county does now.
_LAST_ENDED, _LAST_OF_COUNTY = 2_000, 100
_DAY_MS = 86_400_000
#: Counties that failed since yesterday whose own tasks are looked at, because none of them ended just now.
_MOST_SUSPECTS, _SUSPECT = 5, 0.1
#: What a person or a deadline ended says nothing about the county.
_NOT_ITS_FAULT = ("cancelled", "expired")


def counties(since_minute: int, limit: int = 500) -> list[dict[str, Any]]:
    """Return each county with what ended lately, what ended ever and what waits; those with most failures first.

    A county of which nothing has ended yet is listed as soon as something waits for it.
    """
    found: dict[Key, dict[str, Any]] = {}
    sql = (
        "SELECT key, sum(n), sum(CASE WHEN minute >= ? THEN n ELSE 0 END) FROM rollups WHERE name = 'county' GROUP BY 1"
    )
    for key, ever, lately in all_rows(sql, (since_minute,)):
        platform, state, rest = key.split("|", 2)
        county, status = rest.rsplit("|", 1)
        entry = found.setdefault((platform, state, county), _nothing_yet())
        is_failure = status != "completed"
        entry["ended"] += ever
        entry["ended_now"] += lately
        entry["failed"] += ever * is_failure
        entry["failed_now"] += lately * is_failure
    for place, (n, since) in places_waiting().items():
        found.setdefault(place, _nothing_yet()).update(waiting=n, oldest_minute=since)
    for drifting in paused_places():
        place = (drifting["platform"], drifting["state"], _named(drifting["county"]))
        found.setdefault(place, _nothing_yet())["drift"] = drifting["words"]
    for state, county, paused_at in paused_counties():
        here = [key for key in found if (key[1].lower(), key[2].lower()) == (state.lower(), county.lower())]
        for place in here or [("", state, county)]:
            found.setdefault(place, _nothing_yet())["paused"] = paused_at
    rows = joined([{"platform": p, "state": s, "county": c, **entry} for (p, s, c), entry in found.items()], _COUNTS)
    return sorted(rows, key=_trouble_first)[:limit]


def _trouble_first(row: dict[str, Any]) -> tuple[bool, int, int, int]:
    return not (row["drift"] or row["paused"]), -row["failed_now"], -row["ended"], -row["waiting"]


def _nothing_yet() -> dict[str, Any]:
    return {**dict.fromkeys(_COUNTS, 0), "oldest_minute": None, "drift": None, "paused": None}


def joined(rows: list[dict[str, Any]], counts: Sequence[str]) -> list[dict[str, Any]]:
    """Count tasks that named no platform, and whose page nobody has read, with the one platform of their county."""
    named: dict[tuple[Any, Any], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["platform"]:
            named[row["state"], row["county"]].append(row)
    kept = []
    for row in rows:
        others = named[row["state"], row["county"]]
        if row["platform"] or len(others) != 1 or not row["county"] or row.get("drift") or row.get("paused"):
            kept.append(row)
            continue
        for name in counts:
            others[0][name] += row[name]
        since = [one["oldest_minute"] for one in (others[0], row) if one.get("oldest_minute")]
        others[0].update({"oldest_minute": min(since)} if since else {})
    return kept


def _named(county: str) -> str:
    """Return the county's name; the drift guard names an unnamed county by its host, in brackets."""
    return "" if county.startswith("(") else county


def newest_url(platform: str, county: str) -> str | None:
    """Return the address of one of the county's pages: its host says how it is treated."""
    sql = (
        f"SELECT url FROM (SELECT rowid, url, platform FROM tasks WHERE county = ? ORDER BY rowid DESC LIMIT {WINDOW})"
        " WHERE platform IS ? OR ? = '' LIMIT 1"
    )
    rows = all_rows(sql, (county, platform or None, platform))
    return rows[0][0] if rows else None


def samples_of_failures(platform: str, county: str) -> list[dict[str, Any]]:
    """Return one task, with its page if it has one, of each kind of failure among the county's newest tasks."""
    sql = (
        "SELECT reason, count(*) AS n, max(task_id) AS task_id, max(last_error) AS sample"
        f" FROM (SELECT rowid, * FROM tasks WHERE county = ? ORDER BY rowid DESC LIMIT {WINDOW})"
        " WHERE status = 'failed' AND (platform IS ? OR ? = '') GROUP BY reason ORDER BY 2 DESC LIMIT 20"
    )
    groups = list(dict_rows(sql, (county, platform or None, platform)))
    for group in groups:
        found = all_rows("SELECT 1 FROM pages WHERE task_id = ? LIMIT 1", (group["task_id"],))
        group["has_page"] = bool(found)
    return groups


def median_ms(platform: str, county: str) -> int | None:
    """Return the median time for a page, over the newest results."""
    rows = all_rows(
        "SELECT p.fetch_ms + r.parse_duration_ms FROM (SELECT rowid, * FROM results WHERE county = ?"
        " ORDER BY rowid DESC LIMIT 50) r JOIN pages p ON p.task_id = r.task_id AND p.generation = r.generation"
        " AND p.part = ? WHERE r.platform = ? ORDER BY 1",
        (county, PAGE, platform),
    )
    return int(rows[len(rows) // 2][0]) if rows else None


def served_by_host() -> list[tuple[str, int, int]]:
    """Return each host with how often it served us, and how often not."""
    return all_rows("SELECT host, served, failed FROM hosts WHERE served > 0 OR failed > 0")


# Counties in trouble, for the verdict: what ended last, by county, and fields that pages have lost.


@dataclass(slots=True)
class _Ended:
    """What the newest tasks of a county came to."""

    ended: int = 0
    failed: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    def take(self, status: str, reason: str | None, n: int = 1) -> None:
        if status not in {"completed", "failed"} or reason in _NOT_ITS_FAULT:
            return
        self.ended += n
        if status == "failed":
            self.failed += n
            self.reasons[reason or "unknown"] += n

    def shown(self, place: Key) -> dict[str, Any]:
        most = self.reasons.most_common(1)
        named = dict(zip(("platform", "state", "county"), place, strict=True))
        return {**named, "ended": self.ended, "failed": self.failed, "reason": most[0][0] if most else None}


def failing_counties(now_ms: int) -> list[dict[str, Any]]:
    """Return counties with failures of the last day: of how many newest pages, and for which reason most."""
    lately = _ended_lately(now_ms)
    for place in _suspects(lately):
        lately[place] = _newest_of(place)
    failing = [ended.shown(place) for place, ended in lately.items() if ended.failed]
    return sorted(failing, key=lambda row: -int(row["failed"]))


def _ended_lately(now_ms: int) -> dict[Key, _Ended]:
    """Return what the last tasks that ended came to, by county, and no more than the newest of each."""
    sql = (
        "SELECT coalesce(platform, ''), coalesce(state, ''), coalesce(county, ''), status, reason FROM tasks"
        " INDEXED BY tasks_by_end WHERE completed_at > ? ORDER BY completed_at DESC LIMIT ?"
    )
    found: dict[Key, _Ended] = {}
    for platform, state, county, status, reason in all_rows(sql, (rfc3339(now_ms - _DAY_MS), _LAST_ENDED)):
        ended = found.setdefault((platform, state, county), _Ended())
        if ended.ended < _LAST_OF_COUNTY:
            ended.take(status, reason)
    return found


def _suspects(seen: dict[Key, _Ended]) -> list[Key]:
    """Return counties whose days say that they fail, though none of their tasks is among the last."""
    yesterday = this_minute() // 1440 * 1440 - 1440
    days: dict[Key, list[int]] = {}
    sql = "SELECT key, sum(n) FROM rollups WHERE name = 'county' AND minute >= ? GROUP BY key"
    for key, n in all_rows(sql, (yesterday,)):
        platform, state, rest = key.split("|", 2)
        county, status = rest.rsplit("|", 1)
        counts = days.setdefault((platform, state, county), [0, 0])
        counts[0] += n * (status == "failed")
        counts[1] += n
    failing = [
        (failed, place) for place, (failed, n) in days.items() if at_least(failed, n) > 0.1 and place not in seen
    ]
    return [place for _, place in sorted(failing, reverse=True)[:_MOST_SUSPECTS]]


def _newest_of(place: Key) -> _Ended:
    """Return what the county's newest tasks are now: those that were retried since have another outcome."""
    platform, state, county = place
    sql = (
        "SELECT status, reason, count(*) FROM"
        f" (SELECT status, reason, platform, state FROM tasks WHERE county = ? ORDER BY rowid DESC LIMIT {WINDOW})"
        " WHERE coalesce(platform, '') = ? AND coalesce(state, '') = ? GROUP BY 1, 2"
    )
    ended = _Ended()
    for status, reason, n in all_rows(sql, (county, platform, state)):
        ended.take(status, reason, n)
    return ended


def field_rates(history: History) -> list[dict[str, Any]]:
    """Return the share of the newest pages that have each field beside their past, and whether it fell, surely."""
    found = rates(history)
    for rate in found:
        before = (history.counts.get(rate["field"], 0), history.pages)
        now = (round((rate["now"] or 0.0) * len(history.recent)), len(history.recent))
        rate["fell"] = has_dropped(before, now)
    return found


def dropped_fields(now_ms: int) -> list[dict[str, Any]]:
    """Return the fields that fell in counties whose pages were read in the last day and are not held already."""
    dropped = []
    for place in _ended_lately(now_ms):
        platform, state, county = place
        history = history_of(Place(platform, state, county, "")) if county else History()
        if history.paused_at is None:
            named = dict(zip(("platform", "state", "county"), place, strict=True))
            dropped += [{**named, **rate} for rate in field_rates(history) if rate["fell"]]
    return dropped
