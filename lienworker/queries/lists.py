"""Pages of long lists. No list takes longer than its time limit, however many rows there are.

A list walks its best index in the order in which rows came, newest first, a window of rows at a time, and keeps those
that match the rest of the filter. Where that has not filled a page within its time, the next page continues from there.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lienworker.db.database import all_rows, dict_rows, one_row
from lienworker.queries.filters import TaskFilter
from lienworker.store.results import result, with_data
from lienworker.store.tasks import local_task_id

#: Rows that a list looks at in one query.
WINDOW = 1_000
#: Time for one page of a list, s: another window is started only within it.
_SEARCH_SECONDS = 0.02
PAGE = 50
#: Above every rowid.
TOP = 1 << 62
_TASK_COLUMNS = (
    "rowid AS position, task_id, status, queue, priority, source, platform, state, county, parcel_id, url, reason,"
    " last_error, attempts, received_at, updated_at, completed_at"
)
#: Filters with an index, the most selective first.
_TASK_INDEXES = ("reason", "county", "platform", "status")
#: Indexes of what is rare. SQLite uses them only where the statement itself contains the value.
_RARE = {"queue": "urgent", "source": "cli"}
_RESULT_INDEXES = ("county", "platform")
#: Characters of a value that a list shows.
_SHOWN = 200
#: The plain values of a record, extracted by SQLite, so that we never hold the record itself. A list of parcels has
#: none, and is not even read.
_PLAIN_VALUES = f"""
CASE WHEN stays_here OR NOT json_valid(data) THEN '{{}}' ELSE (
    SELECT json_group_object(key, json(CASE type WHEN 'true' THEN 'true' WHEN 'false' THEN 'false'
        WHEN 'null' THEN 'null' WHEN 'text' THEN json_quote(substr(value, 1, {_SHOWN})) ELSE value END))
    FROM json_each(results.data) WHERE type NOT IN ('object', 'array')) END AS data
"""
_RESULT_COLUMNS = (
    "rowid AS position, task_id, generation, parcel_id, platform, state, county, json_path, html_path, raw_sha256,"
    " fetched_at, confirmed_at, parser_version, scraped_at, parse_duration_ms, synced, sync_attempts, last_error,"
    f" stays_here, doubts, {_PLAIN_VALUES}"
)
_IN_RESULTS = ("task_id", "parcel_id", "CASE WHEN stays_here THEN '' ELSE data END")


@dataclass(frozen=True, slots=True)
class Listing:
    """A page of a list. `more` is where the next page begins; `looked_at_all` is False when its time was up."""

    rows: list[dict[str, Any]]
    more: int | None
    looked_at_all: bool


def list_tasks(wanted: TaskFilter, below: int = TOP, limit: int = PAGE) -> Listing:
    walk = _Walk("tasks", _TASK_COLUMNS, ("task_id", "parcel_id", "url"))
    listing = walk.page(wanted, _TASK_INDEXES, below, limit)
    return _with_direct_hits(listing, wanted, below)


def list_results(wanted: TaskFilter, below: int = TOP, limit: int = PAGE) -> Listing:
    """Return results with the plain values of their `data`, each cut for the list: a record may have megabytes."""
    listing = _Walk("results", _RESULT_COLUMNS, _IN_RESULTS).page(wanted, _RESULT_INDEXES, below, limit)
    return Listing([with_data(row) for row in listing.rows], listing.more, listing.looked_at_all)


def each_result(wanted: TaskFilter) -> Iterator[dict[str, Any]]:
    """Yield every result that the list would show, for a download: complete, and one at a time."""
    below: int | None = TOP
    walk = _Walk("results", "rowid AS position, task_id", _IN_RESULTS)
    while below is not None:
        listing = walk.page(wanted, _RESULT_INDEXES, below, 500)
        yield from filter(None, (result(row["task_id"]) for row in listing.rows))
        below = listing.more


class _Walk:
    def __init__(self, table: str, columns: str, searched: tuple[str, ...]) -> None:
        self.table = table
        self.columns = columns
        self.searched = searched

    def page(self, wanted: TaskFilter, indexes: tuple[str, ...], below: int, limit: int) -> Listing:
        guide = self._guide(wanted, indexes)
        rest, more_values = self._rest(wanted, guide)
        deadline = time.monotonic() + _SEARCH_SECONDS
        rows: list[dict[str, Any]] = []
        while True:
            inner, values = self._window(guide, wanted, below)
            sql = f"SELECT {self.columns} FROM {self.table} WHERE rowid IN ({inner}){rest} ORDER BY rowid DESC LIMIT ?"
            rows += dict_rows(sql, (*values, *more_values, limit + 1 - len(rows)))
            if len(rows) > limit:
                return Listing(rows[:limit], rows[limit - 1]["position"], True)
            n, lowest = one_row(f"SELECT count(*), min(rowid) FROM ({inner})", values)
            if n < WINDOW:
                return Listing(rows, None, True)
            if time.monotonic() > deadline:
                return Listing(rows, lowest, False)
            below = lowest

    def _guide(self, wanted: TaskFilter, indexes: tuple[str, ...]) -> str | None:
        """Return the filter whose index is walked."""
        rare = next((name for name, value in _RARE.items() if getattr(wanted, name) == value), None)
        guide = next((name for name in indexes if getattr(wanted, name)), None)
        return rare if rare and self.table == "tasks" and guide not in {"reason", "county"} else guide

    def _window(self, guide: str | None, wanted: TaskFilter, below: int) -> tuple[str, list[Any]]:
        condition, values = "rowid < ?", [below]
        if guide in _RARE:
            condition += f" AND {guide} = '{_RARE[guide]}'"
        elif guide:
            condition, values = f"{condition} AND {guide} = ?", [below, getattr(wanted, guide)]
        if wanted.doubtful and self.table == "results":
            condition += " AND doubts IS NOT NULL"
        return f"SELECT rowid FROM {self.table} WHERE {condition} ORDER BY rowid DESC LIMIT {WINDOW}", values

    def _rest(self, wanted: TaskFilter, guide: str | None) -> tuple[str, list[Any]]:
        names = ("platform", "state", "county") + (
            ("status", "queue", "source", "reason") if self.table == "tasks" else ()
        )
        parts = [f" AND +{name} = ?" for name in names if name != guide and getattr(wanted, name)]
        values = [getattr(wanted, name) for name in names if name != guide and getattr(wanted, name)]
        if wanted.text:
            parts.append(" AND (" + " OR ".join(f"instr(lower({name}), ?)" for name in self.searched) + ")")
            values += [wanted.text.lower()] * len(self.searched)
        return "".join(parts), values


def _with_direct_hits(listing: Listing, wanted: TaskFilter, below: int) -> Listing:
    """Add the task whose id is searched for: it is found at once, wherever in the list it is."""
    if not wanted.text or below != TOP or wanted != TaskFilter(text=wanted.text):
        return listing
    text = wanted.text
    sql = (
        f"SELECT {_TASK_COLUMNS} FROM tasks WHERE task_id IN (?, ?) UNION SELECT {_TASK_COLUMNS} FROM tasks"
        " WHERE parcel_id IS NOT NULL AND parcel_id COLLATE NOCASE >= ? AND parcel_id COLLATE NOCASE < ? LIMIT ?"
    )
    hits = list(dict_rows(sql, (text, local_task_id(text), text, text + "\U0010ffff", PAGE)))
    known = {row["task_id"] for row in hits}
    rows = hits + [row for row in listing.rows if row["task_id"] not in known]
    return Listing(rows, listing.more, listing.looked_at_all)


def page_story(task_id: str) -> list[dict[str, Any]]:
    """Return every page that was fetched for a task, of each round the parcel's own first."""
    sql = (
        "SELECT generation, part, position, path, size, status, content_type, url, fetched_at, fetch_ms FROM pages"
        " WHERE task_id = ? ORDER BY generation DESC, position"
    )
    return list(dict_rows(sql, (task_id,)))


