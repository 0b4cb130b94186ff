"""The web site of Juniper County, on loopback, with a complete log of who asked for what.

Run it by hand with `python -m lienworker.testing.county.site --port 8900`, in a test with `with demo_site() as site:`.
Besides its ordinary parcels it has a few odd ones, so that a demo shows how failures look.
"""

from __future__ import annotations

import argparse
import asyncio
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

from aiohttp import web
from aiohttp.typedefs import Handler

from lienworker.testing.county.pages import DEFAULT_SIZE, page, parcel_id, parcel_number, render_parcel
from lienworker.testing.serving import HOST, serve_until_told, serving

ODD = {
    "missing": "99-404-0000000",
    "captcha": "99-403-0000000",
    "slow": parcel_id(9_000_001),
    "busy": parcel_id(9_000_002),
}
_CAPTCHA = page("Are you human?", '<h2>Verify you are human</h2><div class="g-recaptcha" data-sitekey="demo"></div>')
_MISSING = page("Not found", "<p>No records found. This parcel does not exist in Juniper County.</p>")


class DemoSite:
    """The county's site: its address, its parcels and the log of every request it ever got."""

    def __init__(self, *, size: int = DEFAULT_SIZE, latency: float = 0.0, slow_seconds: float = 2.0) -> None:
        """`size`: bytes of a page; `latency`: seconds of each answer; `slow_seconds`: those of the slow parcel."""
        self.url = ""
        self.size = size
        self.latency = latency
        self.slow_seconds = slow_seconds
        self._log: list[tuple[str, float]] = []
        self._lock = threading.Lock()

    @property
    def log(self) -> list[tuple[str, float]]:
        """Every request as (path, monotonic seconds), in the order of arrival."""
        with self._lock:
            return list(self._log)

    @property
    def hits(self) -> dict[str, int]:
        """How often each path was asked for."""
        return dict(Counter(path for path, _ in self.log))

    def tasks(self, n: int) -> list[dict[str, object]]:
        """The same as the Gateway would hand them out, the odd ones included."""
        return [
            {
                "task_id": f"demo-{number:05d}",
                "platform": row["platform"],
                "target": {key: value for key, value in row.items() if key != "platform"},
                "priority": 3,
            }
            for number, row in enumerate(self.parcels(n) + self.odd_parcels(), 1)
        ]

    def parcels(self, n: int, start: int = 1) -> list[dict[str, str]]:
        """Rows for an import: `n` ordinary parcels."""
        return [self._row(parcel_id(number)) for number in range(start, start + n)]

    def odd_parcels(self) -> list[dict[str, str]]:
        """Rows for an import: a missing one, one behind a captcha, a slow one, one that is busy at first."""
        return [self._row(wanted) for wanted in ODD.values()]

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self._record])
        app.router.add_get("/", self._index)
        app.router.add_get("/robots.txt", self._robots)
        app.router.add_get("/parcel/{id}", self._parcel)
        return app

    def _row(self, wanted: str) -> dict[str, str]:
        place = {"platform": "demo", "state": "XX", "county": "Juniper", "parcel_id": wanted}
        return {"url": f"{self.url}/parcel/{wanted}", **place}

    @web.middleware
    async def _record(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        with self._lock:
            self._log.append((request.path, time.monotonic()))
        if self.latency:
            await asyncio.sleep(self.latency)
        return await handler(request)

    async def _index(self, request: web.Request) -> web.Response:
        links = "".join(f'<li><a href="/parcel/{parcel_id(n)}">{parcel_id(n)}</a></li>' for n in range(1, 51))
        return _html(page("Juniper County", f"<h2>Some parcels</h2><ul>{links}</ul>"))

    async def _robots(self, request: web.Request) -> web.Response:
        return web.Response(text="User-agent: *\nDisallow: /admin/\n")

    async def _parcel(self, request: web.Request) -> web.Response:
        wanted = request.match_info["id"]
        if wanted == ODD["captcha"]:
            return _html(_CAPTCHA)
        if wanted == ODD["busy"] and self.hits[request.path] == 1:
            return web.Response(status=503, text="Busy, come back in a second.", headers={"Retry-After": "1"})
        if wanted == ODD["slow"]:
            await asyncio.sleep(self.slow_seconds)
        number = parcel_number(wanted)
        if number is None:
            return _html(_MISSING, status=404)
        return web.Response(body=_rendered(number, self.size), content_type="text/html", charset="utf-8")


@contextmanager
def demo_site(
    *, size: int = DEFAULT_SIZE, latency: float = 0.0, slow_seconds: float = 2.0, port: int = 0
) -> Iterator[DemoSite]:
    """The site in a thread of this process, on loopback, for as long as the block runs."""
    site = DemoSite(size=size, latency=latency, slow_seconds=slow_seconds)
    with serving(site, port):
        yield site


def run_site(port: int = 0, port_file: Path | None = None, *, latency: float = 0.0, host: str = HOST) -> None:
    """The site in the foreground until interrupted. Prints its address; `port_file` gets the bare port."""
    with suppress(KeyboardInterrupt):
        asyncio.run(serve_until_told(DemoSite(latency=latency), host, port, port_file))


@lru_cache(maxsize=4096)
def _rendered(number: int, size: int) -> bytes:
    return render_parcel(number, size).encode()


def _html(text: str, status: int = 200) -> web.Response:
    return web.Response(text=text, status=status, content_type="text/html")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m lienworker.testing.county.site", description="The demo county's web site."
    )
    parser.add_argument("--host", default=HOST, help="where to listen")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--port-file", type=Path, help="write the port here once the site answers")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds that each answer takes")
    asked = parser.parse_args()
    run_site(asked.port, asked.port_file, latency=asked.latency, host=asked.host)


if __name__ == "__main__":
    main()
