"""What the sites' robots.txt allow us, asked once per origin."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from protego import Protego
from yarl import URL

from lienworker.fetching.failures import FetchError

Load = Callable[[URL, str | None], Awaitable[bytes]]
"""Fetches a robots.txt through a proxy or without; raises `FetchError`."""

FAILURE_TTL = 60.0
MAX_ROBOTS_BYTES = 512 * 1024
MAX_ROBOTS_REDIRECTS = 5
_MAX_ORIGINS = 2_000
# Reading a file of this size takes some 30 ms; beyond, the event loop is not to wait for it.
_PARSE_ASIDE = 64 * 1024

Origin = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Entry:
    rules: Protego | None
    """None: everything is allowed."""
    until: float


class Robots:
    """A site without a readable robots.txt (4xx) allows everything, as RFC 9309 has it.

    One whose robots.txt fails (5xx, 429, no answer) is believed to allow it too, but is asked again soon: the
    page that is fetched next tells soon enough whether the site works.
    """

    def __init__(self, user_agent: str, ttl: float, load: Load, clock: Callable[[], float] = time.monotonic) -> None:
        self._token = product_token(user_agent)
        self._ttl = ttl
        self._load = load
        self._clock = clock
        self._known: dict[Origin, _Entry] = {}
        self._asking: dict[Origin, asyncio.Task[_Entry]] = {}

    async def allow(self, url: URL, proxy: str | None) -> bool:
        entry = self._known.get(_origin(url))
        if entry is None or entry.until <= self._clock():
            entry = await self._ask_once(url, proxy)
        return entry.rules is None or bool(entry.rules.can_fetch(str(url), self._token))

    def crawl_delay(self, url: URL) -> float | None:
        """Seconds between two requests that the origin asks for, as far as its robots.txt is known."""
        entry = self._known.get(_origin(url))
        if entry is None or entry.rules is None:
            return None
        delay: float | None = entry.rules.crawl_delay(self._token)
        return delay

    async def _ask_once(self, url: URL, proxy: str | None) -> _Entry:
        origin = _origin(url)
        task = self._asking.get(origin)
        if task is None:
            task = self._asking[origin] = asyncio.create_task(self._ask(url, proxy))
        # Shielded: a fetch that is cancelled must not take the answer away from the others that wait for it.
        return await asyncio.shield(task)

    async def _ask(self, url: URL, proxy: str | None) -> _Entry:
        origin = _origin(url)
        try:
            rules, ttl = await self._rules(url.with_user(None).with_path("/robots.txt"), proxy)
        finally:
            del self._asking[origin]
        self._known.pop(origin, None)
        while len(self._known) >= _MAX_ORIGINS:
            del self._known[next(iter(self._known))]
        entry = self._known[origin] = _Entry(rules, self._clock() + ttl)
        return entry

    async def _rules(self, url: URL, proxy: str | None) -> tuple[Protego | None, float]:
        try:
            body = await self._load(url, proxy)
        except FetchError as failure:
            return None, self._ttl if _says_there_is_none(failure) else FAILURE_TTL
        if len(body) > _PARSE_ASIDE:
            return await asyncio.to_thread(_parse, body), self._ttl
        return _parse(body), self._ttl

    async def close(self) -> None:
        tasks = list(self._asking.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def product_token(user_agent: str) -> str:
    """The name that robots.txt files call us by: the first word, without its version."""
    words = user_agent.split()
    return words[0].partition("/")[0] if words else ""


def _origin(url: URL) -> Origin:
    return url.scheme, url.host_port_subcomponent or ""


def _says_there_is_none(failure: FetchError) -> bool:
    if failure.reason == "empty_body":
        return True
    return failure.status is not None and 400 <= failure.status < 500 and failure.status != 429


def _parse(body: bytes) -> Protego:
    return Protego.parse(body.decode("utf-8-sig", "replace"))
