"""How many connections may be open, and for how long.

A visitor without a valid token is a stranger: a stranger gets one request and a few seconds, however they are spent
(silent, dripping headers, half a body, never reading the answer). Strangers have separate places; one too many costs
the oldest stranger its place, never an authenticated visitor. So a flood cannot lock the operator out: a visitor that
sends its request at once is recognized before enough others have come after it.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import resource
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

#: For a stranger's connection in total, s: headers, body and answer.
_STRANGER_SECONDS = 10.0
_STRANGERS, _ALL = 256, 384
#: Connections accepted at a time: far fewer than there are places, so that a newcomer is heard before it is dropped.
BATCH = 64
#: Connections that the kernel keeps waiting meanwhile; one that finds no place there retries after a second.
_WAITING = 1024
_NO_ROOM = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
_SAY_AGAIN_SECONDS = 60.0

logger = logging.getLogger(__name__)


class Door:
    """The open connections of one server: strangers, oldest first, and authenticated visitors."""

    def __init__(self) -> None:
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        share = files // 4 if files > 0 else _STRANGERS  # the rest is for the database, downloads and children
        self._most_strangers, self._most = min(_STRANGERS, share), min(_ALL, share * 3 // 2)
        self._strangers: OrderedDict[asyncio.BaseTransport, asyncio.TimerHandle] = OrderedDict()
        self._known: set[asyncio.BaseTransport] = set()

    def arrived(self, transport: asyncio.Transport) -> None:
        loop = asyncio.get_running_loop()
        self._strangers[transport] = loop.call_later(_STRANGER_SECONDS, self._turn_away, transport)
        while len(self._strangers) > self._most_strangers or self._are_too_many():
            self._turn_away(next(iter(self._strangers)))

    def _are_too_many(self) -> bool:
        return bool(self._strangers) and len(self._strangers) + len(self._known) > self._most

    def recognize(self, transport: asyncio.BaseTransport | None) -> None:
        """Count a connection as authenticated; only the server's own timeouts apply from now on."""
        if transport is not None and (timer := self._strangers.pop(transport, None)):
            timer.cancel()
            self._known.add(transport)

    def left(self, transport: asyncio.BaseTransport) -> None:
        self._known.discard(transport)
        if timer := self._strangers.pop(transport, None):
            timer.cancel()

    def _turn_away(self, transport: asyncio.BaseTransport) -> None:
        self.left(transport)
        if isinstance(transport, asyncio.WriteTransport):
            transport.abort()


class Watched(asyncio.Protocol):
    """A connection that passes the door before the web server's own protocol gets it."""

    def __init__(self, door: Door, inner: asyncio.Protocol) -> None:
        self._door, self._inner = door, inner
        self._transport: asyncio.BaseTransport | None = None
        self.data_received = inner.data_received  # type: ignore[method-assign]
        self.eof_received = inner.eof_received  # type: ignore[method-assign]
        self.pause_writing = inner.pause_writing  # type: ignore[method-assign]
        self.resume_writing = inner.resume_writing  # type: ignore[method-assign]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._inner.connection_made(transport)
        if isinstance(transport, asyncio.Transport):
            self._door.arrived(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._transport is not None:
            self._door.left(self._transport)
        self._inner.connection_lost(exc)


async def listen(door: Door, make: Callable[[], asyncio.Protocol], host: str, port: int) -> asyncio.Server:
    """Accept connections through the door."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Watched(door, make()), host, port, backlog=BATCH)
    for listening in server.sockets:
        with listening.dup() as same:  # asyncio uses one number for what is accepted at a time and for what waits
            same.listen(_WAITING)
    return server


class AcceptErrorHandler:
    """Logs that no connection can be accepted as one line a minute instead of a stack trace for each try."""

    def __init__(self) -> None:
        self._said_at = -_SAY_AGAIN_SECONDS

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        problem = context.get("exception")
        if not isinstance(problem, OSError) or problem.errno not in _NO_ROOM:
            loop.default_exception_handler(context)
        elif time.monotonic() - self._said_at >= _SAY_AGAIN_SECONDS:
            self._said_at = time.monotonic()
            logger.warning("the monitor can take no connection now: %s", problem.strerror, extra={"action": "web"})
