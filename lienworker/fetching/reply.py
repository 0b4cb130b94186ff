"""The reply to a fetch: a page, "not modified", or a refusal."""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache

import aiohttp
from yarl import URL

from lienworker.fetching.budget import FREE, Allowance, Budget
from lienworker.fetching.cookies import Jar
from lienworker.fetching.failures import FetchError, phrase_of_status, reason_of_status
from lienworker.fetching.outcomes import Fetched, FetchRequest, NotModified
from lienworker.fetching.turns import Stopwatch
from lienworker.fetching.urls import parse_url, redact_url

MAX_ERROR_BODY = 64 * 1024
_ERROR_BODY_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Limits:
    """What differs between a page and a robots.txt."""

    max_bytes: int
    max_redirects: int
    seconds: float
    obey_robots: bool
    cut: bool
    """Accept the beginning of what is too large."""


@dataclass(slots=True)
class Reply:
    response: aiohttp.ClientResponse
    trail: Trail
    limits: Limits
    watch: Stopwatch
    budget: Budget
    is_step: bool = False
    """Whether a flow asks: it wants the headers, and takes an empty page."""

    async def conclude(self, *, conditional: bool, proxied: bool) -> Fetched | NotModified:
        status = self.response.status
        if status == 304 and conditional:
            return NotModified(self.watch.elapsed_ms())
        if status in (206, 304):
            raise self._failed("protocol_error", f"answered {phrase_of_status(status)} unasked")
        if not 200 <= status < 300:
            raise await self._refusal(proxied)
        return await self._page()

    async def _page(self) -> Fetched:
        limit, announced = self.limits.max_bytes, self.response.content_length
        encoded = "Content-Encoding" in self.response.headers
        if announced is not None and announced > limit and not encoded and not self.limits.cut:
            raise self._too_large()
        most = limit if encoded or announced is None else min(announced, limit)
        allowance = Allowance(self.budget, self.watch, most)
        try:
            if announced is not None:
                await allowance.grow_to(min(announced, limit))  # before it is read: so those that wait hold nothing
            fetched = self._fetched(await self._body(allowance))
        except BaseException:
            allowance.give_back()
            raise
        allowance.last_as_long_as(fetched)
        return fetched

    async def _body(self, allowance: Allowance) -> bytes:
        chunks: list[bytes] = []
        try:
            if not await read_body(self.response, self.limits.max_bytes, chunks, allowance) and not self.limits.cut:
                raise self._too_large()
            body = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        finally:
            # The error of a reply that breaks off is kept by the reply, and keeps our frame: a cycle.
            chunks.clear()
        if not self.is_step and (not body or body.isspace()):
            raise self._failed("empty_body", "answered with an empty page")
        return body

    def _fetched(self, body: bytes) -> Fetched:
        headers = self.response.headers
        content_type, charset = content_type_of(headers.get("Content-Type", ""))
        return Fetched(
            url=str(self.response.url),
            status=self.response.status,
            body=body,
            content_type=content_type,
            charset=charset,
            etag=validator_of(headers.get("ETag")),
            last_modified=validator_of(headers.get("Last-Modified")),
            redirects=self.trail.redirects,
            elapsed_ms=self.watch.elapsed_ms(),
            headers=dict(headers) if self.is_step else {},
        )

    async def _refusal(self, proxied: bool) -> FetchError:
        headers, status = self.response.headers, self.response.status
        # By the site's own clock, where it sends one: only the difference of the two dates matters.
        now = date_of(headers.get("Date")) or datetime.now(UTC)
        return FetchError(
            reason_of_status(status, proxied=proxied),
            f"{redact_url(str(self.trail.url))} answered {phrase_of_status(status)}.",
            status=status,
            body=await self._error_body(),
            retry_after=retry_after_of(headers.get("Retry-After"), now),
        )

    async def _error_body(self) -> bytes | None:
        """Return as much as arrives soon. It is known already that the site refused; nothing here may hide that."""
        chunks: list[bytes] = []
        seconds = min(_ERROR_BODY_SECONDS, self.watch.left() - 0.1)
        if seconds > 0 and self.response.status >= 200:
            with suppress(Exception):
                async with asyncio.timeout(seconds):
                    await read_body(self.response, MAX_ERROR_BODY, chunks)
        return b"".join(chunks) or None

    def _too_large(self) -> FetchError:
        return self._failed("too_large", f"is larger than {self.limits.max_bytes:,} bytes")

    def _failed(self, reason: str, sentence: str) -> FetchError:
        shown = redact_url(str(self.trail.url))
        return FetchError(reason, f"{shown} {sentence}.", status=self.response.status)


