"""One HTTP exchange with the Gateway, bounded in time and size, with every failure turned into a value."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
from yarl import URL

from lienworker.fetching.body import read_body
from lienworker.fetching.failures import FetchError
from lienworker.hubs.gateway.outcomes import Kind, Refused, Unavailable
from lienworker.hubs.gateway.replies import error_words, plain_words, retry_after

#: No more is read of a reply that brings nothing but words.
ERROR_BODY = 65_536
# 4xx by which the Gateway speaks of what was sent, not of itself. 408, 425 and the like are not among them.
_ROW_STATUSES = frozenset({400, 409, 411, 413, 414, 415, 422, 431})


@dataclass(frozen=True, slots=True)
class Exchange:
    """A status, headers and as much of the body as arrived; `broken` says what ended it early."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    broken: Unavailable | None = None


class Transport:
    """The connection pool of one event loop. A client used on another loop gets a fresh one there."""

    def __init__(self, scrub: Callable[[str], str]) -> None:
        self._scrub = scrub
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def exchange(
        self,
        method: str,
        url: URL,
        *,
        headers: Mapping[str, str],
        timeout: aiohttp.ClientTimeout,
        limit: int,
        data: Any = None,
    ) -> Exchange | Unavailable:
        """Sends one request and reads the reply, up to `limit` bytes. Redirects are not followed: the token would go
        along."""
        session = self._session_here()
        try:
            async with session.request(
                method, url, headers=headers, data=data, timeout=timeout, allow_redirects=False
            ) as response:
                return await self._read(response, limit)
        except _FAILURES as failure:
            return self._unavailable(failure)

    async def close(self) -> None:
        if self._session is not None and self._loop is asyncio.get_running_loop():
            await self._session.close()
        self._session = None

    async def _read(self, response: aiohttp.ClientResponse, limit: int) -> Exchange:
        limit = limit if response.status < 300 else min(ERROR_BODY, limit)
        chunks: list[bytes] = []
        broken: Unavailable | None = None
        try:
            if not await read_body(response, limit, chunks):
                broken = Unavailable(Kind.GARBAGE, f"the reply is larger than {limit} bytes")
        except _FAILURES as failure:
            broken = self._unavailable(failure)
        return Exchange(response.status, response.headers, b"".join(chunks), broken)

    def _session_here(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        if self._session is None or self._session.closed or self._loop is not loop:
            self._session, self._loop = _new_session(), loop
        return self._session

    def _unavailable(self, failure: BaseException) -> Unavailable:
        words = plain_words(self._scrub(f"{type(failure).__name__}: {failure}".removesuffix(": ")))
        return Unavailable(_kind(failure), words)


def _new_session() -> aiohttp.ClientSession:
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=60),  # the callers bound what is in the air
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"Accept-Encoding": "identity", "User-Agent": "lienworker"},
        trust_env=False,
        auto_decompress=False,  # `read_body` unpacks, and stops at the limit
    )
    # aiohttp repeats a GET whose connection broke. A repeated poll would take a second load of tasks and hide that
    # the first was lost. There is no public switch; a test says if this one stops working.
    session._retry_connection = False
    return session


# What the network and the other side can do to us. ValueError: headers and addresses that aiohttp cannot parse.
# FetchError: a packed reply that cannot be unpacked.
_FAILURES = (aiohttp.ClientError, OSError, TimeoutError, EOFError, ValueError, FetchError)

_UNREADABLE = (aiohttp.ClientResponseError, ValueError, FetchError)


def _kind(failure: BaseException) -> Kind:
    if isinstance(failure, aiohttp.ConnectionTimeoutError | aiohttp.ClientConnectorError | aiohttp.ClientSSLError):
        return Kind.DOWN
    if isinstance(failure, TimeoutError):
        return Kind.TIMEOUT
    if isinstance(failure, aiohttp.ClientResponseError | ValueError | FetchError) and not isinstance(
        failure, aiohttp.InvalidURL
    ):
        return Kind.GARBAGE
    return Kind.RESET


def judge_status(exchange: Exchange, scrub: Callable[[str], str]) -> Refused | Unavailable | None:
    """Who is to blame for a status; None where the body must tell."""
    status = exchange.status
    if 200 <= status < 300:
        return None
    content_type = exchange.headers.get("Content-Type", "")
    words = f"HTTP {status}: {said(exchange, scrub) or 'no words'}"
    # A 400 in HTML is not the Gateway's: it comes from a proxy, or from a TLS port that was spoken to in plain HTTP,
    # and would be the answer to every row.
    if status in _ROW_STATUSES and not (status == 400 and "html" in content_type):
        return Refused(status, words)
    return Unavailable(_kind_of_status(status), words, retry_after(exchange.headers))


def said(exchange: Exchange, scrub: Callable[[str], str]) -> str:
    """The words of a reply. Scrubbed before they are shortened, which could cut a secret in two, and after JSON's
    escapes are undone, which could complete one."""
    body = scrub(exchange.body[:ERROR_BODY].decode("utf-8", "replace"))
    return scrub(error_words(body, exchange.headers.get("Content-Type", "")))


def _kind_of_status(status: int) -> Kind:
    known = {
        400: Kind.GARBAGE,
        401: Kind.AUTH,
        403: Kind.AUTH,
        404: Kind.MISSING,
        405: Kind.MISSING,
        429: Kind.RATE_LIMITED,
    }
    if status in known:
        return known[status]
    if status >= 500:
        return Kind.SERVER_ERROR
    return Kind.REDIRECTED if 300 <= status < 400 else Kind.UNEXPECTED
