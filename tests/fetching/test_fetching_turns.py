"""A turn is good for one request on the wire, whatever the HTTP library does by itself."""

from __future__ import annotations

import asyncio
import itertools
import time
from dataclasses import replace

import pytest
from yarl import URL

from lienworker.fetching.fetcher import Fetcher
from lienworker.fetching.outcomes import Fetched, FetchRequest
from lienworker.fetching.turns import LATE, Turn, TurnError, Turns
from tests.fetching.fetching_servers import OPTIONS, PAGE, listening

_DELAY = 0.3


class SpacedPacer:
    """Books turns at one host, as the database does."""

    def __init__(self) -> None:
        self._free_at = 0.0

    async def book(self, host: str, missed: Turn | None, crawl_delay: float | None, *, lead: float = 0.0) -> Turn:
        at = max(asyncio.get_running_loop().time() + lead, self._free_at)
        self._free_at = at + _DELAY
        return Turn(host, at, _DELAY)


class Forgetful:
    """A site that answers for robots.txt, and hangs up on the next request of that connection: once."""

    def __init__(self) -> None:
        self.arrivals: list[float] = []
        self._has_hung_up = False

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            self.arrivals.append(time.monotonic())
            if b"/robots.txt" not in head and not self._has_hung_up:
                self._has_hung_up = True
                return
            body = b"" if b"/robots.txt" in head else PAGE
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            await writer.drain()


def test_a_request_that_is_sent_again_on_a_new_connection_waits_for_a_turn_of_its_own() -> None:
    site = Forgetful()

    async def story() -> object:
        async with listening(site.talk) as port:
            asking = Fetcher(replace(OPTIONS, obey_robots=True), pacer=SpacedPacer())
            try:
                return await asking.fetch(FetchRequest(f"http://127.0.0.1:{port}/parcel/1"))
            finally:
                await asking.close()

    assert isinstance(asyncio.run(story()), Fetched)
    gaps = [after - before for before, after in itertools.pairwise(site.arrivals)]
    assert len(gaps) == 2, "robots.txt, the page, and the page again"
    assert min(gaps) > _DELAY - 0.02


class BusyPacer(SpacedPacer):
    """A pacer in a busy process: each booking comes back later than a turn may be late."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds
        self.last: Turn | None = None

    async def book(self, host: str, missed: Turn | None, crawl_delay: float | None, *, lead: float = 0.0) -> Turn:
        self._free_at = 0.0
        self.last = await super().book(host, missed, crawl_delay, lead=lead)
        time.sleep(self._seconds)  # the loop stands still, as it does where others have the processor
        return self.last


@pytest.mark.parametrize("seconds", [3 * LATE, 40 * LATE])
def test_a_busy_process_books_turns_that_it_can_keep(seconds: float) -> None:
    pacer = BusyPacer(seconds)

    async def story() -> float:
        loop = asyncio.get_running_loop()
        turns = Turns(pacer, Turn("a.example", loop.time() - 1, _DELAY))
        await turns.wait(URL("http://a.example/1"), None)
        assert await turns.begin()
        return loop.time()

    sent = asyncio.run(story())
    assert pacer.last is not None
    assert sent - pacer.last.at <= LATE, "the request went out at the moment that the host has booked"


class HopelessPacer(BusyPacer):
    """Its bookings take longer each time than the one before allowed for."""

    async def book(self, host: str, missed: Turn | None, crawl_delay: float | None, *, lead: float = 0.0) -> Turn:
        self._seconds = lead + 2 * LATE
        return await super().book(host, missed, crawl_delay, lead=lead)


def test_a_process_that_keeps_no_turn_asks_for_nothing() -> None:
    """A request that is sent late comes too close to the one behind it."""

    async def story() -> None:
        turns = Turns(HopelessPacer(0), Turn("a.example", asyncio.get_running_loop().time() - 1, _DELAY))
        await turns.wait(URL("http://a.example/1"), None)
        with pytest.raises(TurnError, match="too busy to keep its turns"):
            await turns.begin()
        assert not turns.were_used

    asyncio.run(story())
