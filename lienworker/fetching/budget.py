"""How many bytes of large pages a process holds at a time: those being read, and those waiting to be stored.

Ordinary pages are too small to matter, and are not counted. A large one takes its share before it continues reading,
all that it may need at once: so no reader waits for another that has begun, and one can always finish. A page that
waits is not read, so the site waits, too; nothing fails because of it.
"""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from contextlib import suppress

from lienworker.fetching.outcomes import Fetched
from lienworker.fetching.turns import Stopwatch

#: Bytes of a page that are not counted.
FREE = 512 * 1024


class Budget:
    """A shared limit in bytes. Used on one event loop; shares may be given back from any thread."""

    def __init__(self, total: int) -> None:
        self._total = max(1, total)
        self._left = self._total
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def take(self, size: int) -> int:
        """Wait for this many bytes, first come first served; for more than the total, until all of it is free."""
        size = min(size, self._total)
        if self._waiting or self._left < size:
            await self._wait(size)
        else:
            self._left -= size
        return size

    async def _wait(self, size: int) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((size, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give_back(size)
            else:
                self._waiting.remove((size, turn))
                self.give_back(0)
            raise

    def give_back(self, size: int) -> None:
        """Return bytes, on the event loop: those who waited longest continue first."""
        self._left += size
        while self._waiting and self._waiting[0][0] <= self._left:
            wanted, turn = self._waiting.popleft()
            if not turn.done():
                self._left -= wanted
                turn.set_result(None)


class Allowance:
    """What one page may hold: nothing is counted while it is small, then it takes all that it may need."""

    def __init__(self, budget: Budget, watch: Stopwatch, most: int) -> None:
        self._budget = budget
        self._watch = watch
        self._most = most
        self._taken = 0

    async def grow_to(self, size: int) -> None:
        """Wait until a page of this size may be held. That time is not charged to the site."""
        if size > FREE and not self._taken:
            with self._watch.stopped():
                self._taken = await self._budget.take(self._most)

    def give_back(self, all_but: int = 0) -> None:
        """Return what is not needed."""
        spare = max(0, self._taken - all_but)
        self._taken -= spare
        self._budget.give_back(spare)

    def last_as_long_as(self, owner: Fetched) -> None:
        """Give the rest back when the page is garbage-collected, in whichever thread that happens."""
        if self._taken:
            self.give_back(all_but=len(owner.body))
            weakref.finalize(owner, _give_back, asyncio.get_running_loop(), self._budget, self._taken)


def _give_back(loop: asyncio.AbstractEventLoop, budget: Budget, size: int) -> None:
    with suppress(RuntimeError):  # the loop is closed, and nothing waits any more
        loop.call_soon_threadsafe(budget.give_back, size)
