"""The live stream: tells open pages that there is something new, so that they reload.

There is one query a second for all visitors together, and none without visitors. SQLite itself says whether anything
was written; only then the tallies are read. Each look is followed by `beat`, if by nothing else: a page that has not
heard one for three seconds says that it is not live.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from aiohttp import web

from lienworker.db.database import DATABASE_TROUBLE, close
from lienworker.queries.lists import data_version, pulse
from lienworker.web.guard import HEADERS

_LOOK_SECONDS = 1.0
#: Ages grow although nothing happens; and a proxy must not take the connection for dead.
_TICK_SECONDS = 15


class Listener:
    """One open stream: what it is to be told next."""

    def __init__(self) -> None:
        self._told = asyncio.Event()
        self._is_news = False
        self._ticked = time.monotonic()

    def tell(self, *, is_news: bool) -> None:
        self._is_news |= is_news
        self._told.set()

    async def next(self) -> str:
        """Wait for the next look; return the name of its event."""
        await self._told.wait()
        self._told.clear()
        is_news, self._is_news = self._is_news, False
        if not is_news and time.monotonic() - self._ticked < _TICK_SECONDS:
            return "beat"
        self._ticked = time.monotonic()
        return "news" if is_news else "tick"


class Live:
    """All listeners, and the one query that serves them."""

    def __init__(self) -> None:
        self._listeners: set[Listener] = set()
        self._task: asyncio.Task[None] | None = None
        # `data_version` is a connection's own view: always the same thread, so always the same connection.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="live")
        self._version = -1
        self._pulse: Any = None

    def _look(self) -> bool:
        version = data_version()
        if version == self._version:
            return False
        self._version = version
        before, self._pulse = self._pulse, pulse()
        return bool(before != self._pulse)

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        while self._listeners:
            # Without a database there is no beat: what pages show may be old then.
            with contextlib.suppress(*DATABASE_TROUBLE):
                is_news = await loop.run_in_executor(self._thread, self._look)
                for listener in self._listeners:
                    listener.tell(is_news=is_news)
            await asyncio.sleep(_LOOK_SECONDS)

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[Listener]:
        listener = Listener()
        self._listeners.add(listener)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._watch())
        try:
            yield listener
        finally:
            self._listeners.discard(listener)

    async def stream(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"retry: 2000\nevent: hello\ndata: 1\n\n")
        async with self.listening() as listener:
            with contextlib.suppress(ConnectionError):
                while True:
                    await response.write(f"event: {await listener.next()}\ndata: 1\n\n".encode())
        return response

    async def stop(self) -> None:
        if self._task:
            self._task.cancel()
        self._thread.submit(close)
        self._thread.shutdown()
