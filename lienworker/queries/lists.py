"""Pages of long lists. No list takes longer than its time limit, however many rows there are.

A list walks its best index in the order in which rows came, newest first, a window of rows at a time, and keeps those
that match the rest of the filter. Where that has not filled a page within its time, the next page continues from there.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from lienworker.db.database import all_rows, dict_rows, one_row
from lienworker.queries.filters import TaskFilter
from lienworker.store.results import result, with_data
from lienworker.store.tasks import local_task_id, without_secrets

#: Rows that a list looks at in one query.
WINDOW = 1_000
#: The same where nobody waits for a page: a search that finds nothing looks at everything.
_LARGEST_WINDOW = 64_000
#: Time for one page of a list, s: another window is started only within it.
_SEARCH_SECONDS = 0.02
PAGE = 50
#: Above every rowid.
TOP = 1 << 62
_TASK_COLUMNS = (
    "rowid AS position, task_id, status, queue, priority, source, platform, state, county, parcel_id, url, reason,"
    " last_error, attempts, received_at, updated_at, completed_at"
)
#: Indexes of what is rare. SQLite uses them only where the statement itself contains the value.
_RARE = {"queue": "urgent", "source": "cli"}
#: Tasks of an import whose results are looked up one by one.
_SMALL_IMPORT = 20_000
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


@dataclass(frozen=True, slots=True)
class Listing:
    """A page of a list. `more` is where the next page begins; `looked_at_all` is False when its time was up."""

    rows: list[dict[str, Any]]
    more: int | None
    looked_at_all: bool


def list_tasks(wanted: TaskFilter, below: int = TOP, limit: int = PAGE, *, oldest_first: bool = False) -> Listing:
    """Return a page of tasks; with `oldest_first`, `below` is the rowid behind which it begins."""
    start = None if below == TOP else below
    listing = _Walk(_TASKS, _TASK_COLUMNS, wanted, oldest_first).page(start, limit)
    return _with_direct_hits(listing, wanted, below)


def list_results(wanted: TaskFilter, below: int = TOP, limit: int = PAGE, *, oldest_first: bool = False) -> Listing:
    """Results with the plain values of their `data`, each cut to what a list can show: a record may have megabytes."""
    start = None if below == TOP else below
    listing = _Walk(_RESULTS, _RESULT_COLUMNS, wanted, oldest_first).page(start, limit)
    return Listing([with_data(row) for row in listing.rows], listing.more, listing.looked_at_all)


def each_task(wanted: TaskFilter, *, oldest_first: bool = False) -> Iterator[dict[str, Any]]:
    """Every task that the list would show, as people may see it, one at a time."""
    for row in _Walk(_TASKS, "rowid AS position, *", wanted, oldest_first).each():
        del row["position"]
        yield without_secrets(row)


def each_result(wanted: TaskFilter, *, oldest_first: bool = False) -> Iterator[dict[str, Any]]:
    """Every result that the list would show, for a download: whole, and one at a time."""
    for row in _Walk(_RESULTS, "rowid AS position, task_id", wanted, oldest_first).each():
        if found := result(row["task_id"]):
            yield found


def each_result_in_short(wanted: TaskFilter, *, oldest_first: bool = False) -> Iterator[dict[str, Any]]:
    """The same with the plain values of its `data` only."""
    return map(with_data, _Walk(_RESULTS, _RESULT_COLUMNS, wanted, oldest_first).each())


def count_tasks(wanted: TaskFilter) -> int:
    return _Walk(_TASKS, "", wanted).count()


def count_results(wanted: TaskFilter) -> int:
    return _Walk(_RESULTS, "", wanted).count()


def task_ids(wanted: TaskFilter, statuses: Sequence[str]) -> list[str]:
    """Return the ids of all tasks that fit and have one of these statuses, as they came."""
    condition, values = _Walk(_TASKS, "", wanted).condition()
    sql = f"SELECT task_id FROM tasks WHERE {condition} AND status IN (SELECT value FROM json_each(?)) ORDER BY rowid"
    return [row[0] for row in all_rows(sql, (*values, json.dumps(list(statuses))))]


def ids_with_status(ids: Sequence[str], statuses: Sequence[str]) -> list[str]:
    """Return those of the given tasks that have one of these statuses."""
    sql = (
        "SELECT task_id FROM tasks WHERE task_id IN (SELECT value FROM json_each(?))"
        " AND status IN (SELECT value FROM json_each(?)) ORDER BY rowid"
    )
    return [row[0] for row in all_rows(sql, (json.dumps(list(ids)), json.dumps(list(statuses))))]


@dataclass(frozen=True, slots=True)
class _Table:
    """Where a list looks: the filters with an index (the most telling first), and what a text is searched in."""

    name: str
    indexes: tuple[str, ...]
    searched: tuple[str, ...]
    #: What each filter means here; a question mark is its value.
    meanings: Mapping[str, str]


_PLACE = {
    "platform": "+platform = ?",
    "state": "+state = ? COLLATE NOCASE",
    "county": "+county = ? COLLATE NOCASE",
}
_OF_ITS_TASK = "(SELECT {} FROM tasks t WHERE t.task_id = results.task_id) = ?"
_TASKS = _Table(
    "tasks",
    ("reason", "county", "platform", "status"),
    ("task_id", "parcel_id", "url"),
    _PLACE
    | {name: f"+{name} = ?" for name in ("status", "queue", "source", "reason", "import_id")}
    | {"since": "+received_at >= ?"},
)
_RESULTS = _Table(
    "results",
    ("county", "platform"),
    ("task_id", "parcel_id", "CASE WHEN stays_here THEN '' ELSE data END"),
    _PLACE
    | {name: _OF_ITS_TASK.format(name) for name in ("queue", "import_id", "source")}
    | {"since": "+scraped_at >= ?"},
)


class _Walk:
    """One way through a table, window by window, newest first or oldest first."""

    def __init__(self, table: _Table, columns: str, wanted: TaskFilter, oldest_first: bool = False) -> None:
        self.table = table.name
        self.columns = columns
        self._meanings = table.meanings
        self._searched = table.searched
        self._wanted, is_one_county = _as_spelled(table.name, wanted)
        self._guide = self._choose(table.indexes if is_one_county else tuple(set(table.indexes) - {"county"}))
        self._low, self._high = _bounds(table.name, wanted)
        self._oldest_first = oldest_first

    def each(self) -> Iterator[dict[str, Any]]:
        """All rows, one at a time; the longer nothing is found, the larger are the windows that are looked through."""
        start: int | None = None
        window = WINDOW
        while True:
            listing = self.page(start, 500, window)
            yield from listing.rows
            start = listing.more
            if start is None:
                return
            window = WINDOW if listing.rows else min(4 * window, _LARGEST_WINDOW)

    def page(self, start: int | None, limit: int, window: int = WINDOW) -> Listing:
        """Rows behind `start`, the rowid where the page before ended."""
        where, values_of_rest = self._rest(self._guide)
        order = "rowid" if self._oldest_first else "rowid DESC"
        deadline = time.monotonic() + _SEARCH_SECONDS
        rows: list[dict[str, Any]] = []
        while True:
            end = self._end_of_window(start, order, window)
            condition, values = self._inside(start, end)
            sql = f"SELECT {self.columns} FROM {self.table} WHERE {condition}{where} ORDER BY {order} LIMIT ?"
            rows += dict_rows(sql, (*values, *values_of_rest, limit + 1 - len(rows)))
            if len(rows) > limit:
                return Listing(rows[:limit], rows[limit - 1]["position"], True)
            if end is None:
                return Listing(rows, None, True)
            start = end
            if time.monotonic() > deadline:
                return Listing(rows, start, False)

    def condition(self) -> tuple[str, list[Any]]:
        """All of the filter in one condition, for statements that look at everything."""
        window, values = self._inside(None)
        rest, more = self._rest(self._guide)
        return window + rest, values + more

    def count(self) -> int:
        condition, values = self.condition()
        return int(one_row(f"SELECT count(*) FROM {self.table} WHERE {condition}", values)[0])

    def _choose(self, indexes: tuple[str, ...]) -> str | None:
        """The filter whose index is walked."""
        rare = next((name for name, value in _RARE.items() if getattr(self._wanted, name) == value), None)
        guide = next((name for name in indexes if getattr(self._wanted, name)), None)
        return rare if rare and self.table == "tasks" and guide not in {"reason", "county"} else guide

    def _end_of_window(self, start: int | None, order: str, window: int) -> int | None:
        """Return the last rowid of the window behind `start`; None where it holds all that is left."""
        if self._guide:
            condition, values = self._inside(start)
            sql = f"SELECT rowid FROM {self.table} WHERE {condition} ORDER BY {order} LIMIT 1 OFFSET ?"
            row = one_row(sql, (*values, window - 1))
            return int(row[0]) if row else None
        # Without an index every row of the window is read: counting them first would read each twice.
        first, last = self._extent
        if self._oldest_first:
            end = (first - 1 if start is None else start) + window
            return end if end < last else None
        end = (last + 1 if start is None else min(start, last + 1)) - window
        return end if end > first else None

    @cached_property
    def _extent(self) -> tuple[int, int]:
        """The lowest and the highest rowid that the walk can meet."""
        first = one_row(f"SELECT coalesce(min(rowid), 0) FROM {self.table}")[0]
        last = one_row(f"SELECT coalesce(max(rowid), 0) FROM {self.table}")[0]
        return max(self._low, first), min(self._high, last)

    def _inside(self, start: int | None, end: int | None = None) -> tuple[str, list[Any]]:
        low, high = self._low, self._high
        if start is not None:
            low, high = (max(low, start + 1), high) if self._oldest_first else (low, min(high, start - 1))
        if end is not None:
            low, high = (low, min(high, end)) if self._oldest_first else (max(low, end), high)
        condition, values = "rowid BETWEEN ? AND ?", [low, high]
        if self._guide in _RARE:
            condition += f" AND {self._guide} = '{_RARE[self._guide]}'"
        elif self._guide:
            condition, values = f"{condition} AND {self._guide} = ?", [low, high, getattr(self._wanted, self._guide)]
        if self._wanted.doubtful and self.table == "results":
            condition += " AND doubts IS NOT NULL"
        return condition, values

    def _rest(self, guide: str | None) -> tuple[str, list[Any]]:
        chosen = [name for name in self._meanings if name != guide and getattr(self._wanted, name)]
        parts = [f" AND {self._meanings[name]}" for name in chosen]
        values = [getattr(self._wanted, name) for name in chosen]
        if self._wanted.text:
            parts.append(" AND (" + " OR ".join(f"{name} LIKE ? ESCAPE '!'" for name in self._searched) + ")")
            literal = re.sub(r"[!%_]", r"!\g<0>", self._wanted.text)
            values += [f"%{literal}%"] * len(self._searched)
        return "".join(parts), values


def _as_spelled(table: str, wanted: TaskFilter) -> tuple[TaskFilter, bool]:
    """The filter with its county as the table spells it, and whether that is one spelling: an index finds it then."""
    if not wanted.county:
        return wanted, True
    found = spellings(table, wanted.county)
    return (replace(wanted, county=found[0]), True) if len(found) == 1 else (wanted, not found)


def spellings(table: str, county: str) -> list[str]:
    """Return how a table spells a county; nothing where it has none of that name."""
    # From one name to the next by the index: as many steps as there are counties, however many rows.
    names = (
        f"WITH RECURSIVE names (name) AS (SELECT min(county) FROM {table} WHERE county IS NOT NULL UNION ALL"
        f" SELECT (SELECT min(county) FROM {table} WHERE county > name) FROM names WHERE name IS NOT NULL)"
        " SELECT name FROM names WHERE name = ? COLLATE NOCASE"
    )
    return [row[0] for row in all_rows(names, (county,))]


def _bounds(table: str, wanted: TaskFilter) -> tuple[int, int]:
    """The rowids between which everything lies that an import brought, or that is from a time on."""
    spans: list[tuple[int | None, int | None]] = []
    if wanted.import_id is not None:
        spans.append(_span_of_import(table, wanted.import_id))
    if wanted.since and table == "results":
        spans.append(one_row("SELECT min(rowid), max(rowid) FROM results WHERE scraped_at >= ?", (wanted.since,)))
    elif wanted.since:
        spans.append((_first_since(wanted.since), TOP))
    low = max((TOP if first is None else first for first, _ in spans), default=0)
    return low, min((0 if last is None else last for _, last in spans), default=TOP)


def _span_of_import(table: str, import_id: int) -> tuple[int | None, int | None]:
    if table == "tasks":
        sql = "SELECT min(rowid), max(rowid) FROM tasks WHERE import_id = ?"
        return tuple(one_row(sql, (import_id,)))
    # The results of a large import are found by walking: they are everywhere.
    sql = f"SELECT count(*) FROM (SELECT 1 FROM tasks WHERE import_id = ? LIMIT {_SMALL_IMPORT})"
    if one_row(sql, (import_id,))[0] == _SMALL_IMPORT:
        return 0, TOP
    ids = "SELECT task_id FROM tasks WHERE import_id = ?"
    return tuple(one_row(f"SELECT min(rowid), max(rowid) FROM results WHERE task_id IN ({ids})", (import_id,)))


def _first_since(since: str) -> int:
    """The first task that came then: rowids grow as tasks come, so it is found by halving."""
    low, high = 0, int(one_row("SELECT coalesce(max(rowid), 0) + 1 FROM tasks")[0])
    while low < high:
        middle = (low + high) // 2
        row = one_row("SELECT rowid, received_at FROM tasks WHERE rowid >= ? ORDER BY rowid LIMIT 1", (middle,))
        if row is None or row[1] >= since:
            high = middle
        else:
            low = int(row[0]) + 1
    return low


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


def tasks_called(name: str, most: int = 6) -> list[str]:
    """Return the ids of tasks that a name may mean, each way by an index: the first way that finds any counts."""
    ways: list[tuple[str, tuple[Any, ...]]] = [
        ("task_id IN (?, ?)", (name, local_task_id(name))),
        ("source = 'gateway' AND url = ?", (name,)),
        ("parcel_id IS NOT NULL AND parcel_id = ? COLLATE NOCASE", (name,)),
        ("task_id >= ? AND task_id < ?", (name, name + "\U0010ffff")),
    ]
    for condition, values in ways if name else ():
        sql = f"SELECT task_id FROM tasks WHERE {condition} ORDER BY rowid DESC LIMIT {most}"
        if found := [row[0] for row in all_rows(sql, values)]:
            return found
    return []


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
        tuple(all_rows("SELECT host FROM hosts WHERE paused_at IS NOT NULL")),
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
        # A row with a deadline is due long before it was added.
        " AND EXISTS (SELECT 1 FROM waiting_since w WHERE w.topic = b.topic AND w.host = b.host AND w.n > 0"
        " AND w.minute <= ?)"
        " AND coalesce(s.next_allowed_at, 0) <= ?"
        " AND max(coalesce(h.cooling_until, 0), coalesce(s.cooling_until, 0)) <= ? AND s.paused_at IS NULL"
    )
    return [row[0] for row in all_rows(sql, (before, before // 60_000, before, before))]
