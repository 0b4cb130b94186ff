"""An outbox row: as it is added, and as a worker holds it.

A row is one step to do for one task: fetch its page, scrape it, upload the raw page, upload the result, report a
failure. It is added in the transaction that makes the step necessary (a task is registered, a page is stored, a result
is made), and ended in the transaction that stores the step's outcome, which adds the next row. So after a kill at any
point either the old row is still open or the next one is there, never both and never neither. `states` lists what a row
can be for and where it can stand, `transitions` who moves it; rows are never deleted before they are settled and old.

The row, not the message in Redis, is the unit of work: a message can be lost or repeated, a committed row cannot. The
row holds only what scheduling needs; what is known about the parcel is in its task.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

from lienworker.db.database import dict_rows, execute, one_row
from lienworker.outbox.states import State, Topic

#: A due time that never arrives: the row waits for another one to end.
NEVER_DUE = 9_000_000_000_000_000
#: In the payload of a row that a person asked for: it is fetched whatever the drift guard has found in its county.
ASKED_FOR = '"asked_for"'


#: How much earlier than its deadline a row with one is due.
DEADLINE_ORDER_MS = 20 * 365 * 86_400_000


def deadline_order(due_by: int) -> int:
    """Return the due time of a row with a deadline.

    Rows of one host and rank are claimed in the order of their due times. A deadline, twenty years earlier, is long
    past, so the row is due at once; it is before every row without a deadline; and the earliest deadline comes first.
    Rejected: a second column to sort by, which every claim would pay for.
    """
    return due_by - DEADLINE_ORDER_MS


def rank_of(queue: str, priority: int) -> int:
    """Return a row's rank, as the schema generates it: urgent before default, then priority."""
    return priority if queue == "urgent" else 10 + priority


@dataclass(frozen=True, slots=True)
class Entry:
    """A row to add."""

    topic: Topic
    task_id: str
    generation: int
    queue: str
    priority: int
    host: str = ""
    payload: dict[str, Any] | None = None
    state: State = State.WAITING
    due_at: int | None = None
    reason: str | None = None
    parcel_key: str | None = None
    due_by: int | None = None
    #: The row of a source page's raw file, which must be acknowledged before this result may go.
    raw_id: int | None = None

    def values(self, now: int) -> tuple[Any, ...]:
        """Return the values in the order in which `transitions.add` inserts them."""
        payload = json.dumps(self.payload) if self.payload is not None else None
        soonest = now if self.due_by is None else deadline_order(self.due_by)
        due_at = soonest if self.due_at is None else self.due_at
        return (
            self.topic, self.task_id, self.generation, self.host, self.queue, self.priority, payload,
            self.state, due_at, self.reason, now, self.parcel_key, self.due_by, self.raw_id,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Claimed:
    """A leased row, as the worker that claimed it sees it, with what the step needs of its task."""

    id: int
    topic: Topic
    task_id: str
    generation: int
    host: str
    queue: str
    priority: int
    attempts: int
    payload: str | None
    alone: int
    url: str
    platform: str | None
    #: Whether the platform is what an address or a page showed, not what the task asks for.
    platform_learned: int
    state: str | None
    county: str | None
    parcel_id: str | None
    source: str
    target_json: str
    proxy: str | None
    expires_at: str | None
    parcel_key: str | None
    token: str
    #: Wall clock, ms: not to be started earlier; a few tenths of a second ahead at most.
    start_at: int
    #: How far apart its site wants requests to be.
    delay_ms: int = 0

    @property
    def asked_platform(self) -> str | None:
        """The platform that the task names itself; None where its page decides."""
        return None if self.platform_learned else self.platform

    @property
    def target(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads(self.target_json)
        return loaded


def count_rows(name: str, by_topic: Counter[str]) -> None:
    """Add to the counters `added` and `purged`, which the balance is checked against."""
    for topic, n in by_topic.items():
        execute(
            "INSERT INTO counters (name, topic, n) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET n = n + excluded.n",
            (name, topic, n),
        )


def is_row(row_id: int) -> bool:
    """Return whether there is a row with this number."""
    return one_row("SELECT 1 FROM outbox WHERE id = ?", (row_id,)) is not None


def raw_row_of(task_id: str, generation: int) -> tuple[int, str] | None:
    """Return the row that uploads a task's raw file, and its state."""
    sql = "SELECT id, state FROM outbox WHERE task_id = ? AND topic = 'upload_raw' AND generation = ?"
    row = one_row(sql, (task_id, generation))
    return (int(row[0]), str(row[1])) if row else None


def steps_of(task_id: str) -> list[dict[str, Any]]:
    """Return the rows of a task in the order in which they were added."""
    sql = (
        "SELECT id, topic, generation, state, attempts, reason, due_at, created_at, finished_at, message_id"
        " FROM outbox WHERE task_id = ? ORDER BY id"
    )
    return list(dict_rows(sql, (task_id,)))
