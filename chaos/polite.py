"""Counties that measure how often they are asked, on their own side of the wire.

When a request came in is the kernel's word (`TCP_INFO`: how long ago the last byte arrived), so a busy witness measures
no shorter distance than there was. The delay is what the node itself knew at the earlier of two requests: a site's own
wish (Crawl-delay) binds from the moment it was read.
"""

from __future__ import annotations

import asyncio
import itertools
import socket
import struct
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler

from chaos.county import FailingCounty

#: What a distance may fall short by: the larger of these, seconds and share of the delay.
LEEWAY_SECONDS, LEEWAY_SHARE = 0.020, 0.02
_LAST_DATA_RECEIVED = 52  # where `struct tcp_info` has it, in milliseconds
_LATELY = 5.0
#: What the promise of pacing speaks of today; the others are counted apart.
PACED = frozenset({"page"})


@dataclass(frozen=True, slots=True)
class Arrival:
    at: float
    what: str
    delay: float


@dataclass(frozen=True, slots=True)
class TooClose:
    """Two requests that came closer than the earlier one's delay."""

    host: str
    before: Arrival
    after: Arrival
    #: What else the site was asked for in between, and right before.
    lately: tuple[Arrival, ...] = ()

    @property
    def is_counted(self) -> bool:
        return {self.before.what, self.after.what} <= PACED

    def in_words(self, began: float = 0.0) -> str:
        """`began` is when the run did."""
        gap = self.after.at - self.before.at
        what = f"a {self.after.what} {gap:.3f} s after a {self.before.what}"
        lately = ", ".join(f"{one.what} {one.at - began:.2f}" for one in self.lately)
        return f"{self.host} was asked for {what}, its delay is {self.before.delay:g} s ({lately})"


class PoliteCounty(FailingCounty):
    """`crawl_delay` stands in its robots.txt; `redirects` sends each parcel's visitor on to another page of its own."""

    def __init__(
        self, seed: int, usual: float, *, crawl_delay: float = 0, redirects: bool = False, **more: Any
    ) -> None:
        super().__init__(seed, **more)
        self._usual = usual
        self._crawl_delay = crawl_delay
        self._redirects = redirects
        self.platform = "demo" if crawl_delay else "generic"  # the demo platform asks for no delay, robots.txt does
        self.arrivals: list[Arrival] = []

    def polite_row(self, number: int) -> dict[str, str]:
        return {**self.parcels(1, number + 1)[0], "platform": self.platform}

    def app(self) -> web.Application:
        app = super().app()
        app.router.add_get("/record/{id}", self._parcel)
        return app

    @web.middleware
    async def _record(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        at = _arrived(request)
        delay = await asyncio.to_thread(self._delay, request.host)
        self.arrivals.append(Arrival(at, _what(request.path), delay))
        answer = await super()._record(request, handler)
        if self._redirects and request.path.startswith("/parcel/") and answer.status == 200:
            return web.HTTPFound(request.path.replace("/parcel/", "/record/"))
        return answer

    async def _robots(self, request: web.Request) -> web.Response:
        return web.Response(text=f"User-agent: *\nDisallow: /admin/\nCrawl-delay: {self._crawl_delay}\n")

    def _delay(self, host: str) -> float:
        return self.witness.delay_of(host, self._usual) if self.witness else self._usual


def too_close(host: str, arrivals: Iterable[Arrival], *, only: frozenset[str] | None = None) -> Iterator[TooClose]:
    """Neighbours among the requests (of these kinds) that came sooner than they should."""
    every = sorted(arrivals, key=lambda one: one.at)
    wanted = [one for one in every if only is None or one.what in only]
    for before, after in itertools.pairwise(wanted):
        leeway = max(LEEWAY_SECONDS, LEEWAY_SHARE * before.delay)
        if after.at - before.at < before.delay - leeway:
            lately = tuple(one for one in every if after.at - _LATELY <= one.at <= after.at)
            yield TooClose(host, before, after, lately)


def _what(path: str) -> str:
    kinds = {"/parcel/": "page", "/record/": "redirect", "/robots.": "robots.txt"}
    return kinds.get(path[:8], "page")


def _arrived(request: web.Request) -> float:
    """When the request's last byte came in, by the steady clock."""
    now = time.monotonic()
    sock = request.transport.get_extra_info("socket") if request.transport else None
    if sock is None or not hasattr(socket, "TCP_INFO"):
        return now
    about = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
    ago: int = struct.unpack_from("=I", about, _LAST_DATA_RECEIVED)[0]
    return now - ago / 1000
