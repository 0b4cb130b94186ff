"""A queue on the event loop: so many errands in the air at a time, and the next one leaves as soon as one has landed.

The worker thread loads it and takes what has landed, a group at a time; nothing that is in the air waits for the
thread, which meanwhile may be busy with the database.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from typing import Generic, TypeVar

from lienworker.outbox.entries import Claimed

C = TypeVar("C")
T = TypeVar("T")


class Course(Enum):
    """What an outcome means for those that have not left yet."""

    GO_ON = "well"
    REST = "whoever got this waits until it is judged; the others go on"
    HALT = "nobody leaves until it is judged"


class Convoy(Generic[C, T]):
    """Rows with what is to be sent for each. Loaded and emptied by one worker thread."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        errand: Callable[[C], Awaitable[T]],
        course: Callable[[T], Course],
        news: threading.Event,
    ) -> None:
        """`errand` never raises; `news` is set whenever something has landed."""
        self._loop = loop
        self._errand = errand
        self._course = course
        self._news = news
        self._width = 1
        self._halted = False
        self._out: dict[int, Claimed] = {}  # all that is not landed yet, for the worker thread
        self._waiting: deque[tuple[Claimed, C]] = deque()
        self._landed: deque[tuple[Claimed, T]] = deque()
        self._lanes: set[asyncio.Task[None]] = set()  # for the event loop
        self._left_at: dict[int, float] = {}  # what is in the air, since when

    def __len__(self) -> int:
        return len(self._out)

    @property
    def waiting(self) -> int:
        """How many have not left yet."""
        return len(self._waiting)

    @property
    def in_air(self) -> int:
        return len(self._out) - len(self._waiting)

    def slow(self, seconds: float) -> int:
        """How many have been in the air for longer than that."""
        now = time.monotonic()
        return sum(now - left_at > seconds for left_at in list(self._left_at.values()))

    def load(self, cargo: Sequence[tuple[Claimed, C]], width: int) -> None:
        """Adds to the queue and lets it go, `width` at a time."""
        self._out.update((row.id, row) for row, _ in cargo)
        self._waiting.extend(cargo)
        self._width, self._halted = width, False
        self._loop.call_soon_threadsafe(self._open_lanes)

    def landed(self) -> list[tuple[Claimed, T]]:
        """What has landed since the last look."""
        arrived = [self._landed.popleft() for _ in range(len(self._landed))]
        return [(row, outcome) for row, outcome in arrived if self._out.pop(row.id, None)]

    def unload(self) -> list[Claimed]:
        """Takes back what has not left yet."""
        rows = []
        while self._waiting:
            try:
                row, _ = self._waiting.popleft()
            except IndexError:  # it left just now
                break
            rows.append(row)
            del self._out[row.id]
        return rows

    def abandon(self) -> list[Claimed]:
        """Takes back everything, also what is in the air."""
        self._waiting.clear()
        self._loop.call_soon_threadsafe(self._close_lanes)
        rows = list(self._out.values())
        self._out.clear()
        return rows

    # On the event loop

    def _open_lanes(self) -> None:
        for _ in range(min(self._width - len(self._lanes), len(self._waiting))):
            lane = self._loop.create_task(self._work())
            self._lanes.add(lane)
            lane.add_done_callback(self._lanes.discard)

    def _close_lanes(self) -> None:
        for lane in self._lanes:
            lane.cancel()

    async def _work(self) -> None:
        while not self._halted and len(self._lanes) <= self._width:
            try:
                row, cargo = self._waiting.popleft()
            except IndexError:
                return
            self._left_at[row.id] = time.monotonic()
            try:
                outcome = await self._errand(cargo)
            finally:
                del self._left_at[row.id]
            self._landed.append((row, outcome))
            self._news.set()
            course = self._course(outcome)
            self._halted |= course is Course.HALT
            if course is not Course.GO_ON:
                return
