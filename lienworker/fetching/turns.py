"""When a request may be sent: not before its turn at the host, and not long after it.

A claim books the first request of a page. What could not be known then (the robots.txt, each redirect, a request whose
connection took too long) books its own turn when needed, on the event loop, so a site never gets two requests closer
together than it wants, whichever process they come from.

A turn applies to the moment when the connection is open and the request is sent: the time it takes to connect varies
from one request to the next, and a site does not count it.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

import aiohttp
from aiohttp.connector import Connection
from aiohttp.tracing import Trace
from yarl import URL

from lienworker.errors import LienworkerError
from lienworker.hostnames import host_of

#: A request that is later than this, s, would come too close to the next one.
LATE = 0.01
#: Connections are opened this long before a turn, s.
_AHEAD = 0.25
#: A connection is not kept idle for longer, s: the site may hang up meanwhile.
_FAR = 1.0
#: After this many missed turns the process is too busy to keep any: its row is given back.
_MOST_MISSED = 5


@dataclass(frozen=True, slots=True)
class Turn:
    """A host, and when the turn begins (`time.monotonic`). A host that needs no spacing has no turns to keep."""

    host: str
    at: float
    delay: float


class TurnError(LienworkerError):
    """No turn could be booked, so nothing was asked for: the row waits as if it had never been claimed."""


class FarTurnError(TurnError):
    """The next turn at a host is too far off to wait for with a request in hand."""

    def __init__(self, host: str, seconds: float) -> None:
        super().__init__(f"{host} may be asked again in {seconds:.0f} s")
        self.host = host
        self.seconds = seconds


class Pacer(Protocol):
    """Books turns at hosts; raises `TurnError`."""

    async def book(self, host: str, missed: Turn | None, crawl_delay: float | None, *, lead: float = 0.0) -> Turn: ...


class Turns:
    """The turns of one fetch, with its robots.txt and its redirects."""

    def __init__(self, pacer: Pacer | None, first: Turn | None) -> None:
        self._pacer = pacer
        self._first = first
        self._now: Turn | None = None
        self._missed = 0
        #: How long it took to book the last turn, s.
        self._booking = 0.0
        self._is_used = False
        #: Whether any request was sent: until then no host knows of this fetch.
        self.were_used = False

    def forfeit(self) -> None:
        """Give up the turn: the host's rules were just learned, and a turn booked before may be too early."""
        if self._first is not None and self._first.delay > 0:
            self._first = None

    async def wait(self, url: URL, crawl_delay: float | None) -> None:
        """Wait until shortly before a request to this address; `begin` waits the rest once there is a connection."""
        self._now, self._missed = await self._book(host_of(str(url)), crawl_delay), 0
        self._is_used = False
        await self.come_near()

    async def come_near(self) -> None:
        if self._now is not None:
            await _until(self._now.at - _AHEAD)

    async def _book(self, host: str, crawl_delay: float | None) -> Turn | None:
        first = self._first
        if self._pacer is None:
            return None
        if first is not None and first.host == host and (first.delay > 0 or not crawl_delay):
            # Without spacing, one turn is good for all requests.
            self._first = None if first.delay > 0 else first
            return first
        return await self._pacer.book(host, None, crawl_delay)

    async def begin(self) -> bool:
        """Wait for the exact moment. A missed turn is exchanged for the next: return False if that is far off.

        A process that missed one is busy, and would miss the next as well if that began at once: so each further turn
        lies twice as far ahead as the one before, and as it took to book that. It is never sent late: those behind it
        keep their times, and the site would be asked twice within its delay.

        A turn is good for one request. The HTTP library sends one again by itself when the site closes a connection
        that was kept open, and the site counts both.
        """
        if self._is_used and self._now is not None and self._now.delay > 0 and self._pacer is not None:
            self._now, self._missed, self._is_used = await self._pacer.book(self._now.host, None, None), 0, False
            if self._now.at - _clock() > _FAR:
                return False
        while (turn := self._now) is not None:
            await _until(turn.at)
            is_late = _clock() - turn.at > LATE
            if turn.delay <= 0 or not is_late or self._pacer is None:
                break
            self._now = await self._exchange(turn, self._pacer)
            if self._now.at - _clock() > _FAR:
                return False
        self._is_used = self.were_used = True
        return True

    async def _exchange(self, turn: Turn, pacer: Pacer) -> Turn:
        if self._missed >= _MOST_MISSED:
            raise TurnError(f"this process is too busy to keep its turns at {turn.host}")
        self._missed += 1
        since = _clock()
        booked = await pacer.book(turn.host, turn, None, lead=max(LATE * 2**self._missed, 2 * self._booking))
        self._booking = _clock() - since
        return booked


async def _until(moment: float) -> None:
    left = moment - _clock()
    if left > 0:
        await asyncio.sleep(left)


def _clock() -> float:
    return asyncio.get_running_loop().time()


class Going:
    """The fetch that the current task works on: what its connection, once open, has to wait for."""

    def __init__(self, turns: Turns, watch: Stopwatch) -> None:
        self.turns = turns
        self.watch = watch

    async def begin(self) -> bool:
        with self.watch.stopped():
            return await self.turns.begin()

    async def come_near(self) -> None:
        with self.watch.stopped():
            await self.turns.come_near()


going: ContextVar[Going | None] = ContextVar("going", default=None)


class InTurn(aiohttp.BaseConnector):
    """A connector that hands out a connection when it is the request's turn."""

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        now = going.get()
        while True:
            connection = await super().connect(req, traces, timeout)
            try:
                if now is None or await now.begin():
                    return connection
            except BaseException:
                connection.close()
                raise
            connection.release()
            await now.come_near()


# How long a fetch has taken, and when its time is up.


class Stopwatch:
    """Measures a fetch and ends it when its time is up; our own waiting is not counted."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._start = time.perf_counter()
        self._timeout: asyncio.Timeout | None = None

    def elapsed_ms(self) -> int:
        return int((time.perf_counter() - self._start) * 1000)

    def left(self) -> float:
        return self._limit - (time.perf_counter() - self._start)

    def timeout(self) -> asyncio.Timeout:
        """Return a context for `async with` that raises TimeoutError when the remaining time is used up."""
        if self.left() <= 0:
            raise TimeoutError
        self._timeout = asyncio.timeout(self.left())
        return self._timeout

    def stopped(self) -> _Stopped:
        """Return a context for `with` whose time does not count."""
        return _Stopped(self)

    def shift(self, seconds: float) -> None:
        """Add back time that was lost by our own waiting."""
        self._start += seconds

    def set_alarm(self, is_on: bool) -> None:
        if self._timeout is not None and not self._timeout.expired():
            with suppress(RuntimeError):  # it is over
                self._timeout.reschedule(asyncio.get_running_loop().time() + self.left() if is_on else None)


class _Stopped:
    """A class, not a generator: every page passes through here."""

    __slots__ = ("_began", "_watch")

    def __init__(self, watch: Stopwatch) -> None:
        self._watch = watch

    def __enter__(self) -> None:
        self._began = time.perf_counter()
        self._watch.set_alarm(False)

    def __exit__(self, *_: object) -> None:
        self._watch.shift(time.perf_counter() - self._began)
        self._watch.set_alarm(True)
