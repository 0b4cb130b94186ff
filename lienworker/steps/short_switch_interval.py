"""Threads that take turns more often, while somebody waits who holds up others."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_SHORT_SECONDS = 0.0005


class _SwitchInterval:
    """How often threads change is the process's, so the last one who leaves puts it back."""

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
    """Lets threads take turns more often than Python's usual 5 ms.

    SQLite lets go of the interpreter for each row that is read, and each step to the event loop and back is a turn of
    another thread. With a thread busy beside it, whoever is here would wait such a turn for every one of them.
    """
    _interval.enter()
    try:
        yield
    finally:
        _interval.leave()
