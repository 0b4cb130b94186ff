"""What a purge goes through, oldest first: whole tasks, raw pages, finished steps.

A sweep finds candidates a window at a time without blocking anybody, and removes them in a short transaction that
checks each again. It remembers how far it got, so that what cannot be removed yet is not checked over and over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from lienworker.db.clock import now_ms, rfc3339
from lienworker.db.database import all_rows, execute, one_row
from lienworker.maintenance.pending_deletes import add_pending_deletes
from lienworker.outbox import transitions
from lienworker.outbox.outcomes import parcel_key
from lienworker.outbox.rows import count_rows
from lienworker.outbox.states import SETTLED as OVER
from lienworker.outbox.states import sql_list

# What may be purged: tasks that have ended and for which nothing is still to be delivered.
#
# Undelivered is what waits, is leased, held or parked, and every result that no Gateway has. Two kinds of results are
# never delivered and count as settled: one that a newer result of its parcel has overtaken, and a list, whose parcels
# are separate tasks. In standalone mode everything is held, so nothing ever becomes settled; a person can declare that
# what `results archive` has packed is done with.


# Conditions for queries in which `t` is the task; `x`, `r` and `u` are their own aliases.

ENDED = "('completed', 'failed', 'expired')"
_OPEN = "('waiting', 'leased', 'held', 'parked')"

_OVERTAKEN = """EXISTS (SELECT 1 FROM outbox u WHERE u.task_id = r.task_id AND u.topic = 'upload_result'
    AND u.generation = r.generation AND u.state = 'superseded')"""

#: Of the result of task `t`: no Gateway has it.
UNSYNCED = "EXISTS (SELECT 1 FROM results r WHERE r.task_id = t.task_id AND r.synced = 0 AND r.stays_here = 0)"
#: Of the rows of task `t`: one is not over.
OPEN_ROWS = f"EXISTS (SELECT 1 FROM outbox x WHERE x.task_id = t.task_id AND x.state IN {_OPEN})"
#: Of task `t`, the page of a source: a result that was read from it is still to go.
_WAITED_FOR = f"""EXISTS (SELECT 1 FROM outbox x JOIN outbox u ON u.raw_id = x.id AND u.state IN {_OPEN}
    WHERE x.task_id = t.task_id AND x.topic = 'upload_raw')"""
#: Of task `t`: a result names it as the page that it was read from.
_NAMED = "EXISTS (SELECT 1 FROM results r WHERE r.source_task = t.task_id)"
#: Of task `t`.
SETTLED = f"""(t.status IN {ENDED} AND NOT {OPEN_ROWS} AND NOT {_WAITED_FOR} AND NOT EXISTS (
    SELECT 1 FROM results r WHERE r.task_id = t.task_id AND r.synced = 0 AND r.stays_here = 0 AND NOT {_OVERTAKEN}))"""
#: Of task `t`: its result is in an archive, and only standalone mode keeps it from being delivered.
ARCHIVED = f"""(t.status IN {ENDED} AND EXISTS (
    SELECT 1 FROM results r WHERE r.task_id = t.task_id AND r.synced = 0 AND r.stays_here = 0 AND r.json_path IS NULL)
    AND NOT EXISTS (SELECT 1 FROM outbox x WHERE x.task_id = t.task_id AND x.state IN {_OPEN}
        AND NOT (x.state = 'held' AND x.reason = 'standalone')))"""


_NAME = "coalesce(nullif(t.parcel_id, ''), t.task_id)"
#: Tables that refer to others first.
_DELETES = tuple(f"DELETE FROM {table} WHERE task_id = ?" for table in ("pages", "results", "unsafe_posts", "tasks"))
_OVER = sql_list(OVER)
#: Rows looked at in one go.
_WINDOW = 2000


@dataclass
class Purged:
    """How much was removed (or would be)."""

    tasks: int = 0
    results: int = 0
    #: of the results, those that are only in an archive
    archived: int = 0
    pages: int = 0
    steps: int = 0
    tries: int = 0
    history: int = 0
    files: int = 0
    size: int = 0
    #: results whose file for people is removed with them
    pending: list[str] = field(default_factory=list)

    @property
    def rows(self) -> int:
        return self.tasks + self.pages + self.steps + self.history


@dataclass(frozen=True, slots=True)
class Window:
    """Candidates, each with its task first, and where the next window begins; None at the end."""

    items: list[tuple[Any, ...]]
    next: str | None


class Sweep(Protocol):
    name: str

    def look(self, after: str) -> Window: ...

    def remove(self, items: Sequence[tuple[Any, ...]], purged: Purged) -> None: ...


class TaskSweep:
    """Tasks that ended before a time, with everything that belongs to them."""

    def __init__(self, before_ms: int, *, archived: bool = False) -> None:
        self.name = "archived" if archived else "tasks"
        self._before = rfc3339(before_ms)
        self.condition = ARCHIVED if archived else f"{SETTLED} AND NOT {_NAMED}"
        self._archived = archived

    def look(self, after: str) -> Window:
        ended, _, rowid = after.partition(" ")
        rows = all_rows(
            "SELECT t.completed_at, t.rowid, t.task_id FROM tasks t INDEXED BY tasks_by_end"
            " WHERE t.completed_at >= ? AND t.completed_at < ? AND (t.completed_at > ? OR t.rowid > ?)"
            " ORDER BY t.completed_at, t.rowid LIMIT ?",
            (ended, self._before, ended, int(rowid or 0), _WINDOW),
        )
        items = [(task_id,) for *_, task_id in rows if self._may_go(task_id)]
        return Window(items, f"{rows[-1][0]} {rows[-1][1]}" if len(rows) == _WINDOW else None)

    def _may_go(self, task_id: str) -> bool:
        sql = f"SELECT 1 FROM tasks t WHERE t.task_id = ? AND t.completed_at < ? AND {self.condition}"
        return one_row(sql, (task_id, self._before)) is not None

    def remove(self, items: Sequence[tuple[Any, ...]], purged: Purged) -> None:
        oldest_page = _oldest_page_to_be_scraped()
        for (task_id,) in items:
            if self._may_go(task_id):
                self._purge(task_id, purged, oldest_page)

    def _purge(self, task_id: str, purged: Purged, oldest_page: str) -> None:
        if self._archived:  # a person has said so: their rows end as discarded
            transitions.discard_archived(task_id)
            purged.archived += 1
        files = all_rows(
            f"SELECT p.path, {_NAME} FROM pages p JOIN tasks t ON t.task_id = p.task_id"
            " WHERE p.task_id = ? AND p.purged_at IS NULL",
            (task_id,),
        )
        add_pending_deletes(files)
        keys = "SELECT platform, state, county, parcel_id, json_path FROM results WHERE task_id = ?"
        about = one_row(keys, (task_id,))
        topics = transitions.purge_task(task_id)
        purged.tries += execute("DELETE FROM attempts WHERE task_id = ?", (task_id,)).rowcount
        for statement in _DELETES:
            execute(statement, (task_id,))
        purged.tasks += 1
        purged.pages += len(files)
        purged.steps += topics.total()
        if about:
            purged.results += 1
            purged.pending += [task_id] if about[4] else []
            _forget_parcel(about, oldest_page)


def _forget_parcel(about: tuple[Any, ...], oldest_page: str) -> None:
    """Forget which result of a parcel the Gateway has, unless an older one could still be sent."""
    platform, state, county, parcel_id, _ = about
    key = parcel_key(platform, state, county, parcel_id)
    if key is None:
        return
    execute(
        "DELETE FROM delivered_parcels WHERE parcel_key = ? AND fetched_at < ?"
        " AND NOT EXISTS (SELECT 1 FROM results WHERE parcel_id = ? AND platform = ?)"
        " AND NOT EXISTS (SELECT 1 FROM tasks WHERE parcel_id = ? COLLATE NOCASE)",
        (key, oldest_page, parcel_id, platform, parcel_id),
    )


def _oldest_page_to_be_scraped() -> str:
    """Return when the oldest page without a result was fetched; now, where there is none."""
    minute = one_row("SELECT min(minute) FROM waiting_since WHERE topic = 'scrape' AND n > 0")[0]
    leased = one_row("SELECT min(created_at) FROM outbox WHERE state = 'leased' AND topic = 'scrape'")[0]
    times = [minute * 60_000 if minute is not None else None, leased]
    return rfc3339(min((time for time in times if time is not None), default=now_ms()))


class PageSweep:
    """Raw pages of settled tasks that were fetched before a time. The row stays, without its file."""

    name = "raw"

    def __init__(self, before_ms: int) -> None:
        self._before = rfc3339(before_ms)

    def look(self, after: str) -> Window:
        first = one_row("SELECT min(rowid) FROM pages WHERE rowid > ?", (int(after or 0),))[0]
        if first is None:
            return Window([], None)
        rows = all_rows(
            f"SELECT p.task_id, p.generation, p.path, {_NAME} FROM pages p JOIN tasks t ON t.task_id = p.task_id"
            " WHERE p.rowid BETWEEN ? AND ? AND p.purged_at IS NULL AND p.fetched_at < ?"
            f" AND {SETTLED} AND p.path NOT IN ("
            "  SELECT sample_path FROM field_history WHERE paused_at IS NOT NULL AND sample_path IS NOT NULL)",
            (first, first + _WINDOW - 1, self._before),
        )
        # Rows are roughly in the order of their fetches: where all are too young, the walk ends.
        oldest = "SELECT min(fetched_at) FROM pages WHERE rowid BETWEEN ? AND ?"
        is_old = one_row(oldest, (first, first + _WINDOW - 1))[0] < self._before
        return Window(rows, str(first + _WINDOW - 1) if is_old else None)

    def remove(self, items: Sequence[tuple[Any, ...]], purged: Purged) -> None:
        now = rfc3339()
        for task_id, generation, path, name in items:
            gone = execute(
                "UPDATE pages SET purged_at = ? WHERE task_id = ? AND generation = ? AND path = ? AND purged_at IS NULL"
                f" AND EXISTS (SELECT 1 FROM tasks t WHERE t.task_id = pages.task_id AND {SETTLED})",
                (now, task_id, generation, path),
            ).rowcount
            if gone:
                add_pending_deletes([(path, name)])
                purged.pages += 1


class StepSweep:
    """Finished outbox rows of ended tasks, with their errors.

    The rows that delivered a result stay until the Gateway has it: they show how far the delivery is.
    """

    name = "steps"
    condition = (
        f"o.state IN {_OVER} AND o.finished_at < ? AND t.status IN {ENDED}"
        f" AND (o.topic IN ('fetch', 'scrape') OR NOT {OPEN_ROWS} AND NOT {UNSYNCED} AND NOT {_WAITED_FOR})"
    )

    def __init__(self, before_ms: int) -> None:
        self._before = before_ms

    def look(self, after: str) -> Window:
        first = one_row("SELECT min(id) FROM outbox WHERE id > ?", (int(after or 0),))[0]
        if first is None:
            return Window([], None)
        rows = all_rows(
            "SELECT o.task_id, o.id FROM outbox o JOIN tasks t ON t.task_id = o.task_id"
            f" WHERE o.id BETWEEN ? AND ? AND {self.condition}",
            (first, first + _WINDOW - 1, self._before),
        )
        oldest = "SELECT min(created_at) FROM outbox WHERE id BETWEEN ? AND ?"
        is_old = one_row(oldest, (first, first + _WINDOW - 1))[0] < self._before
        return Window(rows, str(first + _WINDOW - 1) if is_old else None)

    def remove(self, items: Sequence[tuple[Any, ...]], purged: Purged) -> None:
        topics: Counter[str] = Counter()
        sql = (
            "SELECT o.task_id, o.topic FROM outbox o JOIN tasks t ON t.task_id = o.task_id"
            f" WHERE o.id = ? AND {self.condition}"
        )
        for _, row_id in items:
            found = one_row(sql, (row_id, self._before))
            if found is None:
                continue
            tries = "DELETE FROM attempts WHERE task_id = ? AND outbox_id = ?"
            purged.tries += execute(tries, (found[0], row_id)).rowcount
            transitions.purge(row_id)
            topics[found[1]] += 1
        count_rows("purged", topics)
        purged.steps += topics.total()
