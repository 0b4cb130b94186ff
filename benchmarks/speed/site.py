"""The county site of the benchmark: as little as a server can do, since it shares the machine with the contenders.

It notes each page asked for and when, in a line of a file that is written when it ends or is asked for `/log`.

    python -m benchmarks.speed.site --pages 2000
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import signal
import time

from benchmarks.speed.page import parcel_id, render

_REQUEST = re.compile(rb"GET (\S+) HTTP/1\.1\r\n")


class Site:
    """The pages, ready to send, and the log of who was asked for when."""

    def __init__(self, pages: int) -> None:
        self._replies = {f"/parcel/{parcel_id(n)}".encode(): _reply(render(n), "text/html") for n in range(pages)}
        self.log: list[tuple[float, str, str]] = []

    def answer(self, path: bytes, host: str) -> bytes:
        page = self._replies.get(path)
        if page is not None:
            self.log.append((time.monotonic(), path.decode(), host))
            return page
        if path == b"/log":
            return _reply(json.dumps(self.log).encode(), "application/json")
        if path == b"/forget":
            self.log.clear()
            return _reply(b"forgotten", "text/plain")
        return _reply(b"not here", "text/plain", "404 Not Found")


def _reply(body: bytes, content_type: str, status: str = "200 OK") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {content_type}; charset=utf-8\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


class Visitor(asyncio.Protocol):
    """One connection, kept open; requests have no body, so each ends with an empty line."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._heard = b""
        self._way: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._way = transport

    def data_received(self, data: bytes) -> None:
        self._heard += data
        while (end := self._heard.find(b"\r\n\r\n")) >= 0:
            request, self._heard = self._heard[: end + 4], self._heard[end + 4 :]
            found = _REQUEST.match(request)
            host = re.search(rb"\r\n[Hh]ost: ([^\r]+)", request)
            assert found is not None
            assert self._way is not None
            self._way.write(self._site.answer(found[1], host[1].decode() if host else ""))


async def serve(pages: int, port: int) -> None:
    site, loop, over = Site(pages), asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, over.set)
    server = await loop.create_server(lambda: Visitor(site), "127.0.0.1", port, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await over.wait()
    server.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=2_000)
    parser.add_argument("--port", type=int, default=0)
    chosen = parser.parse_args()
    asyncio.run(serve(chosen.pages, chosen.port))
