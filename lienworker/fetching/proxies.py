"""Routes to a site: directly, through an HTTP proxy, through a SOCKS5 proxy.

A proxy resolves the site's name itself, so the guard cannot hold it to the address that was checked here; it refuses
literal addresses and names that are private as seen from here. The proxy's own address is guarded like any other, and a
SOCKS connector gets the checked address, not the name.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.tracing import Trace
from yarl import URL

from lienworker.fetching.failures import FetchError
from lienworker.fetching.guard import Guard, GuardedResolver
from lienworker.fetching.turns import InTurn
from lienworker.fetching.urls import is_host

_MAX_SOCKS_SESSIONS = 8
_DEFAULT_PORTS = {"http": 80, "socks5": 1080, "socks5h": 1080}


@dataclass(frozen=True, slots=True)
class Route:
    session: aiohttp.ClientSession
    proxy: URL | None = None
    """An HTTP proxy, which goes with each request; a SOCKS proxy is part of its session."""


@dataclass(slots=True)
class _SocksSession:
    session: aiohttp.ClientSession
    users: int = 0


OpenSession = Callable[[aiohttp.BaseConnector], aiohttp.ClientSession]
_Key = tuple[URL, str]


class Proxies:
    """Keeps a few SOCKS sessions open, for their connections; HTTP proxies share the direct session."""

    def __init__(self, guard: Guard, direct: aiohttp.ClientSession, open_session: OpenSession) -> None:
        self._guard = guard
        self._direct = direct
        self._open_session = open_session
        self._socks: OrderedDict[_Key, _SocksSession] = OrderedDict()

    @asynccontextmanager
    async def route(self, proxy: str) -> AsyncIterator[Route]:
        url = parse_proxy(proxy)
        address = await self._checked_address(url)
        if url.scheme == "http":
            yield Route(self._direct, url)
            return
        # The address is part of the key: when the name moves, a new session is opened for the new address.
        entry = self._session((url, address))
        entry.users += 1
        try:
            yield Route(entry.session)
        finally:
            entry.users -= 1
            await self._trim()

    async def _checked_address(self, url: URL) -> str:
        host, port = _place(url)
        try:
            return (await self._guard.addresses(host, port))[0]
        except FetchError as failure:
            reason = "proxy_failed" if failure.reason == "dns_failed" else failure.reason
            raise FetchError(reason, f"The proxy cannot be used: {failure.detail}") from None

    def _session(self, key: _Key) -> _SocksSession:
        entry = self._socks.get(key)
        if entry is None:
            entry = self._socks[key] = _SocksSession(self._open_session(_socks_connector(*key)))
        self._socks.move_to_end(key)
        return entry

    async def _trim(self) -> None:
        """Close the sessions that have been unused the longest, but none in use."""
        spare = len(self._socks) - _MAX_SOCKS_SESSIONS
        idle = [key for key, entry in self._socks.items() if not entry.users]
        for key in idle[: max(spare, 0)]:
            await self._socks.pop(key).session.close()

    async def close(self) -> None:
        while self._socks:
            await self._socks.popitem()[1].session.close()


def parse_proxy(text: str) -> URL:
    """Parse a proxy's address. The error does not repeat it: it may hold a password."""
    try:
        url = URL(text.strip())
        host = url.raw_host or ""
    except ValueError:
        raise FetchError("bad_url", "The proxy's address cannot be read.") from None
    if url.scheme not in _DEFAULT_PORTS:
        raise FetchError("scheme_refused", "A proxy's address begins with http://, socks5:// or socks5h://.")
    if not is_host(host) or url.explicit_port == 0:
        raise FetchError("bad_url", "The proxy's address has no host that can exist.")
    return url


def _place(url: URL) -> tuple[str, int]:
    assert url.raw_host is not None  # parse_proxy saw to it
    return url.raw_host, url.port or _DEFAULT_PORTS[url.scheme]


def _socks_connector(url: URL, address: str) -> aiohttp.BaseConnector:
    from aiohttp_socks import ProxyConnector, ProxyType  # only here: most installations never need it

    class Connector(InTurn, ProxyConnector):
        """A proxy's connections are handed out in turn like any other."""

    return Connector(
        host=address,
        port=_place(url)[1],
        proxy_type=ProxyType.SOCKS5,
        username=url.user,
        password=url.password,
        rdns=True,
        limit=MAX_CONNECTIONS,
    )


# Connections to sites: to guarded addresses only, kept open for the next page, read in small pieces.


MAX_CONNECTIONS = 200

# asyncio asks the socket for 256 KB at a time, and the C library maps and unmaps that much memory for each read:
# 25 page faults for a page of 50 KB, against 11 with this.
_BITE = 64 * 1024


class Connector(InTurn, aiohttp.TCPConnector):
    """A connector without a limit per host: how many requests a site gets at a time is decided elsewhere."""

    def __init__(self, guard: Guard) -> None:
        super().__init__(
            resolver=GuardedResolver(guard),
            use_dns_cache=False,  # the guard has one, for all connectors
            limit=MAX_CONNECTIONS,
            limit_per_host=0,
        )

    async def _create_connection(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> ResponseHandler:
        protocol = await super()._create_connection(req, traces, timeout)
        transport = protocol.transport
        # Other event loops and TLS have no such attribute, and no need for it.
        if transport is not None and hasattr(transport, "max_size"):
            transport.max_size = _BITE
        return protocol
