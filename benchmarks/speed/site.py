"""The county site of the benchmark: as little as a server can do, since it shares the machine with the contenders.

It notes each page asked for, when, and of which host, and tells it under `/log`. It answers for as many hosts as
wanted (127.0.1.1, 127.0.1.2 …), since each address of the loopback network is one.

    python -m benchmarks.speed.site [--hosts 500] [--slow 127.0.1.7 --seconds 5]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import signal
import time

from benchmarks.speed.page import render

_REQUEST = re.compile(rb"GET (\S+) HTTP/1\.1\r\n")
_HOST = re.compile(rb"\r\n[Hh]ost: ([^\r]+)")
#: Pages that are ready to send; more parcels than that share them.
_DIFFERENT = 2_000


class Site:
    """The pages, ready to send, and the log of who was asked for when."""

    def __init__(self) -> None:
        self._replies = [_reply(render(n), "text/html") for n in range(_DIFFERENT)]
        self.log: list[tuple[float, str, str]] = []

    def answer(self, path: bytes, host: str) -> bytes:
        if path.startswith(b"/parcel/"):
            self.log.append((time.monotonic(), path.decode(), host))
            return self._replies[hash(path) % _DIFFERENT]
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

    def __init__(self, site: Site, slow: str, seconds: float) -> None:
        self._site = site
        self._slow, self._seconds = slow, seconds
        self._heard = b""
        self._way: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._way = transport

    def data_received(self, data: bytes) -> None:
        self._heard += data
        while (end := self._heard.find(b"\r\n\r\n")) >= 0:
            request, self._heard = self._heard[: end + 4], self._heard[end + 4 :]
            found, host = _REQUEST.match(request), _HOST.search(request)
            assert found is not None
            self._answer(found[1], host[1].decode() if host else "")

    def _answer(self, path: bytes, host: str) -> None:
        assert self._way is not None
        reply = self._site.answer(path, host)
        if self._slow and host.startswith(self._slow):
            asyncio.get_running_loop().call_later(self._seconds, self._way.write, reply)
        else:
            self._way.write(reply)


async def serve(chosen: argparse.Namespace) -> None:
    site, loop, over = Site(), asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, over.set)
    server = await loop.create_server(lambda: Visitor(site, chosen.slow, chosen.seconds), "127.0.0.1", 0, backlog=1024)
    port = server.sockets[0].getsockname()[1]
    others = [host_address(n) for n in range(1, chosen.hosts + 1)] + [chosen.slow] * bool(chosen.slow)
    if others:
        await loop.create_server(lambda: Visitor(site, chosen.slow, chosen.seconds), others, port, backlog=64)
    print(port, flush=True)
    await over.wait()


def host_address(number: int) -> str:
    return f"127.0.{1 + number // 250}.{1 + number % 250}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=0)
    parser.add_argument("--slow", default="")
    parser.add_argument("--seconds", type=float, default=5.0)
    asyncio.run(serve(parser.parse_args()))
