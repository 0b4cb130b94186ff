"""The outbox for people: what is set aside, grouped, and rows page by page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from lienworker.db.database import all_rows, dict_rows, one_row
from lienworker.queries.lists import PAGE, TOP, Listing

_COLUMNS = (
    "o.id AS position, o.id, o.topic, o.state, o.reason, o.fingerprint, o.task_id, t.county, t.parcel_id, o.attempts,"
    " o.due_at, o.created_at, o.finished_at"
)
#: Rows that one page of a list looks at.
WINDOW = 3_000
_TOPICS = "('upload_raw', 'upload_result', 'report_failure')"
#: How many failed tries, or parked raw files, are searched for waiting rows. CROSS JOIN keeps SQLite to that order.
_LATEST = 50_000
_TRIED = f"""
SELECT o.state, o.topic, o.reason, coalesce(o.fingerprint, '') AS fingerprint, count(DISTINCT o.id) AS n,
    min(a.at) AS first_at, max(a.at) AS last_at, max(o.id) AS sample_id, min(o.due_at) AS due_at
FROM (SELECT outbox_id, at FROM attempts ORDER BY id DESC LIMIT {_LATEST}) a CROSS JOIN outbox o ON o.id = a.outbox_id
WHERE o.state = 'waiting' AND o.reason IS NOT NULL AND o.reason <> 'raw_parked' AND o.topic IN {_TOPICS}
GROUP BY 1, 2, 3, 4
"""
_BEHIND_RAW = f"""
SELECT o.state, o.topic, o.reason, '' AS fingerprint, count(*) AS n, min(raw.finished_at) AS first_at,
    max(raw.finished_at) AS last_at, max(o.id) AS sample_id, min(o.due_at) AS due_at
FROM (SELECT task_id, generation, finished_at FROM outbox WHERE state = 'parked' AND state IN ('held', 'parked')
    AND topic = 'upload_raw' LIMIT {_LATEST}) raw
