"""Counties that mean harm: pages and robots.txt files that were made to stop whoever reads them.

Each hostile robots.txt has a county of its own, and so have the pages that never end: what a site does to itself must
stay its own. Their parcels may complete or fail with a reason; they may not be lost, and may not hold up the others.
"""

from __future__ import annotations

import asyncio
import gzip
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler

from chaos.witness import WatchedCounty
from lienworker.testing.county.pages import render_parcel

_DRIP_SECONDS = 0.5
_CHUNK = b"<p>and so on</p>" * 4096
_HTML = "text/html; charset=utf-8"

Answer = tuple[bytes, dict[str, str]]


def _deep() -> Answer:
    """Nested, with a label at each level."""
    levels = 2_000
    body = "<div><b>Owner:</b>" * levels + "SMITH" + "</div>" * levels
    return f"<html><body>{body}</body></html>".encode(), {"Content-Type": _HTML}


def _labels() -> Answer:
    """0.4 MB of the same label."""
    return b"<html><body>" + b"<b>Owner:</b>" * 31_000 + b"</body></html>", {"Content-Type": _HTML}


def _attributes() -> Answer:
    words = " ".join(f"a{n}=1" for n in range(60_000))
    return f"<html><body><table {words}><tr><td>Owner:</td></tr></table></body></html>".encode(), {
        "Content-Type": _HTML
    }


def _bomb() -> Answer:
    """200 KB that become 200 MB."""
    return _zeros(200_000_000), {"Content-Type": _HTML, "Content-Encoding": "gzip"}


def _not_gzip() -> Answer:
    return b"this was never compressed" * 100, {"Content-Type": _HTML, "Content-Encoding": "gzip"}


def _wrong_encoding() -> Answer:
    return render_parcel(7, 8_000).encode("cp1252", "replace"), {"Content-Type": "text/html; charset=utf-16"}


def _no_encoding() -> Answer:
    body = render_parcel(8, 8_000).encode().replace(b"<title>", b"<title>\xff\xfe\x00\xed\xa0\x80")
    return body, {"Content-Type": "text/html; charset=x-klingon"}


def _binary() -> Answer:
    return bytes(range(256)) * 400, {"Content-Type": _HTML}


#: Pages that come at once, and are bad.
PAGES: dict[str, Callable[[], Answer]] = {
    "deep": _deep,
    "labels": _labels,
    "bomb": _bomb,
    "wrong_encoding": _wrong_encoding,
    "attributes": _attributes,
    "not_gzip": _not_gzip,
    "no_encoding": _no_encoding,
    "binary": _binary,
}
#: Pages that never end: each try takes the whole time-out, so they have a county of their own.
ENDLESS = ("drip", "endless")


def _agents() -> Answer:
    """So many names for so many rules: each name gets its own copy of all of them."""
    names = "".join(f"User-agent: bot{n}\n" for n in range(3_300))
    return (names + "User-agent: *\n" + "".join(f"Disallow: /x{n}\n" for n in range(3_300))).encode(), {}


def _delay() -> Answer:
    return b"User-agent: *\nCrawl-delay: 1e300\n", {}


def _wildcards() -> Answer:
    return b"User-agent: *\nDisallow: /" + b"*a" * 5_000 + b"$\nDisallow: /admin\n", {}


def _robots_bomb() -> Answer:
    return _zeros(200_000_000), {"Content-Encoding": "gzip"}


#: robots.txt files; None is a 429 each time, a word an endless one.
ROBOTS: dict[str, Callable[[], Answer] | str | None] = {
    "crawl_delay": _delay,
    "agents": _agents,
    "bomb": _robots_bomb,
    "wildcards": _wildcards,
    "too_many": None,
    "endless": "endless",
    "drip": "drip",
}


@lru_cache(maxsize=2)
def _zeros(n: int) -> bytes:
    return gzip.compress(bytes(n), 9)


class HostileCounty(WatchedCounty):
    """`robots` is one of ROBOTS; an empty word is an ordinary one. `pages` is what its parcels are, in turn."""

    def __init__(self, *, pages: tuple[str, ...] = (), robots: str = "", **options: Any) -> None:
        super().__init__(**options)
        self._pages = pages
        self.robots = robots
        #: How often each hostile thing was handed out.
        self.struck: Counter[str] = Counter()

    def hostile_row(self, number: int) -> dict[str, str]:
        kind = self._pages[number % len(self._pages)] if self._pages else "plain"
        wanted = f"{kind}-{number}" if self._pages else self.parcels(1, number + 1)[0]["parcel_id"]
        return {**self._row(wanted), "platform": "generic"}

    @web.middleware
    async def _record(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        answer = await super()._record(request, handler)
        name = request.path.rpartition("/")[2]
        if request.path == "/robots.txt" and self.robots:
            self.struck[f"robots.txt: {self.robots}"] += 1
            return await self._robots_answer(request)
        kind = name.partition("-")[0]
        if kind in PAGES or kind in ENDLESS:
            self.struck[f"page: {kind}"] += 1
            return await _made(request, kind if kind in ENDLESS else PAGES[kind])
        return answer

    async def _robots_answer(self, request: web.Request) -> web.StreamResponse:
        made = ROBOTS[self.robots]
        if made is None:
            return web.Response(status=429, headers={"Retry-After": "2"})
        return await _made(request, made)


async def _made(request: web.Request, made: Callable[[], Answer] | str) -> web.StreamResponse:
    if isinstance(made, str):
        return await _never_end(request, made)
    body, headers = await asyncio.to_thread(made)
    return web.Response(body=body, headers={"Content-Type": "text/plain", **headers})


async def _never_end(request: web.Request, kind: str) -> web.StreamResponse:
    """Until the client has had enough."""
    response = web.StreamResponse(headers={"Content-Type": _HTML})
    await response.prepare(request)
    while True:
        await response.write(_CHUNK if kind == "endless" else b" ")
        await asyncio.sleep(0.01 if kind == "endless" else _DRIP_SECONDS)
