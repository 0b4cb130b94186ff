"""Any of the county sites on loopback: in a thread of this process for a test, or in the foreground by hand."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from aiohttp import web

HOST = "127.0.0.1"


class Site(Protocol):
    """What can be served; it is told its own address."""

    url: str

    def app(self) -> web.Application: ...


@contextmanager
def serving(site: Site, port: int = 0) -> Iterator[None]:
    """Serve the site in a thread of this process, for as long as the block runs."""
    loop = asyncio.new_event_loop()
    runner = loop.run_until_complete(_start(site, port))
    thread = threading.Thread(target=loop.run_forever, name="county-site", daemon=True)
    thread.start()
    try:
        yield
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def serve_until_told(site: Site, host: str, port: int, port_file: Path | None) -> None:
    """Serve the site until interrupted. Prints its address; `port_file` gets the bare port."""
    runner = await _start(site, port, host)
    if port_file:
        port_file.write_text(site.url.rpartition(":")[2] + "\n")
    sys.stdout.write(f"{site.url}\n")
    sys.stdout.flush()
    try:
        await _until_told_to_stop()
    finally:
        await runner.cleanup()


async def _until_told_to_stop() -> None:
    told = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    await told.wait()


async def _start(site: Site, port: int, host: str = HOST) -> web.AppRunner:
    # A client that hangs up during the slow page must not keep the site from stopping.
    runner = web.AppRunner(site.app(), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, host, port).start()
    site.url = f"http://{host}:{runner.addresses[0][1]}"
    return runner
