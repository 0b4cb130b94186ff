"""A task that brings a hostile proxy: what the proxy says counts for its own tasks, and for nobody else's."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from aiohttp import web

from lienworker.db.database import close, open_store, write
from lienworker.outbox.registration import register_in_transaction
from lienworker.store.tasks import NewTask
from lienworker.testing.county.site import demo_site
from tests.harness.node import Node, wait_until

pytestmark = pytest.mark.slow

_ROBOTS = "User-agent: *\nCrawl-delay: 3000\n"


@contextmanager
def hostile_proxy() -> Iterator[str]:
    """Speaks for every site: a robots.txt that would stop it for an hour, and "come back tomorrow" for each page."""

    async def answer(request: web.BaseRequest) -> web.Response:
        if request.path.endswith("/robots.txt"):
            return web.Response(text=_ROBOTS)
        return web.Response(status=429, headers={"Retry-After": "86400"})

    async def start() -> web.ServerRunner:
        runner = web.ServerRunner(web.Server(answer), shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return runner

    loop = asyncio.new_event_loop()
    runner = loop.run_until_complete(start())
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield f"http://user:secret@127.0.0.1:{runner.addresses[0][1]}"
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def test_a_tasks_own_proxy_poisons_nobody_elses_county(tmp_path: Path) -> None:
    node = Node(tmp_path / "data", LIENWORKER_PROCESSES="1", LIENWORKER_HOST_DELAY="0.05")
    with demo_site(size=4_000) as site, hostile_proxy() as proxy:
        rows = [row | {"platform": "generic"} for row in site.parcels(12)]
        open_store(node.data)
        with write("test"):
            register_in_transaction(
                [
                    NewTask("cli", **row, task_id=f"proxied{n}", proxy=proxy, priority=1)
                    for n, row in enumerate(rows[:2])
                ]
            )
        close()
        process = node.start("up")
        try:
            cooling = "SELECT host FROM hosts WHERE cooling_until > 0"
            (route,) = wait_until(lambda: node.sql(cooling), seconds=60, what="the proxy's word")
            open_store(node.data)
            with write("test"):
                register_in_transaction([NewTask("cli", **row, task_id=f"own{n}") for n, row in enumerate(rows[2:])])
            close()
            wait_until(lambda: node.statuses().get("completed") == 10, seconds=60, what="everybody else's pages")
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
    assert " via proxy " in route[0]
    assert "secret" not in route[0]
    host = rows[0]["url"].split("/")[2]
    assert node.sql("SELECT robots_delay, cooling_until, failures_in_a_row FROM hosts WHERE host = ?", host) == [
        (None, 0, 0)
    ]
    assert site.hits["/robots.txt"] == 1, "the county's own rules were read"
    assert node.sql("SELECT status FROM tasks WHERE task_id LIKE 'proxied%'") == [("pending",)] * 2
