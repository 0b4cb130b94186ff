"""What an outbox row is, on its way in and in a worker's hands."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

from lienworker.db.database import dict_rows, execute, one_row
from lienworker.outbox.states import State, Topic

#: A due time that never comes by itself: the row waits for another one to end.
NEVER_DUE = 9_000_000_000_000_000
#: In the payload of a row that a person asked for: it is fetched, whatever the drift guard thinks of its county.
ASKED_FOR = '"asked_for"'


@dataclass(frozen=True, slots=True)
class Entry:
    """A row on its way in."""

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

    def values(self, now: int) -> tuple[Any, ...]:
        """Return the values in the order in which `transitions.add` inserts them."""
        payload = json.dumps(self.payload) if self.payload is not None else None
        due_at = now if self.due_at is None else self.due_at
        return (
            self.topic, self.task_id, self.generation, self.host, self.queue, self.priority, payload,
            self.state, due_at, self.reason, now, self.parcel_key,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Claimed:
    """A row in a worker's hands, with what the step needs of its task."""

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
    state: str | None
    county: str | None
    parcel_id: str | None
    source: str
    target_json: str
    proxy: str | None
    expires_at: str | None
    parcel_key: str | None
    token: str
    #: Wall clock, ms: not to be started before this; a few tenths of a second ahead at most.
    start_at: int
    #: How far apart its site wants its requests.
    delay_ms: int = 0

    @property
    def target(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads(self.target_json)
        return loaded


def count_rows(name: str, by_topic: Counter[str]) -> None:
    """Moves the counters `added` and `purged`, which the balance is checked against."""
    for topic, n in by_topic.items():
        execute(
            "INSERT INTO counters (name, topic, n) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET n = n + excluded.n",
            (name, topic, n),
        )


def is_row(row_id: int) -> bool:
    """Return whether there is a row with this number."""
    return one_row("SELECT 1 FROM outbox WHERE id = ?", (row_id,)) is not None


def steps_of(task_id: str) -> list[dict[str, Any]]:
    """The rows of a task, in the order in which they came."""
    sql = (
        "SELECT id, topic, generation, state, attempts, reason, due_at, created_at, finished_at, message_id"
        " FROM outbox WHERE task_id = ? ORDER BY id"
    )
    return list(dict_rows(sql, (task_id,)))
