"""Calls in flight: the one bridge between a worker thread and the event loop.

The thread loads rows, each with what its call needs; the event loop makes the calls, so many at a time, and the next
one starts as soon as one has ended. Nothing in flight waits for the thread, which may be busy with the database
meanwhile. Each wake-up of a thread costs more than a call's own bookkeeping, so both directions work in groups: one
load starts any number of calls, and the thread is woken when enough have ended or the first has waited long enough.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar

from lienworker.outbox.rows import Claimed

C = TypeVar("C")
T = TypeVar("T")

#: What has ended waits at most this long for others to be committed with, s.
GROUP_SECONDS = 0.2
#: For a load without its own limit.
UNLIMITED = sys.maxsize


class AfterCall(Enum):
    """What the outcome of a call means for the calls that have not started yet."""

    CONTINUE = "the next one starts"
    REST = "one call fewer until this outcome is judged; the others continue"
    HALT = "none starts until this outcome is judged"


class InFlight(Generic[C, T]):
    """Rows whose calls are waiting or in flight. Loaded and emptied by one worker thread."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        call: Callable[[C], Awaitable[T]],
        after: Callable[[T], AfterCall] = lambda _: AfterCall.CONTINUE,
        landed: threading.Event | None = None,
    ) -> None:
        """Set up an empty queue; `call` never raises; `landed` is set when something has ended (and may be shared)."""
        self._loop = loop
        self._make_call = call
        self._after = after
        self._news = landed or threading.Event()
        self._wanted = 1
        self._width = 1
        self._halted = False
        self._out: dict[int, Claimed] = {}  # everything not returned yet, for the worker thread
        self._waiting: deque[tuple[Claimed, C]] = deque()
        self._landed: deque[tuple[Claimed, T]] = deque()
        self._lanes: set[asyncio.Task[None]] = set()  # for the event loop
        self._started_at: dict[int, float] = {}  # what is in flight, since when

    def __len__(self) -> int:
        return len(self._out)

    @property
    def rows(self) -> list[Claimed]:
        return list(self._out.values())

    @property
    def waiting(self) -> int:
        """How many have not started yet."""
        return len(self._waiting)

    @property
    def under_way(self) -> int:
        return len(self._out) - len(self._waiting)

    def slow(self, seconds: float) -> int:
        """Return how many have been in flight for longer than that."""
        now = time.monotonic()
        return sum(now - started_at > seconds for started_at in list(self._started_at.values()))

    def load(self, cargo: Sequence[tuple[Claimed, C]], width: int = UNLIMITED) -> None:
        """Add to the queue and start it, `width` at a time."""
        self._out.update((row.id, row) for row, _ in cargo)
        self._waiting.extend(cargo)
        self._width, self._halted = width, False
        self._loop.call_soon_threadsafe(self._open_lanes)

    def landed(self, most: int | None = None) -> list[tuple[Claimed, T]]:
        """Return what has ended since the last call, without waiting."""
        count = len(self._landed) if most is None else min(most, len(self._landed))
        ended = [self._landed.popleft() for _ in range(count)]
        return [(row, outcome) for row, outcome in ended if self._out.pop(row.id, None)]

    def gather(
        self, most: int, patience: float, *, enough: int | None = None, group: float = GROUP_SECONDS
    ) -> list[tuple[Claimed, T]]:
        """Wait `patience` for the first to end, then for `enough` of them, `group` at most; return what has ended."""
        if self._wait_for(1, patience):
            self._wait_for(min(enough or most, len(self._out)), group)
        return self.landed(most)

    def wait_for_group(self, enough: int, patience: float) -> None:
        """Wait until so many have ended, or all, `patience` at most; where several share a flag, the others may too."""
        self._wait_for(min(enough, len(self._out)), patience)
        self._wanted = 1

    def _wait_for(self, wanted: int, patience: float) -> bool:
        deadline = time.monotonic() + patience
        self._wanted = wanted
        while len(self._landed) < wanted and (left := deadline - time.monotonic()) > 0:
            self._news.clear()
            if len(self._landed) < wanted:  # one may have ended just before the flag was cleared
                self._news.wait(left)
        return len(self._landed) >= wanted

    def unload(self) -> list[Claimed]:
        """Take back what has not started yet."""
        rows = []
        while self._waiting:
            try:
                row, _ = self._waiting.popleft()
            except IndexError:  # it started just now
                break
            rows.append(row)
            del self._out[row.id]
        return rows

    def abandon(self) -> list[Claimed]:
        """Take back everything, even what is in flight."""
        self._waiting.clear()
        self._loop.call_soon_threadsafe(self._close_lanes)
        rows = self.rows
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
            self._started_at[row.id] = time.monotonic()
            try:
                outcome = await self._make_call(cargo)
            finally:
                del self._started_at[row.id]
            self._landed.append((row, outcome))
            if len(self._landed) >= self._wanted:
                self._news.set()
            after = self._after(outcome)
            self._halted |= after is AfterCall.HALT
            if after is not AfterCall.CONTINUE:
                return


# An object that lives on the event loop and is used from worker threads: the Gateway's client, the fetcher.


R = TypeVar("R")


class Closable(Protocol):
    """An object that can be closed on the event loop."""

    async def close(self) -> None: ...


Made = TypeVar("Made", bound=Closable)


class OnLoop(Generic[Made]):
    """Made on the event loop when it is first needed: what nobody asks for opens no connection."""

    def __init__(self, loop: asyncio.AbstractEventLoop, make: Callable[[], Coroutine[Any, Any, Made]]) -> None:
        self.loop = loop
        self.made: Made | None = None
        self._make = make
        self._making = threading.Lock()

    def open(self) -> Made:
        """Return the object. Not for the event loop's own thread, which would wait for itself."""
        with self._making:
            if self.made is None:
                self.made = self.wait_for(self._make())
            return self.made

    def wait_for(self, call: Coroutine[Any, Any, R], timeout: float | None = None) -> R:
        """Run a coroutine on the event loop and return what it returns."""
        return asyncio.run_coroutine_threadsafe(call, self.loop).result(timeout)

    def close(self) -> None:
        if self.made is not None:
            self.wait_for(self.made.close(), timeout=5)
