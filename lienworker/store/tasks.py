"""Tasks: what is to be scraped, and its status."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from lienworker.db.clock import now_ms, rfc3339
from lienworker.db.database import all_rows, execute, execute_many, storable
from lienworker.db.models import Attempt, Task, dicts
from lienworker.store.columns import note_list_columns, share_list_columns


class Source(StrEnum):
    """Where a task comes from."""

    #: Handed out by the hub, which is told how it ended.
    GATEWAY = "gateway"
    #: A row of a file that a person imported.
    LOCAL_FILE = "local_file"
    #: An address that a person or a program named, or a parcel found on a list behind such an address.
    CLI = "cli"
    #: A page that a person saved: it is there already, and never fetched.
    SAVED = "saved"
    #: A page of a source that is harvested, or a parcel that such a page has.
    HARVEST = "harvest"


SOURCES = tuple(source.value for source in Source)
STATUSES = ("pending", "processing", "completed", "failed", "expired")
QUEUES = ("urgent", "default")
DEFAULT_PRIORITY = 3
#: Why a task has failed whose row was lost and whose address no other row names.
ADDRESS_LOST = "address_lost"

_INSERT = """
INSERT INTO tasks (task_id, source, platform, state, county, parcel_id, url, target_json, queue, priority,
                   import_id, created_at, received_at, updated_at, expires_at, proxy, platform_learned,
                   due_by)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

_INSERT_COMPLETED = """
INSERT INTO tasks (task_id, source, platform, state, county, parcel_id, url, target_json, queue, priority,
                   import_id, created_at, received_at, updated_at, expires_at, proxy, platform_learned, due_by,
                   status, completed_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'completed', ?)
"""

_GIVE_ADDRESS = """
UPDATE tasks SET url = ?, platform = coalesce(platform, ?), state = coalesce(state, ?), county = coalesce(county, ?),
    parcel_id = coalesce(parcel_id, ?), target_json = ?
WHERE task_id = ?
"""


@dataclass(slots=True)
class NewTask:
    """A new task. `task_id` may be left empty: it is then derived from what identifies the parcel."""

    source: str
    url: str
    platform: str | None = None
    state: str | None = None
    county: str | None = None
    parcel_id: str | None = None
    queue: str = "default"
    priority: int = DEFAULT_PRIORITY
    target: Mapping[str, Any] = field(default_factory=dict)
    task_id: str = ""
    import_id: int | None = None
    created_at: str | None = None
    expires_at: str | None = None
    proxy: str | None = field(default=None, repr=False)
    #: Whether the platform is known from the address, and is not asked for.
    platform_learned: bool = False
    #: Until when it is to be done, ms.
    due_by: int | None = None

    def __post_init__(self) -> None:
        if self.source not in SOURCES:
            raise ValueError(f"{self.source!r} is no source of tasks: one of {', '.join(SOURCES)}")
        self.task_id = self.task_id or local_task_id(self.url)


