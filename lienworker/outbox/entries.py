"""What an outbox row is, and adding rows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lienworker.hostnames import site_of
from lienworker.store.clock import now_ms
from lienworker.store.database import dict_rows, execute, execute_many

#: A due time that never comes by itself: the row waits for another one to end.
BLOCKED = 9_000_000_000_000_000

_INSERT = """
INSERT INTO outbox (topic, task_id, generation, host, queue, priority, payload, state, due_at, reason, created_at,
                    parcel_key)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """A row on its way in."""

    topic: str
    task_id: str
    generation: int
    queue: str
    priority: int
    host: str = ""
    payload: dict[str, Any] | None = None
    state: str = "waiting"
    due_at: int | None = None
    reason: str | None = None
    parcel_key: str | None = None


@dataclass(frozen=True, slots=True)
class Claimed:
    """A row in a worker's hands, with what the step needs of its task."""

    id: int
    topic: str
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


def add_entries(entries: Sequence[Entry]) -> None:
    """Adds rows and counts them as added. Part of a larger transaction."""
    now = now_ms()
    # A row of a host that nobody knows would wait for ever; a route is paced as the site that it leads to.
    routes = {entry.host for entry in entries if entry.topic == "fetch"}
    known = [(host,) for host in sorted(routes | {site_of(route) for route in routes})]
    execute_many("INSERT OR IGNORE INTO hosts (host) VALUES (?)", known)
    execute_many(_INSERT, (_row(entry, now) for entry in entries))
    count_rows("added", Counter(entry.topic for entry in entries))


def _row(entry: Entry, now: int) -> tuple[Any, ...]:
    payload = json.dumps(entry.payload) if entry.payload is not None else None
    due_at = now if entry.due_at is None else entry.due_at
    return (
        entry.topic, entry.task_id, entry.generation, entry.host, entry.queue, entry.priority, payload,
        entry.state, due_at, entry.reason, now, entry.parcel_key,
    )  # fmt: skip


def count_rows(name: str, by_topic: Counter[str]) -> None:
    """Moves the counters `added` and `purged`, which the balance is checked against."""
    for topic, n in by_topic.items():
        execute(
            "INSERT INTO counters (name, topic, n) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET n = n + excluded.n",
            (name, topic, n),
        )


def steps_of(task_id: str) -> list[dict[str, Any]]:
    """The rows of a task, in the order in which they came."""
    sql = (
        "SELECT id, topic, generation, state, attempts, reason, due_at, created_at, finished_at, message_id"
        " FROM outbox WHERE task_id = ? ORDER BY id"
    )
    return list(dict_rows(sql, (task_id,)))