# Parsing and building the few HTTP headers that matter to a fetch.


MAX_RETRY_AFTER = 24 * 3600.0
_MAX_VALIDATOR = 1_000

_MEDIA = re.compile(r"\s*([\w.+-]{1,100}/[\w.+-]{1,100})\s*(?:;|,|$)", re.ASCII)
_CHARSET = re.compile(r""";\s*charset\s*=\s*["']?([a-z0-9_.:+-]{1,40})""", re.IGNORECASE)
_PRINTABLE = re.compile(r"[\x20-\x7e]+")


def standing_headers(user_agent: str) -> dict[str, str]:
    """Return the headers of every request. Brotli is not offered: its decoder cannot be bounded everywhere."""
    return {
        "User-Agent": user_agent,
        "Accept": "text/html,application/xhtml+xml,application/json;q=0.9,text/csv;q=0.9,*/*;q=0.8",
        "Accept-Language": "en-US,en;q=0.9",
        "Accept-Encoding": "gzip, deflate",
    }


def conditions(request: FetchRequest) -> dict[str, str]:
    """Return the headers that let a site answer "not modified".

    The values came from a site once: one that is not a valid header value (control characters, absurd length) is left
    out, which costs a full reply and nothing else.
    """
    wanted = {}
    if etag := validator_of(request.etag):
        wanted["If-None-Match"] = etag
    if last_modified := validator_of(request.last_modified):
        wanted["If-Modified-Since"] = last_modified
    return wanted


def validator_of(header: str | None) -> str | None:
    """Return an ETag or a modification date that can be stored and sent back; None if there is none."""
    if header and len(header) <= _MAX_VALIDATOR and _PRINTABLE.fullmatch(header):
        return header
    return None


@lru_cache(maxsize=256)
def content_type_of(header: str) -> tuple[str, str | None]:
    """Return media type and charset of a Content-Type header, both in lower case; garbage counts as none."""
    media, charset = _MEDIA.match(header), _CHARSET.search(header)
    return media[1].lower() if media else "", charset[1].lower() if charset else None


def retry_after_of(header: str | None, now: datetime) -> float | None:
    """Return the seconds to wait, from a number or a date: never negative, at most a day; None if it is neither."""
    if header is None:
        return None
    text = header.strip()
    if text.isascii() and text.isdigit():
        return min(float(text), MAX_RETRY_AFTER)
    moment = date_of(text)
    if moment is None:
        return None
    return min(max((moment - now).total_seconds(), 0.0), MAX_RETRY_AFTER)


def date_of(header: str | None) -> datetime | None:
    """Return an HTTP date, aware; None for anything else."""
    if not header:
        return None
    try:
        moment = parsedate_to_datetime(header)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


# Reading a reply's body within its cap.
#
# Decompression is done here and not by aiohttp, for two reasons: its versions differ in how much one packet may
# unpack to (a bomb of 256 KB was a quarter of a gigabyte in some), and it accepts a truncated gzip stream as
# complete.


_GZIP, _ZLIB, _RAW_DEFLATE = 31, 15, -15
_PIECE = 256 * 1024
_GZIP_MAGIC = b"\x1f\x8b"
# A stream of many empty members costs time without ever reaching the cap; normal servers send one.
_MAX_MEMBERS = 64
# Some servers write a charset or a transfer encoding here. Browsers ignore that, and so do we.
_NO_ENCODING = frozenset({"", "identity", "none", "utf-8", "8bit", "binary"})


