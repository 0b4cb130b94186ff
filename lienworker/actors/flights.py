"""Work that is in the air: coroutines on the event loop whose outcomes are gathered in groups by a worker thread.

Each wake-up of a thread costs more than the errand's own bookkeeping, so both ways go in groups: one call starts any
number of errands, and the worker is woken once, when enough have come back or the first has waited long enough.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Coroutine, Iterable
from typing import Any, Generic, TypeVar

from lienworker.outbox.entries import Claimed

T = TypeVar("T")
Errand = Coroutine[Any, Any, T]

#: What has come back waits at most this long for neighbours to be committed with.
GROUP_SECONDS = 0.2


class Flights(Generic[T]):
    """Rows whose errands are under way. Launched and gathered by one worker thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._in_air: dict[int, Claimed] = {}
        self._tasks: dict[int, asyncio.Task[T]] = {}  # the event loop's
        self._arrived: deque[tuple[Claimed, asyncio.Task[T]]] = deque()
        self._enough = threading.Event()
        self._wanted = 1

    def __len__(self) -> int:
        return len(self._in_air)

    @property
    def rows(self) -> list[Claimed]:
        return list(self._in_air.values())

    def launch(self, errands: Iterable[tuple[Claimed, Errand[T]]]) -> None:
        """Starts errands, all of them at once."""
        starting = list(errands)
        if starting:
            self._in_air.update((row.id, row) for row, _ in starting)
            self._loop.call_soon_threadsafe(self._start, starting)

    def _start(self, starting: list[tuple[Claimed, Errand[T]]]) -> None:
        for row, errand in starting:
            task = self._loop.create_task(errand)
            self._tasks[row.id] = task
            task.add_done_callback(lambda done, row=row: self._land(row, done))  # type: ignore[misc]

    def _land(self, row: Claimed, task: asyncio.Task[T]) -> None:
        del self._tasks[row.id]
        self._arrived.append((row, task))
        if len(self._arrived) >= self._wanted:
            self._enough.set()

    def gather(
        self, most: int, patience: float, *, enough: int | None = None, group: float = GROUP_SECONDS
    ) -> list[tuple[Claimed, asyncio.Task[T]]]:
        """What has arrived: waits `patience` for the first, then for `enough` of those in the air, `group` at most."""
        if self._wait_for(1, patience):
            self._wait_for(min(enough or most, len(self._in_air)), group)
        arrived = [self._arrived.popleft() for _ in range(min(most, len(self._arrived)))]
        return [(row, task) for row, task in arrived if self._in_air.pop(row.id, None)]

    def _wait_for(self, wanted: int, patience: float) -> bool:
        deadline = time.monotonic() + patience
        self._wanted = wanted
        while len(self._arrived) < wanted and (left := deadline - time.monotonic()) > 0:
            self._enough.clear()
            if len(self._arrived) < wanted:  # one may have landed just before the flag was lowered
                self._enough.wait(left)
        return len(self._arrived) >= wanted

    def abandon(self) -> list[Claimed]:
        """Stops waiting; gives the rows that were still in the air."""
        rows = self.rows
        self._in_air.clear()
        self._loop.call_soon_threadsafe(self._cancel, [row.id for row in rows])
        return rows

    def _cancel(self, ids: list[int]) -> None:
        for row_id in ids:
            if row_id in self._tasks:
                self._tasks[row_id].cancel()
