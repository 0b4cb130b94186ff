"""One message's lease on a lane: how its rows are claimed, and when it has to stop."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from lienworker.outbox.claims import Rules
from lienworker.outbox.leases import WorkerLease


@dataclass(frozen=True, slots=True)
class LaneLease:
    """A token for claims; its rows are ours as long as `is_ours`: a process that was taken for dead has lost them."""

    holder: WorkerLease
    token: str
    rules: Rules
    #: Rows in one claim.
    batch: int
    stopping: threading.Event
    #: Whether a quarantined row (its holder died) may be claimed: one of them in a process at a time.
    quarantined: bool = False
    #: The message that led to the claims.
    message_id: str | None = None

    @property
    def is_ours(self) -> bool:
        return self.holder.owns(self.token)


# How many steps of this process run at a time, and how many of them compute.


#: Threads kept free for relay, polling, heartbeat and uploads, so that none of them ever waits for pages.
RESERVED_THREADS = 4
#: How long a step may compute before others continue beside it, s; longer is a page that a parser hangs in.
_COURTESY = 0.2


class Slots:
    """Slots for fetch and scrape steps. `count` of them may run in this process at a time."""

    def __init__(self, count: int, stopping: threading.Event) -> None:
        self._stopping = stopping
        self._slots = threading.BoundedSemaphore(max(1, count))
        self._computing = threading.Lock()
        self._computing_since = 0.0

    @contextmanager
    def slot(self) -> Iterator[bool]:
        """Yield whether there is room for one more step; a token that finds none is dropped: the relay sends others."""
        free = not self._stopping.is_set() and self._slots.acquire(blocking=False)
        try:
            yield free
        finally:
            if free:
                self._slots.release()

    @contextmanager
    def compute_slot(self) -> Iterator[None]:
        """Let one step of this process compute at a time, while the others wait for sites and disks.

        Threads that compute side by side get nothing more done: they fight for the interpreter's lock, most of all in
        the middle of transactions. It is a courtesy, not a rule: a page that a parser hangs in blocks nobody for long.
        """
        patience = max(0.0, self._computing_since + _COURTESY - time.monotonic())
        mine = self._computing.acquire(timeout=patience)
        if mine:
            self._computing_since = time.monotonic()
        try:
            yield
        finally:
            if mine:
                self._computing.release()


# Threads switch more often while one that blocks others waits.


_SHORT_SECONDS = 0.0005


class _SwitchInterval:
    """The switch interval belongs to the process, so the last one to leave restores it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._usual = 0.0

    def enter(self) -> None:
        with self._lock:
            if not self._inside:
                self._usual = sys.getswitchinterval()
                sys.setswitchinterval(_SHORT_SECONDS)
            self._inside += 1

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                sys.setswitchinterval(self._usual)


_interval = _SwitchInterval()


@contextmanager
def short_switch_interval() -> Iterator[None]:
    """Let threads switch more often than Python's default of 5 ms.

    SQLite releases the interpreter for each row that is read, and each step to the event loop and back is a switch to
    another thread. With a busy thread beside it, the caller would wait a whole interval for each of them.
    """
    _interval.enter()
    try:
        yield
    finally:
        _interval.leave()
