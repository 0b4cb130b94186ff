"""Counties: how well each is scraped, from the rollups, and what its failures look like."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from lienworker.db.database import all_rows, dict_rows
from lienworker.queries.waiting import places_waiting
from lienworker.store.history import paused_places
from lienworker.store.pages import PAGE

#: How many of a county's newest tasks or results are looked at.
WINDOW = 2_000
_COUNTS = ("ended", "failed", "ended_now", "failed_now", "waiting")
#: A county as it is listed: platform, state, name.
Key = tuple[str, str, str]


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
    rows = joined([{"platform": p, "state": s, "county": c, **entry} for (p, s, c), entry in found.items()], _COUNTS)
    return sorted(rows, key=lambda row: (not row["drift"], -row["failed_now"], -row["ended"], -row["waiting"]))[:limit]


def _nothing_yet() -> dict[str, Any]:
    return {**dict.fromkeys(_COUNTS, 0), "oldest_minute": None, "drift": None}


def joined(rows: list[dict[str, Any]], counts: Sequence[str]) -> list[dict[str, Any]]:
    """Count tasks that named no platform, and whose page nobody has read, with the one platform of their county."""
    named: dict[tuple[Any, Any], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["platform"]:
            named[row["state"], row["county"]].append(row)
    kept = []
    for row in rows:
        others = named[row["state"], row["county"]]
        if row["platform"] or len(others) != 1 or not row["county"] or row.get("drift"):
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


def host_facts(host: str) -> dict[str, Any] | None:
    sql = (
        "SELECT host, delay, robots_delay, concurrency, next_allowed_at, cooling_until, failures_in_a_row, reason"
        " FROM hosts WHERE host = ?"
    )
    return next(dict_rows(sql, (host,)), None)


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
