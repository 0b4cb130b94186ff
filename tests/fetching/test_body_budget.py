"""Large pages in the air are counted in bytes: many at once are read one after another, and none fails for it."""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
from aiohttp import web
from fetching_servers import failure, fetcher, page, site

from lienworker.fetching import FetchRequest
from lienworker.fetching.budget import FREE, Budget

_LARGE = 16_000_000
_CHILD = """
import asyncio, hashlib, json, sys
from tests.harness.memory import peak_kb
sys.path.insert(0, sys.argv[1])
from fetching_servers import fetcher
from lienworker.fetching import FetchRequest

async def one_page(one, url):
    outcome = await one.fetch(FetchRequest(url))
    await asyncio.sleep(0.05)  # it waits to be stored
    return len(outcome.body)

async def story(url):
    async with fetcher(max_bytes=16_000_000, total_timeout=20, read_timeout=60) as one:
        sizes = await asyncio.gather(*(one_page(one, url + "/" + str(n % 2)) for n in range(64)))
        print(json.dumps([peak_kb(), sizes]))

asyncio.run(story(sys.argv[2]))
"""


def test_sixty_four_pages_of_sixteen_megabytes_at_once_stay_within_the_memory_of_a_worker() -> None:
    body = b"<p>" + b"x" * (_LARGE - 3)

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        # Every second one does not say how large it is.
        if request.path == "/0":
            return web.Response(body=body)
        response = web.StreamResponse()
        await response.prepare(request)
        for start in range(0, len(body), 1_000_000):
            await response.write(body[start : start + 1_000_000])
        return response

    async def story() -> list[object]:
        async with site(handler) as county:
            command = [sys.executable, "-c", _CHILD, str(Path(__file__).parent), county.url]
            done = await asyncio.to_thread(
                subprocess.run, command, capture_output=True, text=True, timeout=150, check=True
            )
            return list(json.loads(done.stdout))

    most_kb, sizes = asyncio.run(story())
    assert sizes == [_LARGE] * 64
    assert isinstance(most_kb, int)
    assert most_kb < 180_000, "a worker and its child have 400 MB, and the child may have 250 of them"


def test_large_pages_that_break_off_leave_nothing_behind() -> None:
    """The error of a broken reply is kept by the reply itself: a cycle, with all that has come in its frames."""

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": str(_LARGE)})
        await response.prepare(request)
        await response.write(b"x" * (_LARGE - 1_000_000))
        assert request.transport is not None
        request.transport.close()
        return response

    async def story() -> int:
        async with site(handler) as county, fetcher(max_bytes=_LARGE) as one:
            gc.disable()
            tracemalloc.start()
            try:
                for _ in range(3):
                    assert failure(await one.fetch(FetchRequest(county.url))).reason == "protocol_error"
                return sum(held.size for held in tracemalloc.take_snapshot().traces if held.size > 400_000)
            finally:
                tracemalloc.stop()
                gc.enable()

    assert asyncio.run(story()) == 0


def test_a_page_that_is_larger_than_the_budget_is_read_all_the_same() -> None:
    async def story() -> None:
        async def handler(request: web.BaseRequest) -> web.Response:
            return web.Response(body=b"x" * 4_000_000)

        async with site(handler) as county, fetcher(max_bytes=8_000_000, body_budget=1_000_000) as one:

            async def size(n: int) -> int:
                return len(page(await one.fetch(FetchRequest(f"{county.url}/{n}"))).body)

            sizes = await asyncio.gather(*(size(n) for n in range(4)))
        assert sizes == [4_000_000] * 4

    asyncio.run(story())


def test_a_large_page_that_waits_for_its_share_does_not_run_out_of_time() -> None:
    async def story() -> None:
        body = b"x" * 2_000_000

        async def handler(request: web.BaseRequest) -> web.Response:
            return web.Response(body=body)

        limits = {"max_bytes": 2_000_000, "body_budget": 2_000_000, "total_timeout": 3.0, "read_timeout": 30}
        async with site(handler) as county, fetcher(**limits) as one:
            first = page(await one.fetch(FetchRequest(f"{county.url}/1")))
            second = asyncio.create_task(one.fetch(FetchRequest(f"{county.url}/2")))
            await asyncio.sleep(4)  # longer than a fetch may take
            assert not second.done(), "the first one is still held"
            del first
            gc.collect()
            assert page(await second).body == body

    asyncio.run(story())


def test_a_share_comes_back_when_a_page_fails_or_is_given_up() -> None:
    async def story() -> None:
        is_hanging, is_asked, release = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def handler(request: web.BaseRequest) -> web.StreamResponse:
            if request.path == "/page":
                is_asked.set()
            response = web.StreamResponse()
            await response.prepare(request)
            await response.write(b"x" * 1_500_000)
            if request.path == "/hangs":
                is_hanging.set()
                await release.wait()
            if request.path == "/large":
                await response.write(b"x" * 1_500_000)
            return response

        async with site(handler) as county, fetcher(max_bytes=2_000_000, body_budget=2_000_000) as one:
            for _ in range(3):
                assert failure(await one.fetch(FetchRequest(f"{county.url}/large"))).reason == "too_large"
            hanging = asyncio.create_task(one.fetch(FetchRequest(f"{county.url}/hangs")))
            await is_hanging.wait()
            waiting = asyncio.create_task(one.fetch(FetchRequest(f"{county.url}/page")))
            await is_asked.wait()
            hanging.cancel()
            assert len(page(await waiting).body) == 1_500_000
            release.set()

    asyncio.run(story())


def test_small_pages_do_not_wait_for_large_ones() -> None:
    async def story() -> None:
        async def handler(request: web.BaseRequest) -> web.Response:
            return web.Response(body=b"x" * (FREE if request.path == "/small" else 2_000_000))

        async with site(handler) as county, fetcher(max_bytes=2_000_000, body_budget=2_000_000) as one:
            held = page(await one.fetch(FetchRequest(f"{county.url}/large")))
            assert len(page(await one.fetch(FetchRequest(f"{county.url}/small"))).body) == FREE
            assert len(held.body) == 2_000_000

    asyncio.run(story())


@pytest.mark.parametrize("size", [1, 7, 10, 25])
def test_a_budget_serves_in_order_and_gets_back_what_the_cancelled_had(size: int) -> None:
    async def story() -> None:
        budget = Budget(10)
        taken = await budget.take(10)
        waiting = [asyncio.create_task(budget.take(wanted)) for wanted in (size, 10, 10)]
        await asyncio.sleep(0)
        waiting[1].cancel()
        await asyncio.sleep(0)
        budget.give_back(taken)
        first = await waiting[0]
        waiting[2].cancel() if size == 7 else budget.give_back(first)
        if size != 7:
            budget.give_back(await waiting[2])
        else:
            await asyncio.sleep(0)
            budget.give_back(first)
        assert await budget.take(10) == 10

    asyncio.run(story())
