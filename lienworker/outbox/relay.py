"""The relay: keeps tokens in Redis for the rows that are due.

A token is a Dramatiq message that says only "there is due work in this lane"; the actor that receives it claims rows
from the database. One process at a time runs the relay (it takes the turn `relay`). It wakes when the database has
changed (one cheap pragma tells), when the earliest row becomes due, and once a second to replace tokens that Redis
lost. It tops a lane up to what can be claimed and what workers can take, minus what is queued already, so nothing piles
up while no worker runs.

Why not send a message when a row is added? Writing to the database and to Redis is not one transaction: a kill between
the two would lose the message or announce a row that was never committed. Here a lost or an extra token costs nothing,
because the rows are authoritative and Redis may be wiped at any time. Why not poll from the workers? Dramatiq owns
their threads, and every idle thread would query the database.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import redis

from lienworker.db.clock import now_ms
from lienworker.db.database import one_row
from lienworker.outbox.claims import Rules, claimable, next_due

#: How often the relay checks whether anything has changed.
LOOK_SECONDS = 0.1
#: How often it checks the lanes even if nothing seems to have changed.
SWEEP_SECONDS = 1.0

logger = logging.getLogger(__name__)


class Tokens(Protocol):
    """Where tokens are put; the broker in production."""

    def queued(self, topic: str) -> int: ...

    def send(self, topic: str, n: int) -> None: ...


@dataclass(frozen=True)
class Lane:
    """A topic (and the actor of that name) with the rows that one token stands for."""

    topic: str
    batch: int

    def due(self, rules: Rules, most: int) -> int:
        """Return how many rows could be claimed now, counted up to `most`."""
        return claimable(self.topic, rules, most)

    def next_due(self) -> int | None:
        return next_due(self.topic)

    def capacity(self) -> int:
        """Return how many tokens workers can take at a time."""
        return worker_slots()


def tokens_wanted(due: int, batch: int, capacity: int, queued: int) -> int:
    """Return how many tokens to add: enough for what is due, no more than workers can take, minus what is queued."""
    return max(0, min(-(-due // batch), capacity) - queued)


def top_up(lanes: list[Lane], tokens: Tokens, rules: Rules) -> None:
    """Top up every lane once."""
    for lane in lanes:
        capacity = lane.capacity()
        due = lane.due(rules, lane.batch * capacity)
        if due:
            n = tokens_wanted(due, lane.batch, capacity, tokens.queued(lane.topic))
            if n:
                tokens.send(lane.topic, n)


def worker_slots() -> int:
    """Return what all living workers can take at a time; at least one token, for a worker about to start."""
    return max(1, int(one_row("SELECT coalesce(sum(slots), 0) FROM workers")[0]))


class Relay:
    """One turn of the relay's work."""

    def __init__(self, lanes: list[Lane], tokens: Tokens, rules: Rules, housekeeping: Callable[[], None]) -> None:
        self._lanes = lanes
        self._tokens = tokens
        self._rules = rules
        self._housekeeping = housekeeping
        self._version = -1

    def run(self, stop: threading.Event, is_over: Callable[[], bool]) -> None:
        """Run until told to stop, or until the turn is over."""
        next_sweep = next_chores = 0.0
        due: int | None = None
        while not stop.wait(LOOK_SECONDS):
            now = time.monotonic()
            changed = self._has_changed()
            if not (changed or now >= next_sweep or (due is not None and due <= now_ms())):
                continue
            next_sweep = now + SWEEP_SECONDS
            due = self._top_up()
            if now >= next_chores:
                next_chores = now + SWEEP_SECONDS
                self._housekeeping()
                if is_over():
                    return

    def _has_changed(self) -> bool:
        """Return whether another connection has committed since the last check."""
        version = int(one_row("PRAGMA data_version")[0])
        changed, self._version = version != self._version, version
        return changed

    def _top_up(self) -> int | None:
        """Top the lanes up; return when the next row becomes due."""
        try:
            top_up(self._lanes, self._tokens, self._rules)
        except redis.RedisError as problem:
            # Redis only wakes workers: the rows are safe, and the next round tries again.
            logger.warning("no tokens can be sent, Redis is unreachable: %s", problem, extra={"action": "relay"})
        times = [time_due for lane in self._lanes if (time_due := lane.next_due()) and time_due > now_ms()]
        return min(times, default=None)
