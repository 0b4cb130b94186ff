"""How many steps of this process run at a time, and how many of them compute."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

#: Threads kept free for relay, polling, heartbeat and uploads, so that none of them ever waits for pages.
RESERVED_THREADS = 4
#: How long a step may compute before others go ahead beside it, s; longer is a page that a parser hangs in.
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
        """True where there is room for one more step; a token that finds none is dropped, the relay sends another."""
        free = not self._stopping.is_set() and self._slots.acquire(blocking=False)
        try:
            yield free
        finally:
            if free:
                self._slots.release()

    @contextmanager
    def compute_slot(self) -> Iterator[None]:
        """One step of this process computes at a time, while the others wait for sites and disks.

        Threads that compute side by side get nothing more done: they fight for the interpreter's lock, and most of all
        in the middle of transactions. A courtesy, not a rule: a page that a parser hangs in holds up nobody for long.
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