def local_task_id(url: str) -> str:
    """Return the id of a task that no Gateway named: a hash of its page, so that a file imported twice adds nothing."""
    page = url.partition("#")[0]
    return "p-" + hashlib.blake2b(page.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def known_ids(task_ids: Iterable[str]) -> set[str]:
    """Return which of these tasks exist already."""
    ids = list(task_ids)
    sql = "SELECT task_id FROM tasks WHERE task_id IN (SELECT value FROM json_each(?))"
    found = {row[0] for row in all_rows(sql, (json.dumps(ids),))}
    for odd in (task_id for task_id in ids if "\0" in task_id):  # SQLite's JSON text ends at it
        found.update(row[0] for row in all_rows("SELECT task_id FROM tasks WHERE task_id = ?", (odd,)))
    return found


def insert_tasks(tasks: Mapping[str, NewTask]) -> None:
    """Add tasks that do not exist yet, keyed by id. Part of a larger transaction."""
    now = rfc3339()
    execute_many(_INSERT, (_row(task_id, task, now) for task_id, task in tasks.items()))
    note_list_columns((task.import_id, task.target) for task in tasks.values())


def insert_completed(tasks: Sequence[NewTask]) -> None:
    """Add tasks that have their result already. Part of a larger transaction.

    They come by the thousand and all alike, so their ends are counted here at once, not by the trigger for each.
    """
    now = rfc3339()
    execute_many(_INSERT_COMPLETED, ((*_row(task.task_id, task, now), now) for task in tasks))
    places = Counter(f"{task.platform or ''}|{task.state or ''}|{task.county or ''}|completed" for task in tasks)
    ended = now_ms() // 60_000
    rows = [("task", "completed", ended, len(tasks))] if tasks else []
    rows += [("county", place, ended // 1440 * 1440, n) for place, n in places.items()]
    execute_many("INSERT INTO rollups VALUES (?, ?, ?, ?, 0) ON CONFLICT DO UPDATE SET n = n + excluded.n", rows)


def _row(task_id: str, task: NewTask, now: str) -> tuple[Any, ...]:
    return (
        task_id, task.source, task.platform, task.state, task.county, task.parcel_id, task.url, _target(task),
        task.queue, task.priority, task.import_id, task.created_at or now, now, now,
        task.expires_at, task.proxy, task.platform_learned, task.due_by,
    )  # fmt: skip


def _target(task: NewTask) -> str:
    return json.dumps(task.target) if task.target else "{}"


def give_deadline(task_ids: Iterable[str], due_by: int, expires_at: str | None) -> None:
    """Give open tasks a deadline, unless they have an earlier one. Part of a larger transaction."""
    execute_many(
        "UPDATE tasks SET due_by = ?1, expires_at = ?2 WHERE task_id = ?3 AND status IN ('pending', 'processing')"
        " AND coalesce(due_by, ?1) >= ?1",
        ((due_by, expires_at, task_id) for task_id in task_ids),
    )


def give_addresses(named: Mapping[str, NewTask]) -> set[str]:
    """Restore the addresses of known tasks that lost theirs with a damaged database.

    Return those that had failed for want of one. Part of a larger transaction.
    """
    sql = "SELECT task_id, reason FROM tasks WHERE task_id IN (SELECT value FROM json_each(?)) AND url = ''"
    lacking = [row for row in all_rows(sql, (json.dumps(list(named)),)) if named[row[0]].url] if named else []
    execute_many(_GIVE_ADDRESS, ((*_about(named[task_id]), task_id) for task_id, _ in lacking))
    note_list_columns((named[task_id].import_id, named[task_id].target) for task_id, _ in lacking)
    return {task_id for task_id, reason in lacking if reason == ADDRESS_LOST}


def _about(task: NewTask) -> tuple[Any, ...]:
    return task.url, task.platform, task.state, task.county, task.parcel_id, _target(task)


def join_import(task_ids: Iterable[str], import_id: int) -> None:
    """Count tasks that an import named, and that existed already, under that import."""
    ids = list(task_ids)
    share_list_columns(ids, import_id)
    execute_many("UPDATE tasks SET import_id = ? WHERE task_id = ?", ((import_id, task_id) for task_id in ids))


class LearnedKeys(Protocol):
    """What a page or its address told of a task's parcel."""

    @property
    def task_id(self) -> str: ...
    @property
    def platform(self) -> str: ...
    @property
    def state(self) -> str | None: ...
    @property
    def county(self) -> str | None: ...
    @property
    def parcel_id(self) -> str | None: ...


def learn_keys(found: Sequence[LearnedKeys]) -> None:
    """Tell tasks that came without them where their parcels are, so that lists and figures by county know, too.

    Part of the transaction that stores the results. A platform that the task did not name is marked as learned: it is
    shown and counted, but the next page is read by whichever platform knows it best.
    """
    execute_many(
        "UPDATE tasks SET state = coalesce(nullif(state, ''), ?1), county = coalesce(nullif(county, ''), ?2),"
        " parcel_id = coalesce(nullif(parcel_id, ''), ?3),"
        " platform_learned = platform_learned OR coalesce(platform, '') = '',"
        " platform = CASE WHEN platform_learned OR coalesce(platform, '') = '' THEN ?4 ELSE platform END"
        " WHERE task_id = ?5",
        ((item.state, item.county, item.parcel_id, item.platform, item.task_id) for item in found),
    )


def mark_processing(task_ids: Sequence[str]) -> None:
    now = rfc3339()
    execute_many(
        "UPDATE tasks SET status = 'processing', updated_at = ? WHERE task_id = ?",
        ((now, task_id) for task_id in task_ids),
    )


def mark_pending(task_ids: Sequence[str]) -> None:
    """Put tasks back in the queue whose worker died, was stopped, or will try again later."""
    now = rfc3339()
    execute_many(
        "UPDATE tasks SET status = 'pending', updated_at = ? WHERE task_id = ? AND status = 'processing'",
        ((now, task_id) for task_id in task_ids),
    )


def record_attempt(task_id: str, reason: str | None, error: str | None) -> None:
    """Count a try of the task and store what went wrong, if anything did."""
    execute(
        "UPDATE tasks SET attempts = attempts + 1, reason = ?, last_error = ?, updated_at = ? WHERE task_id = ?",
        (reason, storable(error) if error else error, rfc3339(), task_id),
    )


def mark_completed(*task_ids: str, tries: int = 0) -> None:
    """Mark tasks as completed, after `tries` more tries."""
    now = rfc3339()
    execute_many(
        "UPDATE tasks SET status = 'completed', reason = NULL, last_error = NULL, updated_at = ?, completed_at = ?,"
        " attempts = attempts + ? WHERE task_id = ?",
        ((now, now, tries, task_id) for task_id in task_ids),
    )


def mark_failed(task_id: str, reason: str, error: str, *, status: str = "failed") -> None:
    now = rfc3339()
    execute(
        "UPDATE tasks SET status = ?, reason = ?, last_error = ?, updated_at = ?, completed_at = ? WHERE task_id = ?",
        (status, reason, storable(error), now, now, task_id),
    )


def next_generation(task_id: str) -> int:
    """Let the current round continue with another page under a new generation; return its number."""
    sql = "UPDATE tasks SET generation = generation + 1, status = 'pending' WHERE task_id = ? RETURNING generation"
    return int(execute(sql, (task_id,)).fetchone()[0])


def start_generation(task_id: str) -> int:
    """Begin another round of a task (a retry or a refresh) and return its number.

    The generation fences rounds against each other. Pages, results and outbox rows carry the generation that they were
    made in; uploads of an earlier one are superseded, and a late acknowledgement does not mark a newer result as
    delivered. Only `start_generation` (a person retries, an import refreshes, a repair fetches again) and
    `next_generation` (the round needs one more page) raise it, inside the transaction that adds the new row. The status
    could not do this: two rounds of a task look the same while both are `processing`. A new task id for each round was
    rejected, since the hub, the files and people know the task by one id.
    """
    now = rfc3339()
    row = execute(
        "UPDATE tasks SET generation = generation + 1, status = 'pending', attempts = 0, completed_at = NULL,"
        " updated_at = ? WHERE task_id = ? RETURNING generation",
        (now, task_id),
    ).fetchone()
    return int(row[0])


def without_secrets(row: dict[str, Any]) -> dict[str, Any]:
    """Return a task as people may see it: whether it has its own proxy, but not which."""
    return {**row, "proxy": "(set)" if row["proxy"] else None}


def task(task_id: str) -> dict[str, Any] | None:
    found = next(dicts(Task.select().where(Task.task_id == task_id)), None)
    return without_secrets(found) if found else None


def attempts_of(task_id: str) -> list[dict[str, Any]]:
    """Return all failed tries of a task's rows, oldest first."""
    columns = (Attempt.topic, Attempt.at, Attempt.reason, Attempt.error)
    return list(dicts(Attempt.select(*columns).where(Attempt.task_id == task_id).order_by(Attempt.id)))


# Lists whose parcels are wanted: the request is kept with the list's own task.


def want_parcels(task_id: str, about: Mapping[str, str | None]) -> None:
    """Record that the parcels of a list are wanted; `about` is what they share. Part of a larger transaction."""
    sql = "UPDATE tasks SET target_json = json_set(target_json, '$.follow', json(?)) WHERE task_id = ?"
    execute(sql, (json.dumps(about), task_id))
