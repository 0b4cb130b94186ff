"""How far apart requests are where they arrive: pages, robots.txt, redirects and retries of two worker processes."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.typedefs import Handler

from lienworker.testing.county.pages import parcel_id
from lienworker.testing.county.site import DemoSite
from lienworker.testing.serving import serving
from tests.harness.node import Node, write_list
from tests.harness.pace import Lag

pytestmark = pytest.mark.slow

_DELAY = 0.4
#: What a request may come too early by: 20 ms, or 2 %.
_TOLERANCE = max(0.02, 0.02 * _DELAY)


class MeasuredSite(DemoSite):
    """Sends every third parcel round by a redirect, and is busy at the first request for every fifth."""

    def __init__(self, crawl_delay: float | None = None) -> None:
        super().__init__(size=4_000)
        self._crawl_delay = crawl_delay

    def app(self) -> web.Application:
        app = super().app()
        app.middlewares.append(self._trouble)
        app.router.add_get("/moved/{id}", self._parcel)
        return app

    @web.middleware
    async def _trouble(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        number = int(request.path[-4:]) if request.path.startswith("/parcel/") else 1
        if number % 3 == 0:
            raise web.HTTPFound(request.path.replace("/parcel/", "/moved/"))
        if number % 5 == 0 and self.hits[request.path] == 1:
            return web.Response(status=500, text="not now")
        return await handler(request)

    async def _robots(self, request: web.Request) -> web.Response:
        wish = f"Crawl-delay: {self._crawl_delay}\n" if self._crawl_delay else ""
        return web.Response(text=f"User-agent: *\n{wish}Disallow: /admin/\n")

    def gaps(self) -> list[tuple[float, float]]:
        """Each request's time, and how long after it the next one came."""
        return [(first, second - first) for (_, first), (_, second) in pairwise(self.log)]


@contextlib.contextmanager
def sites(*crawl_delays: float | None) -> Iterator[list[MeasuredSite]]:
    with contextlib.ExitStack() as stack:
        made = [MeasuredSite(wish) for wish in crawl_delays]
        for site in made:
            stack.enter_context(serving(site))
        yield made


def test_no_two_requests_reach_a_host_closer_together_than_it_wants(tmp_path: Path) -> None:
    node = Node(
        tmp_path / "data",
        LIENWORKER_HOST_DELAY=str(_DELAY),
        LIENWORKER_HOST_CONCURRENCY="4",
        LIENWORKER_PROCESSES="2",
        LIENWORKER_RETRY_DELAY="0.1",
    )
    with Lag() as lag, sites(None, None, 0.8) as counties:
        parcels = [
            row | {"platform": "generic"} for site in counties for row in site.parcels(15)
        ]  # "demo" wants no delay
        done = node.cli("run", write_list(tmp_path / "parcels.jsonl", parcels))
        assert done.returncode == 0, done.stdout + done.stderr
    assert node.statuses() == {"completed": 45}

    too_close = defaultdict(list)
    for site in counties:
        kinds = {path.split("/")[1] for path, _ in site.log}
        assert kinds == {"robots.txt", "parcel", "moved"}, "or nothing was measured"
        for moment, gap in site.gaps():
            if gap < _DELAY - _TOLERANCE - lag.at(moment):
                too_close[site.url].append(round(gap, 3))
    assert dict(too_close) == {}
    # Once its robots.txt is known to all, a site's own wish counts.
    slow = [gap + lag.at(moment) for moment, gap in counties[2].gaps()][4:]
    assert min(slow) > 0.8 - _TOLERANCE


def test_the_demo_numbers_parcels_as_this_file_expects() -> None:
    assert [int(parcel_id(n)[-4:]) for n in (1, 15)] == [1, 15]
