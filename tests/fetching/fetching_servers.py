"""Real servers on loopback for the tests of fetching: sites, broken sites, and two kinds of proxy."""

from __future__ import annotations

import asyncio
import base64
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from dataclasses import replace as changed

from aiohttp import web

from lienworker.fetching import Fetched, Fetcher, FetchFailed, FetchOptions, FetchOutcome, FetchRequest

PAGE = b"<html><body>Parcel 12-34-567</body></html>"

OPTIONS = FetchOptions(
    user_agent="lienworker-test/1.0 (+https://county.test/bot)",
    connect_timeout=20,
    read_timeout=20,
    total_timeout=60,
    max_bytes=1_000_000,
    max_redirects=5,
    obey_robots=False,
    allow_private=("127.0.0.1", "::1"),
)

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Site:
    """A site that remembers what it was asked."""

    port: int = 0
    host: str = "127.0.0.1"
    seen: list[web.BaseRequest] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://[{self.host}]:{self.port}" if ":" in self.host else f"http://{self.host}:{self.port}"

    @property
    def paths(self) -> list[str]:
        return [request.path for request in self.seen]


@asynccontextmanager
async def site(handler: Handler, host: str = "127.0.0.1") -> AsyncIterator[Site]:
    here = Site(host=host)

    async def remember(request: web.BaseRequest) -> web.StreamResponse:
        here.seen.append(request)
        return await handler(request)

    runner = web.ServerRunner(web.Server(remember), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, host, 0).start()
    here.port = runner.addresses[0][1]
    try:
        yield here
    finally:
        await runner.cleanup()


def always(body: bytes = PAGE, status: int = 200, **headers: str) -> Handler:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    named.setdefault("Content-Type", "text/html")

    async def handler(request: web.BaseRequest) -> web.Response:
        return web.Response(body=body, status=status, headers=named)

    return handler


def pages(**by_path: web.Response | bytes) -> Handler:
    """`pages(robots_txt=…, index=…)`: `/robots.txt`, `/index`; anything else is not found."""

    async def handler(request: web.BaseRequest) -> web.Response:
        found = by_path.get(request.path.strip("/").replace(".", "_"))
        if isinstance(found, bytes):
            return web.Response(body=found, content_type="text/html")
        # A response object can be sent once; the same path may be asked for again.
        return (
            web.Response(status=404)
            if found is None
            else web.Response(body=found.body, status=found.status, headers=found.headers)
        )

    return handler


def redirect(to: str, status: int = 302, **headers: str) -> web.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return web.Response(status=status, headers={"Location": to, **named})


