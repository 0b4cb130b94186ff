"""Counties: how well each is scraped, from the rollups, and what its newest results hold."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from lienworker.store.database import all_rows, dict_rows

#: Newest tasks or results of a county that are looked at.
WINDOW = 2_000
#: Newest results whose fields are counted, against those right before them.
_NOW, _BEFORE = 100, 300


def counties(since_minute: int, limit: int = 500) -> list[dict[str, Any]]:
    """Platform and county with what ended lately and ever, those with most failures first."""
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    sql = (
        "SELECT key, sum(n), sum(CASE WHEN minute >= ? THEN n ELSE 0 END) FROM rollups WHERE name = 'county' GROUP BY 1"
    )
    for key, ever, lately in all_rows(sql, (since_minute,)):
        platform, state, rest = key.split("|", 2)
        county, status = rest.rsplit("|", 1)
        entry = found.setdefault((platform, state, county), {"ended": 0, "failed": 0, "ended_now": 0, "failed_now": 0})
        is_failure = status != "completed"
        entry["ended"] += ever
        entry["ended_now"] += lately
        entry["failed"] += ever * is_failure
        entry["failed_now"] += lately * is_failure
    rows = [{"platform": p, "state": s, "county": c, **entry} for (p, s, c), entry in found.items()]
    return sorted(rows, key=lambda row: (-row["failed_now"], -row["ended"]))[:limit]


def newest_url(platform: str, county: str) -> str | None:
    """A page of the county: its host says how it is treated."""
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
    """One task, with its page where it has one, of each kind of failure among the county's newest tasks."""
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


def fill_rates(platform: str, state: str, county: str) -> list[dict[str, Any]]:
    """The share of results that have each field: the newest hundred against those before them."""
    rows = all_rows(
        f"SELECT data FROM (SELECT rowid, * FROM results WHERE county = ? ORDER BY rowid DESC LIMIT {WINDOW})"
        " WHERE platform = ? AND coalesce(state, '') = ? ORDER BY rowid DESC LIMIT ?",
        (county, platform, state, _NOW + _BEFORE),
    )
    now, before = _filled(rows[:_NOW]), _filled(rows[_NOW:])
    n_now, n_before = len(rows[:_NOW]), len(rows[_NOW:])
    return [
        {
            "field": name,
            "now": now[name] / n_now,
            "before": before[name] / n_before if n_before else None,
        }
        for name in sorted(now.keys() | before.keys())
    ]


def _filled(rows: list[Any]) -> Counter[str]:
    counter: Counter[str] = Counter()
    for (data,) in rows:
        counter.update(name for name, value in json.loads(data).items() if value not in (None, "", [], {}))
    return counter


def median_ms(platform: str, county: str) -> int | None:
    """How long a page takes, of the newest results."""
    rows = all_rows(
        "SELECT p.fetch_ms + r.parse_duration_ms FROM (SELECT rowid, * FROM results WHERE county = ?"
        " ORDER BY rowid DESC LIMIT 50) r JOIN pages p ON p.task_id = r.task_id AND p.generation = r.generation"
        " WHERE r.platform = ? ORDER BY 1",
        (county, platform),
    )
    return int(rows[len(rows) // 2][0]) if rows else None
