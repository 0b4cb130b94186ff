"""How long a fetch has taken, and the end of its time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress


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

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Raise TimeoutError where the block takes longer than what is left."""
        if self.left() <= 0:
            raise TimeoutError
        async with asyncio.timeout(self.left()) as self._timeout:
            yield

    @contextmanager
    def stopped(self) -> Iterator[None]:
        began = time.perf_counter()
        self._set(None)
        try:
            yield
        finally:
            self._start += time.perf_counter() - began
            self._set(asyncio.get_running_loop().time() + self.left())

    def _set(self, when: float | None) -> None:
        if self._timeout is not None and not self._timeout.expired():
            with suppress(RuntimeError):  # it is over
                self._timeout.reschedule(when)
