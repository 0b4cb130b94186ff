"""A monitor under test: the real server on a data folder, asked over real HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import re
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from tests.harness.node import Node, wait_until

#: Another beginning in each process, and below what the system hands out: there, a port that was free a moment ago
#: may be the near end of any connection.
_PORTS = itertools.cycle(range(10_000, 32_000))
for _ in range(os.getpid() * 101 % 22_000):
    next(_PORTS)


def free_port() -> int:
    """Return a port that nobody has, for a program that must be told which."""
    for port in _PORTS:
        with socket.socket() as found, contextlib.suppress(OSError):
            found.bind(("127.0.0.1", port))
            return port
    raise AssertionError("unreachable")


@contextmanager
def refused_port() -> Iterator[int]:
    """A port on which nobody listens, and nobody else can begin to."""
    with socket.socket() as kept:
        kept.bind(("127.0.0.1", 0))
        yield int(kept.getsockname()[1])


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


class Monitor:
    """A monitor as somebody sees it who has its token, or as a stranger does."""

    def __init__(self, port: int, token: str | None = None) -> None:
        self.port = port
        self.token = token
        self.url = f"http://127.0.0.1:{port}"
        self.output = ""

    @property
    def credentials(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    @property
    def as_stranger(self) -> Monitor:
        return Monitor(self.port)

    def link(self, path: str = "/") -> str:
        """What a person opens: the address with the token in it."""
        return f"{self.url}{path}{'&' if '?' in path else '?'}token={self.token}"

    def ask(self, path: str, method: str = "GET", *, data: Any = None, **headers: str) -> Reply:
        """One request as it is: no cookies, no following."""
        given = self.credentials | {name.replace("_", "-"): value for name, value in headers.items()}
        # On a thread of its own: the browser's driver keeps an event loop on the test's.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(lambda: asyncio.run(self._ask(path, method, data, given))).result()

    async def _ask(self, path: str, method: str, data: Any, headers: dict[str, str]) -> Reply:
        jar = aiohttp.DummyCookieJar()
        async with (
            aiohttp.ClientSession(cookie_jar=jar) as session,
            session.request(method, self.url + path, data=data, headers=headers, allow_redirects=False) as reply,
        ):
            return Reply(reply.status, {k.lower(): v for k, v in reply.headers.items()}, await reply.text())

    def metrics(self) -> str:
        return self.ask("/metrics").text

    def csrf(self) -> str:
        found = re.search(r'name="csrf" content="([0-9a-f]+)"', self.ask("/audit").text)
        assert found
        return found.group(1)

    def is_there(self) -> bool:
        try:
            return self.ask("/healthz").status == 200
        except aiohttp.ClientError:
            return False


@contextmanager
def monitor(node: Node, *arguments: str, **settings: str) -> Iterator[Monitor]:
    port = free_port()
    process = node.start("web", "--port", str(port), *arguments, **settings)
    here = Monitor(port)
    said: list[str] = []
    reader = threading.Thread(target=lambda: said.extend(process.stdout or ()), daemon=True)
    reader.start()  # a monitor that logs much would stop at a pipe that is full
    try:
        wait_until(lambda: here.is_there() or process.poll() is not None, what="the monitor to answer")
        assert process.poll() is None, "".join(said)
        here.token = (node.data / "web_token").read_text().strip()
        yield here
    finally:
        process.terminate()
        process.wait(timeout=60)
        reader.join(timeout=60)
        here.output = "".join(said)
