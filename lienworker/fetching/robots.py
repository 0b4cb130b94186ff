"""What the sites' robots.txt allow us, read once per origin."""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from protego import Protego
from yarl import URL

from lienworker.fetching.failures import FetchError
from lienworker.hostnames import host_of

Load = Callable[[URL, str | None], Awaitable[bytes]]
"""Fetches a robots.txt through a proxy or without; raises `FetchError`."""

FAILURE_TTL = 60.0
_A_DAY = 86_400.0
MAX_ROBOTS_BYTES = 512 * 1024
MAX_ROBOTS_REDIRECTS = 5
_MAX_ORIGINS = 2_000
# The size of the rules of all origins together; parsed, they take some fifty times as much memory.
_MAX_TEXT = 1024 * 1024
# Parsing a file of this size takes some 5 ms; a larger one must not block the event loop.
_PARSE_ASIDE = 16 * 1024

Origin = tuple[str, str, str | None]
"""Scheme, host, and the proxy through which its robots.txt was read: what one says is not believed of another."""


@dataclass(frozen=True, slots=True)
class _Entry:
    rules: Protego | None
    """None: everything is allowed."""
    until: float
    size: int = 0


class Robots:
    """The rules of all origins. A site without a readable robots.txt (4xx) allows everything, as RFC 9309 says.

    One whose robots.txt fails (5xx, 429, no answer) is assumed to allow everything, too, but is asked again soon: the
    next page shows soon enough whether the site works.
    """

    def __init__(self, user_agent: str, ttl: float, load: Load, clock: Callable[[], float] = time.monotonic) -> None:
        self._token = product_token(user_agent)
        self._ttl = ttl
        self._load = load
        self._clock = clock
        self._known: dict[Origin, _Entry] = {}
        self._size = 0
        self._asking: dict[Origin, asyncio.Task[_Entry]] = {}
        self._parsing = asyncio.Lock()  # one large file at a time

    def knows(self, url: URL, proxy: str | None) -> bool:
        """Return whether `allow` would answer without asking the site."""
        entry = self._known.get(_origin(url, proxy))
        return entry is not None and entry.until > self._clock()

    async def allow(self, url: URL, proxy: str | None) -> bool:
        entry = self._known.get(_origin(url, proxy))
        if entry is None or entry.until <= self._clock():
            entry = await self._ask_once(url, proxy)
        return entry.rules is None or bool(entry.rules.can_fetch(str(url), self._token))

    def crawl_delay(self, url: URL, proxy: str | None) -> float | None:
        """Return the seconds between two requests that the origin asks for, if its robots.txt is known."""
        entry = self._known.get(_origin(url, proxy))
        if entry is None or entry.rules is None:
            return None
        return sane_delay(entry.rules.crawl_delay(self._token))

    def keep(self, url: URL, proxy: str | None, seconds: float) -> None:
        """Believe what is known of an origin for a day after a turn that is far off.

        Asking again would use up that very turn: a site that wants an hour between two requests would never get to send
        anything but its robots.txt.
        """
        origin = _origin(url, proxy)
        if entry := self._known.get(origin):
            self._known[origin] = replace(entry, until=self._clock() + seconds + _A_DAY)

    async def _ask_once(self, url: URL, proxy: str | None) -> _Entry:
        origin = _origin(url, proxy)
        task = self._asking.get(origin)
        if task is None:
            task = self._asking[origin] = asyncio.create_task(self._ask(url, proxy))
        # Shielded: a fetch that is cancelled must not cancel the answer for the others that wait for it.
        return await asyncio.shield(task)

    async def _ask(self, url: URL, proxy: str | None) -> _Entry:
        origin = _origin(url, proxy)
        try:
            rules, size, ttl = await self._rules(url.with_user(None).with_path("/robots.txt"), proxy)
        finally:
            del self._asking[origin]
        self._forget(origin)
        while self._known and (len(self._known) >= _MAX_ORIGINS or self._size + size > _MAX_TEXT):
            self._forget(next(iter(self._known)))
        entry = self._known[origin] = _Entry(rules, self._clock() + ttl, size)
        self._size += entry.size
        return entry

    def _forget(self, origin: Origin) -> None:
        entry = self._known.pop(origin, None)
        self._size -= entry.size if entry else 0

    async def _rules(self, url: URL, proxy: str | None) -> tuple[Protego | None, int, float]:
        """Return the rules for us, their size, and how long they are valid."""
        try:
            body = await self._load(url, proxy)
        except FetchError as failure:
            return None, 0, self._ttl if _says_there_is_none(failure) else FAILURE_TTL
        if len(body) <= _PARSE_ASIDE:
            return *_parse(body, self._token), self._ttl
        async with self._parsing:
            return *await asyncio.to_thread(_parse, body, self._token), self._ttl

    async def close(self) -> None:
        tasks = list(self._asking.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def product_token(user_agent: str) -> str:
    """Return the name that robots.txt files use for us: the first word, without its version."""
    words = user_agent.split()
    return words[0].partition("/")[0] if words else ""


def _origin(url: URL, proxy: str | None) -> Origin:
    return url.scheme, host_of(str(url)), proxy


def _says_there_is_none(failure: FetchError) -> bool:
    if failure.reason == "empty_body":
        return True
    return failure.status is not None and 400 <= failure.status < 500 and failure.status != 429


def _parse(body: bytes, token: str) -> tuple[Protego | None, int]:
    text = rules_for(body[:MAX_ROBOTS_BYTES].decode("utf-8-sig", "replace"), token)
    return (Protego.parse(text) if text else None), len(text)


# What a robots.txt says to us, and no more: extracted before anything is parsed.
#
# A library that parses the whole file keeps each rule once for each of the names above it: 126 KB of names and rules
# became 1.8 GB. We have one name, so one list of rules is kept, of bounded length. Pure.


#: The size of the rules for us; a county's whole file has a few hundred bytes. Beyond it, the beginning applies.
MAX_RULES_TEXT = 32 * 1024
#: Longer lines cannot match any address of ours.
MAX_LINE = 2_000
MAX_LINES = 20_000
#: The longest time between two requests that a site may ask for, s.
MAX_CRAWL_DELAY = 3600.0

_LINE = re.compile(r"[^\r\n]+")
_AGENT = re.compile(r"user[- ]?agent\b\s*:?(.*)", re.IGNORECASE)
# With the misspellings that crawlers commonly accept.
_RULE = re.compile(
    r"(?P<deny>diss?all?[oa]w|diasllow)\b\s*:?(?P<denied>.*)|allow\b\s*:?(?P<allowed>.*)"
    r"|crawl[- ]delay\b\s*:?(?P<delay>.*)",
    re.IGNORECASE,
)


def rules_for(text: str, token: str) -> str:
    """Return a robots.txt of one group: what the given one says to a crawler of this name."""
    rules: dict[str, list[str]] = {}
    left: dict[str, int] = defaultdict(lambda: MAX_RULES_TEXT)
    group: set[str] = set()
    is_open = False  # whether the next name joins the group
    for number, match in enumerate(_LINE.finditer(text)):
        if number >= MAX_LINES:
            break
        line = match[0].partition("#")[0].strip() if match.end() - match.start() <= MAX_LINE else ""
        if agent := _AGENT.match(line):
            group = group if is_open else set()
            is_open = True
            if _means(name := _name(agent[1]), token):
                group.add(name)
                rules.setdefault(name, [])  # a group without rules is one that allows everything
        elif rule := _rule(line):
            is_open = False
            for name in group:
                left[name] -= len(rule)
                if left[name] >= 0:
                    rules[name].append(rule)
    best = max(rules, key=lambda name: 0 if name == "*" else len(name), default=None)
    return "\n".join(["User-agent: *", *rules[best]]) if best is not None else ""


def _name(value: str) -> str:
    """Return the name without stars, which mean nothing in it; a star alone means everybody."""
    name = value.strip().lower()
    return name if name == "*" else name.replace("*", "")


def _means(name: str, token: str) -> bool:
    """Return whether a group's name means this crawler: its name, or the beginning of it."""
    whole = token.strip().lower()
    return name == "*" or (bool(name) and whole.startswith(name))


def _rule(line: str) -> str | None:
    found = _RULE.match(line)
    if found is None:
        return None
    if found["delay"] is not None:
        return f"Crawl-delay: {found['delay'].strip()}"
    denied = found["denied"] if found["deny"] else None
    return f"Disallow: {denied.strip()}" if denied is not None else f"Allow: {found['allowed'].strip()}"


def sane_delay(seconds: float | None) -> float | None:
    """Return a crawl delay that can be calculated with; None for anything else."""
    if seconds is None or not math.isfinite(seconds) or seconds <= 0:
        return None
    return min(seconds, MAX_CRAWL_DELAY)