@asynccontextmanager
async def listening(talk: Talk) -> AsyncIterator[int]:
    """A server that speaks whatever `talk` writes; yields its port."""

    async def guarded(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await talk(reader, writer)
        writer.close()

    server = await asyncio.start_server(guarded, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def replying(*parts: bytes, then: Talk | None = None) -> Talk:
    """Reads a request, writes the parts, does `then`, hangs up."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for part in parts:
            writer.write(part)
            await writer.drain()
        if then is not None:
            await then(reader, writer)

    return talk


async def never_answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()  # until the other side gives up


_KEPT: list[socket.socket] = []


async def refused_port() -> int:
    """Return a port on which nobody listens; it stays taken, so that nobody else can begin to."""
    _KEPT.append(socket.socket())
    _KEPT[-1].bind(("127.0.0.1", 0))
    return int(_KEPT[-1].getsockname()[1])


@asynccontextmanager
async def fetcher(**changes: object) -> AsyncIterator[Fetcher]:
    lookup = changes.pop("lookup", None)
    options = changed(OPTIONS, **changes)  # type: ignore[arg-type]
    one = Fetcher(options, lookup=lookup) if lookup else Fetcher(options)  # type: ignore[arg-type]
    try:
        yield one
    finally:
        await one.close()


async def fetch(url: str, *, etag: str | None = None, proxy: str | None = None, **changes: object) -> FetchOutcome:
    """One fetch by a fetcher of its own."""
    async with fetcher(**changes) as one:
        return await one.fetch(FetchRequest(url, etag=etag, proxy=proxy))


def page(outcome: FetchOutcome) -> Fetched:
    assert isinstance(outcome, Fetched), outcome
    return outcome


def failure(outcome: FetchOutcome) -> FetchFailed:
    assert isinstance(outcome, FetchFailed), outcome
    return outcome


def names(**addresses: str | list[str]) -> Callable[[str], Awaitable[list[str]]]:
    """A name service: `names(county_test="192.0.2.1")` knows county.test and nobody else."""
    known = {name.replace("_", "."): value for name, value in addresses.items()}

    async def lookup(host: str) -> list[str]:
        if host not in known:
            raise OSError("unknown name")
        found = known[host]
        return [found] if isinstance(found, str) else found

    return lookup


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.write_eof()


async def _join(
    client: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    target: tuple[asyncio.StreamReader, asyncio.StreamWriter],
) -> None:
    try:
        await asyncio.gather(_pipe(client[0], target[1]), _pipe(target[0], client[1]))
    finally:
        target[1].close()


@dataclass
class Proxy:
    """What a proxy was asked for, and how it treats those who ask."""

    port: int = 0
    asked: list[str] = field(default_factory=list)
    login: tuple[str, str] | None = None
    leads_to: int = 0
    """The port on loopback that all names lead to, as the proxy resolves them."""
    answer: int = 0
    """SOCKS: the reply code."""


@asynccontextmanager
async def http_proxy(proxy: Proxy) -> AsyncIterator[Proxy]:
    """A forward proxy for plain http (no CONNECT)."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        first, _, rest = head.partition(b"\r\n")
        method, url, version = first.decode().split(" ")
        proxy.asked.append(url)
        if proxy.login and _basic(proxy.login) not in rest:
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            return
        path = "/" + url.split("/", 3)[3]
        target = await asyncio.open_connection("127.0.0.1", proxy.leads_to)
        kept = [line for line in rest.split(b"\r\n") if not line.lower().startswith((b"proxy-", b"connection"))]
        target[1].write(f"{method} {path} {version}\r\nConnection: close\r\n".encode() + b"\r\n".join(kept))
        await _join((reader, writer), target)

    async with listening(talk) as proxy.port:
        yield proxy


def _basic(login: tuple[str, str]) -> bytes:
    return b"Proxy-Authorization: Basic " + base64.b64encode(":".join(login).encode())


@asynccontextmanager
async def socks_proxy(proxy: Proxy) -> AsyncIterator[Proxy]:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, count = await reader.readexactly(2)
        await reader.readexactly(count)
        if not await _greet(proxy, reader, writer):
            return
        _, _, _, kind = await reader.readexactly(4)
        length = {1: 4, 4: 16}.get(kind) or (await reader.readexactly(1))[0]
        host = await reader.readexactly(length)
        (port,) = struct.unpack("!H", await reader.readexactly(2))
        proxy.asked.append(f"{host.decode() if kind == 3 else '.'.join(map(str, host))}:{port}")
        writer.write(bytes([5, proxy.answer, 0, 1, 0, 0, 0, 0, 0, 0]))
        if proxy.answer == 0:
            await _join((reader, writer), await asyncio.open_connection("127.0.0.1", proxy.leads_to))

    async with listening(talk) as proxy.port:
        yield proxy


async def _greet(proxy: Proxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    if proxy.login is None:
        writer.write(b"\x05\x00")
        return True
    writer.write(b"\x05\x02")
    await reader.readexactly(1)
    user = await reader.readexactly((await reader.readexactly(1))[0])
    password = await reader.readexactly((await reader.readexactly(1))[0])
    welcome = (user.decode(), password.decode()) == proxy.login
    writer.write(b"\x01\x00" if welcome else b"\x01\x01")
    return welcome
