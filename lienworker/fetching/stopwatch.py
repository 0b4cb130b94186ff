"""How long a fetch has taken, and the end of its time."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress


class Stopwatch:
    """Measures a fetch and ends it when its time is up; waiting by our own will is not counted."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._start = time.perf_counter()
        self._timeout: asyncio.Timeout | None = None

    def elapsed_ms(self) -> int:
        return int((time.perf_counter() - self._start) * 1000)

    def left(self) -> float:
        return self._limit - (time.perf_counter() - self._start)

    def timeout(self) -> asyncio.Timeout:
        """For `async with`: raises TimeoutError where the block takes longer than what is left."""
        if self.left() <= 0:
            raise TimeoutError
        self._timeout = asyncio.timeout(self.left())
        return self._timeout

    def stopped(self) -> _Stopped:
        """For `with`: the time of the block does not count."""
        return _Stopped(self)

    def shift(self, seconds: float) -> None:
        """Give back time that was lost by our own will."""
        self._start += seconds

    def set_alarm(self, is_on: bool) -> None:
        if self._timeout is not None and not self._timeout.expired():
            with suppress(RuntimeError):  # it is over
                self._timeout.reschedule(asyncio.get_running_loop().time() + self.left() if is_on else None)


class _Stopped:
    """No generator: every page comes through here."""

    __slots__ = ("_began", "_watch")

    def __init__(self, watch: Stopwatch) -> None:
        self._watch = watch

    def __enter__(self) -> None:
        self._began = time.perf_counter()
        self._watch.set_alarm(False)

    def __exit__(self, *_: object) -> None:
        self._watch.shift(time.perf_counter() - self._began)
        self._watch.set_alarm(True)
