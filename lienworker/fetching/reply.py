"""The reply at the end of a fetch's way: a page, "not modified", or a refusal."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

import aiohttp

from lienworker.fetching.body import read_body
from lienworker.fetching.budget import Allowance, Budget
from lienworker.fetching.failures import FetchError
from lienworker.fetching.headers import content_type_of, date_of, retry_after_of, validator_of
from lienworker.fetching.outcomes import Fetched, NotModified
from lienworker.fetching.reasons import phrase_of_status, reason_of_status
from lienworker.fetching.stopwatch import Stopwatch
from lienworker.fetching.trail import Trail
from lienworker.fetching.urls import redact_url

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
    """Take the beginning of what is too large."""


@dataclass(slots=True)
class Reply:
    response: aiohttp.ClientResponse
    trail: Trail
    limits: Limits
    watch: Stopwatch
    budget: Budget

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
            fetched = self._fetched(await self._body(allowance))
        except BaseException:
            allowance.give_back()
            raise
        allowance.last_as_long_as(fetched)
        return fetched

    async def _body(self, allowance: Allowance) -> bytes:
        chunks: list[bytes] = []
        if not await read_body(self.response, self.limits.max_bytes, chunks, allowance) and not self.limits.cut:
            raise self._too_large()
        body = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        if not body or body.isspace():
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
        )

    async def _refusal(self, proxied: bool) -> FetchError:
        headers, status = self.response.headers, self.response.status
        # Against the site's own clock, where it shows it: only the difference of the two dates matters.
        now = date_of(headers.get("Date")) or datetime.now(UTC)
        return FetchError(
            reason_of_status(status, proxied=proxied),
            f"{redact_url(str(self.trail.url))} answered {phrase_of_status(status)}.",
            status=status,
            body=await self._error_body(),
            retry_after=retry_after_of(headers.get("Retry-After"), now),
        )

    async def _error_body(self) -> bytes | None:
        """As much as comes soon. That the site said no is known already; nothing here may hide it."""
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