async def read_body(
    response: aiohttp.ClientResponse, limit: int, chunks: list[bytes], allowance: Allowance | None = None
) -> bool:
    """Append the unpacked body to `chunks`; return False if it exceeds `limit` bytes, where `chunks` ends.

    The caller owns the list, so what has arrived is still there when a timeout ends the reading.
    """
    encoding = response.headers.get("Content-Encoding")
    decoder = decoder_of(encoding) if encoding else None
    left = limit
    # Not response.read(), which would collect without a limit.
    read = response.content.readany
    while packed := await read():
        for data in (packed,) if decoder is None else decoder.unpack(packed):
            if len(data) > left:
                chunks.append(data[:left])
                response.close()
                return False
            left -= len(data)
            if limit - left > FREE and allowance is not None:
                await allowance.grow_to(limit - left)
            chunks.append(data)
    if decoder is not None:
        decoder.finish()
    return True


def decoder_of(content_encoding: str) -> Decoder | None:
    name = content_encoding.strip().lower()
    if name in _NO_ENCODING:
        return None
    if name in ("gzip", "x-gzip"):
        return Decoder(_GZIP)
    if name == "deflate":
        return Decoder(_ZLIB)
    raise FetchError("bad_encoding", f"The reply came in an encoding that nobody asked for: {name[:30]!r}.")


class Decoder:
    """Unpacks gzip, of several members too, and deflate, with zlib's header or (as some servers do) without."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._stream = zlib.decompressobj(window)
        self._members = 0
        self._fed = False

    def unpack(self, packed: bytes) -> Iterator[bytes]:
        """Yield the unpacked bytes in pieces, so that a caller can stop before the rest takes any memory."""
        if not self._fed and self._window == _ZLIB and packed[0] & 0x0F != zlib.DEFLATED:
            self._stream = zlib.decompressobj(_RAW_DEFLATE)
        self._fed = True
        while packed:
            if self._stream.eof and not self._next_member(packed):
                return
            try:
                yield self._stream.decompress(packed, _PIECE)
            except zlib.error:
                raise _broken() from None
            packed = self._stream.unconsumed_tail or self._stream.unused_data

    def _next_member(self, packed: bytes) -> bool:
        """Start the next member; return False where only garbage follows, which browsers ignore, too."""
        if self._window != _GZIP or not packed.startswith(_GZIP_MAGIC):
            return False
        self._members += 1
        if self._members > _MAX_MEMBERS:
            raise _broken()
        self._stream = zlib.decompressobj(self._window)
        return True

    def finish(self) -> None:
        if self._fed and not self._stream.eof:
            raise _broken()


def _broken() -> FetchError:
    return FetchError("bad_encoding", "The reply's compression is broken.")


# The path of one fetch through its redirects: where it is, which cookies it has, whether it loops.


REDIRECTS = frozenset({301, 302, 303, 307, 308})


class Trail:
    """The redirects of one fetch. Cookies live as long as the trail, unless they belong to a session.

    Some county sites set one in a redirect and redirect forever unless it comes back.
    """

    def __init__(self, url: URL, max_redirects: int, jar: Jar | None = None) -> None:
        self.url = url
        self.redirects = 0
        self._max_redirects = max_redirects
        self._jar = jar
        self._seen: set[tuple[str, str | None]] = set()

    def cookies(self) -> str | None:
        """Return the Cookie header for the present address."""
        return self._jar.header(self.url) if self._jar is not None else None

    def follow(self, response: aiohttp.ClientResponse) -> None:
        """Follow a redirect, or raise `FetchError`."""
        self._seen.add((str(self.url), self.cookies()))
        self.keep_cookies(response)
        location = response.headers.get("Location", "").strip()
        if not location:
            raise self._lost("protocol_error", "redirects without saying where to", response)
        self.redirects += 1
        if self.redirects > self._max_redirects:
            raise self._lost("too_many_redirects", f"is redirect number {self.redirects}", response)
        self.url = parse_url(location, base=self.url)
        # The same address with other cookies is a site that remembers us, not a loop.
        if (str(self.url), self.cookies()) in self._seen:
            raise self._lost("too_many_redirects", "is redirected to in a circle", response)

    def _lost(self, reason: str, sentence: str, response: aiohttp.ClientResponse) -> FetchError:
        return FetchError(reason, f"{redact_url(str(self.url))} {sentence}.", status=response.status)

    def keep_cookies(self, response: aiohttp.ClientResponse) -> None:
        if "Set-Cookie" in response.headers:
            if self._jar is None:
                self._jar = Jar()
            self._jar.keep(response, self.url)