CROSS JOIN outbox o ON o.task_id = raw.task_id AND o.topic = 'upload_result' AND o.generation = raw.generation
WHERE o.state = 'waiting' AND o.reason = 'raw_parked' GROUP BY 1, 2, 3
"""


def groups_aside() -> list[dict[str, Any]]:
    """Return parked and held rows grouped by error: count, first and last seen, a sample."""
    groups = list(dict_rows("SELECT * FROM set_aside WHERE n > 0 ORDER BY state DESC, n DESC LIMIT 200"))
    return [_with_sample(group) for group in groups]


def groups_waiting() -> list[dict[str, Any]]:
    """Return uploads that failed and wait for another try, grouped the same way, from the latest failed tries.

    No index has the reasons of a million waiting rows, so the tries lead to them, and parked files to their results.
    """
    groups = [*dict_rows(_TRIED), *dict_rows(_BEHIND_RAW)]
    return [_with_sample(group) for group in sorted(groups, key=lambda group: -int(group["n"]))]


def _with_sample(group: dict[str, Any]) -> dict[str, Any]:
    sql = "SELECT error FROM attempts WHERE task_id = (SELECT task_id FROM outbox WHERE id = ?) AND outbox_id = ?"
    sample = one_row(sql + " ORDER BY id DESC LIMIT 1", (group["sample_id"], group["sample_id"]))
    return {**group, "sample": sample[0] if sample else None}


def lanes() -> list[dict[str, Any]]:
    """Return rows by topic and state, from the tallies."""
    found: dict[str, dict[str, int]] = {}
    for topic, state, n in all_rows("SELECT topic, state, n FROM tally WHERE kind = 'outbox' AND n > 0"):
        found.setdefault(topic, {})[state] = n
    order = ("fetch", "scrape", "upload_raw", "upload_result", "report_failure")
    return [{"topic": topic, "states": found.get(topic, {})} for topic in order]


def list_rows(wanted: dict[str, str], below: int = TOP, limit: int = PAGE) -> Listing:
    """Return rows to be sent to the Gateway, newest first; `wanted` has state, topic, reason, fingerprint."""
    if wanted.get("state") in {"held", "parked"}:
        return _set_aside(wanted, below, limit)
    inner, values = _window(wanted.get("state"), wanted.get("topic"), below)
    parts = [f" AND o.{name} = ?" for name in ("state", "topic", "reason", "fingerprint") if wanted.get(name)]
    more = [wanted[name] for name in ("state", "topic", "reason", "fingerprint") if wanted.get(name)]
    sql = (
        f"SELECT {_COLUMNS} FROM outbox o JOIN tasks t ON t.task_id = o.task_id WHERE o.id IN ({inner})"
        f" AND o.topic IN {_TOPICS}{''.join(parts)} ORDER BY o.id DESC LIMIT ?"
    )
    rows = list(dict_rows(sql, (*values, *more, limit + 1)))
    if len(rows) > limit:
        return Listing(rows[:limit], rows[limit - 1]["position"], True)
    n, lowest = one_row(f"SELECT count(*), min(id) FROM ({inner})", values)
    return Listing(rows, lowest if n >= WINDOW else None, n < WINDOW)


def _window(state: str | None, topic: str | None, below: int) -> tuple[str, list[Any]]:
    if state == "leased":
        return f"SELECT id FROM outbox WHERE state = 'leased' AND id < ? ORDER BY id DESC LIMIT {WINDOW}", [below]
    return f"SELECT id FROM outbox WHERE id < ? ORDER BY id DESC LIMIT {WINDOW}", [below]


def _set_aside(wanted: dict[str, str], below: int, limit: int) -> Listing:
    """Return a page of rows set aside, read group by group, as the index has them; the newest of all groups first."""
    names = ("state", "topic", "reason", "fingerprint")
    sql = "SELECT DISTINCT state, topic, reason FROM set_aside WHERE n > 0"
    chosen = [name for name in names if wanted.get(name)]
    sql += "".join(f" AND {name} = ?" for name in chosen)
    rows: list[dict[str, Any]] = []
    lowest, is_cut = TOP, False
    for state, topic, reason in all_rows(sql, [wanted[name] for name in chosen]):
        found, cut_at = _of_group(state, topic, reason, wanted.get("fingerprint"), below, limit)
        rows += found
        if cut_at is not None:
            lowest, is_cut = (cut_at if not is_cut else max(lowest, cut_at)), True
    rows.sort(key=lambda row: -int(row["position"]))
    if len(rows) > limit:
        return Listing(rows[:limit], rows[limit - 1]["position"], True)
    return Listing(rows, lowest if is_cut else None, not is_cut)


def _of_group(
    state: str, topic: str, reason: str, fingerprint: str | None, below: int, limit: int
) -> tuple[list[dict[str, Any]], int | None]:
    inner = (
        "SELECT id FROM outbox WHERE state = ? AND state IN ('held', 'parked') AND topic = ? AND reason IS ?"
        f" AND id < ? ORDER BY id DESC LIMIT {WINDOW}"
    )
    values = (state, topic, reason or None, below)
    sql = (
        f"SELECT {_COLUMNS} FROM outbox o JOIN tasks t ON t.task_id = o.task_id WHERE o.id IN ({inner})"
        " AND (? IS NULL OR o.fingerprint = ?) ORDER BY o.id DESC LIMIT ?"
    )
    rows = list(dict_rows(sql, (*values, fingerprint, fingerprint, limit + 1)))
    if len(rows) > limit:
        return rows, None
    n, lowest = one_row(f"SELECT count(*), min(id) FROM ({inner})", values)
    return rows, lowest if n >= WINDOW else None


def count_aside(wanted: dict[str, str], but_not: Sequence[str] = ()) -> int:
    """Return how many parked or held uploads match a filter, from the groups: immediate, even for a million."""
    names = [name for name in ("state", "topic", "reason", "fingerprint") if wanted.get(name)]
    sql = f"SELECT coalesce(sum(n), 0) FROM set_aside WHERE topic IN {_TOPICS}"
    sql += " AND coalesce(reason, '') NOT IN (SELECT value FROM json_each(?))"
    sql += "".join(f" AND {name} = ?" for name in names)
    return int(one_row(sql, [json.dumps(list(but_not)), *(wanted[name] for name in names)])[0])


def uploads_held() -> dict[str, int]:
    """Return the held uploads by reason."""
    sql = f"SELECT reason, sum(n) FROM set_aside WHERE state = 'held' AND topic IN {_TOPICS} AND n > 0 GROUP BY 1"
    return dict(all_rows(sql))
