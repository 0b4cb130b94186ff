"""Books turns at hosts for requests that no claim knew of, from the event loop, without running queries on it."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from lienworker.db.clock import now_ms
from lienworker.db.database import DATABASE_TROUBLE, close, write
from lienworker.fetching.turns import FarTurnError, Turn, TurnError
from lienworker.hostnames import host_of
from lienworker.outbox.clock_jumps import correct_clock_jump
from lienworker.outbox.pacing import Booked, Booking, book
from lienworker.outbox.rows import Claimed

#: How long it is remembered that a host needs no spacing, s.
_BELIEVED = 10.0
_MOST_BELIEVED = 10_000
#: How long a request in flight waits for its turn, ms. A site may ask for an hour: a few of those would block every
#: thread of a worker.
_LONGEST_WAIT_MS = 60_000


@dataclass(frozen=True, slots=True)
class BookedTurn(Turn):
    """A turn as the database has it, in ms of the wall clock."""

    start_at: int


def turn_of(row: Claimed) -> Turn:
    """Return the turn that a claim has booked. Call it on the event loop, whose clock nobody sets."""
    return _turn(host_of(row.url), Booked(row.start_at, row.delay_ms))


def _turn(host: str, booked: Booked) -> Turn:
    at = asyncio.get_running_loop().time() + (booked.start_at - now_ms()) / 1000
    return BookedTurn(host, at, booked.delay_ms / 1000, booked.start_at)


class HostPacer:
    """Used on one event loop. Bookings that arrive while one is in progress share the next transaction."""

    def __init__(self, host_delay: float) -> None:
        self._host_delay = host_delay
        self._thread = ThreadPoolExecutor(1, "pacer")
        self._wanted: list[tuple[Booking, asyncio.Future[Booked]]] = []
        self._work: asyncio.Task[None] | None = None
        self._free: dict[str, float] = {}

    async def book(self, host: str, missed: Turn | None, crawl_delay: float | None, *, lead: float = 0.0) -> Turn:
        loop = asyncio.get_running_loop()
        if not crawl_delay and self._free.get(host, 0.0) > loop.time():
            return Turn(host, loop.time(), 0.0)
        answer: asyncio.Future[Booked] = loop.create_future()
        missed_at = missed.start_at if isinstance(missed, BookedTurn) else None
        self._wanted.append((Booking(host, missed_at, crawl_delay, int(lead * 1000)), answer))
        if self._work is None:
            self._work = asyncio.create_task(self._book_wanted())
        booked = await answer
        if booked.is_far:
            raise FarTurnError(host, (booked.start_at - now_ms()) / 1000)
        if booked.delay_ms == 0:
            self._believe(host, loop.time() + _BELIEVED)
        return _turn(host, booked)

    def _believe(self, host: str, until: float) -> None:
        if len(self._free) >= _MOST_BELIEVED:
            self._free.clear()
        self._free[host] = until

    async def _book_wanted(self) -> None:
        loop = asyncio.get_running_loop()
        while self._wanted:
            wanted, self._wanted = self._wanted, []
            try:
                booked = await loop.run_in_executor(self._thread, self._book_all, [booking for booking, _ in wanted])
                outcomes: list[Booked | TurnError] = list(booked)
            except (OSError, *DATABASE_TROUBLE) as problem:
                outcomes = [TurnError(f"no turn at a host could be booked: {problem}")] * len(wanted)
            for (_, answer), outcome in zip(wanted, outcomes, strict=True):
                if not answer.done():
                    _answer(answer, outcome)
        self._work = None

    def _book_all(self, bookings: list[Booking]) -> list[Booked]:
        with write("book"):
            correct_clock_jump()
            return [book(booking, self._host_delay, now_ms(), _LONGEST_WAIT_MS) for booking in bookings]

    def close(self) -> None:
        """Close the pacer; not on the event loop."""
        self._thread.submit(close)
        self._thread.shutdown()


def _answer(answer: asyncio.Future[Booked], outcome: Booked | TurnError) -> None:
    if isinstance(outcome, TurnError):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)
