"""A turn is good for one request on the wire, whatever the HTTP library does by itself."""

from __future__ import annotations

import asyncio
import itertools
import time
from dataclasses import replace

from lienworker.fetching.fetcher import Fetcher
from lienworker.fetching.outcomes import Fetched, FetchRequest
from lienworker.fetching.turns import Turn
from tests.fetching.fetching_servers import OPTIONS, PAGE, listening

_DELAY = 0.3


class SpacedPacer:
    """Books turns at one host, as the database does."""

    def __init__(self) -> None:
        self._free_at = 0.0

    async def book(self, host: str, missed: Turn | None, crawl_delay: float | None) -> Turn:
        at = max(asyncio.get_running_loop().time(), self._free_at)
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
