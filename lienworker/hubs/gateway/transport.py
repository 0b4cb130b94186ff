"""One HTTP exchange with the Gateway, bounded in time and size, with every failure turned into a value."""

from __future__ import annotations

import asyncio
import functools
import logging
import re
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Concatenate, ParamSpec, Protocol, TypeVar

import aiohttp
from yarl import URL

from lienworker.fetching.failures import FetchError
from lienworker.fetching.reply import read_body
from lienworker.hubs.gateway.outcomes import Accepted, Kind, Outcome, Refused, Unavailable
from lienworker.hubs.gateway.wire import error_words, hashed_raw_name, plain_words, raw_name, retry_after

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
    request_id: str = ""


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
        """Send one request and read the reply, up to `limit` bytes.

        Redirects are not followed: the token would go along.
        """
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
    """Return who is to blame for a status; None where the body must tell."""
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
    """Return what a reply says, without secrets.

    They are taken out before it is shortened, which could cut one in two, and after JSON's escapes are undone, which
    could complete one.
    """
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


# The multipart body of a raw file. Written at once: aiohttp's own writer takes longer than all the rest of a call.


_CHUNK = 256 * 1024
_UNQUOTABLE = re.compile('["\\r\\n]')


@dataclass(frozen=True, slots=True)
class UploadForm:
    """What comes before and after the file's bytes."""

    content_type: str
    head: bytes
    tail: bytes

    def around(self, content: bytes) -> bytes:
        return b"".join((self.head, content, self.tail))

    async def around_file(self, file: BinaryIO) -> AsyncIterator[bytes]:
        """Do the same for a file that is too large to be held; reading may wait for the disk, so a thread does it."""
        yield self.head
        while chunk := await asyncio.to_thread(file.read, _CHUNK):
            yield chunk
        yield self.tail

    def length(self, size: int) -> int:
        return len(self.head) + size + len(self.tail)


def upload_form(name: str, metadata: str, mark: str) -> UploadForm:
    """Return a form with the two fields that the Gateway wants. No file may have `mark`, the boundary, in it."""
    head = (
        f'--{mark}\r\nContent-Disposition: form-data; name="metadata"\r\nContent-Type: application/json\r\n\r\n'
        f'{metadata}\r\n--{mark}\r\nContent-Disposition: form-data; name="file"; filename="{_quoted(name)}"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    )
    kind = f"multipart/form-data; boundary={mark}"
    return UploadForm(kind, head.encode("utf-8", "replace"), f"\r\n--{mark}--\r\n".encode("ascii"))


def _quoted(name: str) -> str:
    return _UNQUOTABLE.sub(lambda found: f"%{ord(found[0]):02X}", name)


# What is said about a raw file when it is sent: its name at the Gateway and its metadata.


_KEYS = ("platform", "state", "county", "parcel_id")


def raw_form(task_id: str, page: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the name and the metadata of a stored page that `outbox.uploads.raw_pages` has found."""
    keys = {name: str(page[name] or "") for name in _KEYS}
    metadata = {
        **keys,
        "task_id": task_id,
        "url": page["url"],
        "raw_html_hash": page["sha256"],
        "fetched_at": page["fetched_at"],
        "content_type": page["content_type"],
    }
    return raw_name(**keys, part=page["part"], raw_sha256=page["sha256"], ext=_extension(page)), metadata


def raw_listing(pages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the parts of a result for its `_raw`: part, name at the Gateway, hash of the page.

    A page that an earlier version has sent has no `sent_name` of its own, and has a name of that version. In the page
    of a source, `index` is the place of the parcel.
    """
    return [_listed(page) for page in pages]


def _listed(page: Mapping[str, Any]) -> dict[str, Any]:
    listed = {"part": page["part"], "name": _sent_name(page), "sha256": page["sha256"]}
    index = page.get("source_index")
    return listed if index is None else {**listed, "index": index}


def _sent_name(page: Mapping[str, Any]) -> str:
    keys = {name: str(page[name] or "") for name in _KEYS}
    return page["sent_name"] or hashed_raw_name(**keys, raw_sha256=page["sha256"], ext=_extension(page))


def _extension(page: Mapping[str, Any]) -> str:
    return ".".join(page["path"].rsplit(".", 2)[1:])


# Counting calls by endpoint and outcome: in memory, taken by the runtime with each beat.


T = TypeVar("T")
P = ParamSpec("P")

logger = logging.getLogger(__name__)


class Calls:
    """How many calls came to what since it was last asked. Calls end on one thread and are taken by another."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def record(self, endpoint: str, outcome: Outcome[Any]) -> None:
        if isinstance(outcome, Refused) and outcome.status is None:
            return  # it was never sent
        with self._lock:
            self._counts[f"{endpoint}|{word_of(outcome)}"] += 1

    def take(self) -> dict[str, int]:
        """Return the counts by `endpoint|outcome`, and start again from zero."""
        with self._lock:
            taken, self._counts = self._counts, Counter()
        return dict(taken)


class _Counting(Protocol):
    calls: Calls


Client = TypeVar("Client", bound=_Counting)


def counted(
    endpoint: str,
) -> Callable[
    [Callable[Concatenate[Client, P], Awaitable[Outcome[T]]]],
    Callable[Concatenate[Client, P], Coroutine[Any, Any, Outcome[T]]],
]:
    """Decorate a method of a client: count what each call came to, and log each that failed."""

    def wrap(
        method: Callable[Concatenate[Client, P], Awaitable[Outcome[T]]],
    ) -> Callable[Concatenate[Client, P], Coroutine[Any, Any, Outcome[T]]]:
        @functools.wraps(method)
        async def call(self: Client, /, *args: P.args, **more: P.kwargs) -> Outcome[T]:
            outcome = await method(self, *args, **more)
            self.calls.record(endpoint, outcome)
            if not isinstance(outcome, Accepted):
                log_call(endpoint, outcome.words, outcome.request_id)
            return outcome

        return call

    return wrap


def log_call(endpoint: str, words: str, request_id: str) -> None:
    """Log a call that failed, unless it was never sent, with the id by which it is found in the Gateway's own log."""
    if request_id:
        extra = {"action": "gateway_call", "endpoint": endpoint, "request_id": request_id}
        logger.info("%s: %s (request %s)", endpoint, plain_words(words), request_id, extra=extra)


def word_of(outcome: Outcome[Any]) -> str:
    if isinstance(outcome, Unavailable):
        return outcome.kind.value
    return "refused" if isinstance(outcome, Refused) else "accepted"