def pulse() -> tuple[Any, ...]:
    """Return a value that is cheap enough to read each second, and differs when there is something new to show."""
    return (
        tuple(all_rows("SELECT kind, topic, state, n FROM tally")),
        tuple(all_rows("SELECT endpoint, is_open, successes, words FROM breakers")),
        tuple(all_rows("SELECT lane, cause FROM pauses")),
        tuple(all_rows("SELECT holder FROM workers")),
        one_row("SELECT max(id) FROM audit"),
        tuple(all_rows("SELECT id, status, rows, added FROM imports ORDER BY id DESC LIMIT 3")),
    )


def data_version() -> int:
    """Return a number that changes when another connection has written; costs next to nothing."""
    return int(one_row("PRAGMA data_version")[0])


def failures_by_reason(limit: int = 12) -> list[dict[str, Any]]:
    """Return failed tasks by reason, each with its newest task and that one's error."""
    sql = (
        "SELECT f.reason, f.n, f.sample AS task_id, t.last_error AS sample, f.last_at FROM failed_tasks f"
        " LEFT JOIN tasks t ON t.task_id = f.sample WHERE f.n > 0 ORDER BY f.n DESC, f.reason LIMIT ?"
    )
    return list(dict_rows(sql, (limit,)))


def overdue_hosts(before: int) -> list[str]:
    """Return hosts with fetches that could have started before a time: due, not cooling, not waiting for their turn."""
    sql = (
        "SELECT DISTINCT b.host FROM backlog b LEFT JOIN hosts h ON h.host = b.host"
        " LEFT JOIN hosts s ON s.host = substr(b.host, 1, instr(b.host || ' ', ' ') - 1)"
        " WHERE b.topic IN ('fetch', 'scrape') AND b.waiting > 0 AND b.not_before <= ?"
        " AND coalesce(s.next_allowed_at, 0) <= ?"
        " AND max(coalesce(h.cooling_until, 0), coalesce(s.cooling_until, 0)) <= ?"
    )
    return [row[0] for row in all_rows(sql, (before, before, before))]
