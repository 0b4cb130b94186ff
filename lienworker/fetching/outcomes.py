"""The input and the output of a fetch."""

from __future__ import annotations

from dataclasses import dataclass

from lienworker.fetching.turns import Turn


@dataclass(frozen=True, slots=True)
class FetchOptions:
    """How this process fetches; the same for all its pages. Times are in seconds, sizes in bytes."""

    user_agent: str
    connect_timeout: float
    """To look the host up, and again to connect to it (TLS included)."""
    read_timeout: float
    """Between two arrivals of bytes."""
    total_timeout: float
    """For one fetch with all its redirects; waiting for a turn does not count, and a robots.txt has its own limit."""
    max_bytes: int
    """Of a page, after decompression."""
    max_redirects: int
    obey_robots: bool
    allow_private: tuple[str, ...]
    """Exceptions to the address guard: names (`county.test`, `localhost:8080`), addresses, networks, `all`."""
    robots_ttl: float = 3600
    body_budget: int = 32_000_000
    """Of large pages being read, or read and not yet stored."""


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """One page. With `etag` or `last_modified` of an earlier fetch the answer may be `NotModified`."""

    url: str
    etag: str | None = None
    last_modified: str | None = None
    proxy: str | None = None
    """`http://`, `socks5://` or `socks5h://`, with credentials or without; the proxy resolves host names."""
    is_own_proxy: bool = False
    """The proxy is the task's own: what is said through it is believed for this route only."""
    turn: Turn | None = None
    """When its first request may go out, where that is booked; see `turns`."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Fetched:
    """A page, with a body that is not empty."""

    url: str
    """The final address, after redirects and without credentials."""
    status: int
    body: bytes
    content_type: str
    """Lower case, without parameters; empty if the site did not say."""
    charset: str | None
    """As the Content-Type header says; the page itself may know better."""
    etag: str | None
    last_modified: str | None
    redirects: int
    elapsed_ms: int


@dataclass(frozen=True, slots=True)
class NotModified:
    """The page is still what it was when its `etag` or `last_modified` was given."""

    elapsed_ms: int


@dataclass(frozen=True, slots=True)
class FetchFailed:
    """No page. `reason` is a stable keyword (see `failures`), `detail` a sentence without secrets."""

    reason: str
    detail: str
    retryable: bool
    host_fault: bool
    """The site as a whole does not serve us; this page is not at fault."""
    retry_after: float | None
    """Seconds that the site asked us to wait."""
    status: int | None
    body: bytes | None
    """The beginning of an error reply's body, so that a developer sees what the site said."""
    elapsed_ms: int
    is_refused_here: bool = False
    """We refused the address ourselves and sent nothing, so the site's turn is free again."""


FetchOutcome = Fetched | NotModified | FetchFailed
