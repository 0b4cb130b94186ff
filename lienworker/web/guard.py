"""Who may come in. Decided before any view is asked.

- The `Host` header must be one of ours: a foreign name that leads to our address is DNS rebinding.
- A visitor must have a token, on loopback too, where every user of the machine can connect: in the address once, then
  in a cookie that scripts cannot read; programs send `Authorization: Bearer …`.
- What changes something must carry the token that only our own pages have, and must not come from another origin.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from urllib.parse import urlsplit

from aiohttp import web

_COOKIE = "lienworker_monitor"
CSRF_FIELD, CSRF_HEADER = "csrf", "X-CSRF-Token"
#: Whether the monitor is alive is no secret, and probes carry no token.
_OPEN_PATHS = {"/healthz", "/readyz", "/login"}
#: A chosen token with this many characters cannot be guessed either: wrong ones are not counted.
_LONG_TOKEN = 20
#: Wrong tries of a shorter one that are answered at once, and then how many seconds the next one costs.
_FREE_TRIES, _TRY_SECONDS = 10, 6.0
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "X-DNS-Prefetch-Control": "off",
}


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Verdict(Enum):
    """What a visitor's credentials are worth."""

    RIGHT = "right"
    WRONG = "wrong"
    #: Too many were wrong lately: a short token is not even compared for a while.
    WAIT = "wait"


class Tries:
    """A bucket of wrong tries, one for all visitors: on loopback they all have the same address."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left, self._at = float(_FREE_TRIES), clock()

    def any_left(self) -> bool:
        now = self._clock()
        self._left = min(float(_FREE_TRIES), self._left + (now - self._at) / _TRY_SECONDS)
        self._at = now
        return self._left >= 1

    def record_wrong(self) -> None:
        self._left -= 1


@dataclass(frozen=True)
class Guard:
    """The rules of one server.

    Two tokens open it. `ticket` was made in the data folder and cannot be guessed, so tries of it are not counted:
    nobody can lock the operator out. `token` is one that the operator chose; tries of a short one are counted.
    """

    host: str
    ticket: str = field(repr=False)
    token: str | None = field(default=None, repr=False)
    allowed_hosts: frozenset[str] = frozenset()
    #: The command that prints the link with the ticket, for a visitor without it.
    command: str = "lienworker web --address"
    #: New at each start, so a form of an old page has to be loaded again.
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    tries: Tries = field(default_factory=Tries, repr=False)

    def knows_host(self, header: str) -> bool:
        name = _host_name(header)
        if name is None:
            return False
        if name in self.allowed_hosts or name == "localhost" or name == self.host.lower():
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return not is_loopback(self.host) and name == socket.gethostname().lower()
        # A bare address cannot be rebound; but a server on loopback is not called by any other.
        return address.is_loopback or not is_loopback(self.host)

    def judge(self, offered: str) -> Verdict:
        if _same(offered, self.ticket):
            return Verdict.RIGHT
        if self.token is None:
            return Verdict.WRONG
        is_short = len(self.token) < _LONG_TOKEN
        if is_short and not self.tries.any_left():
            return Verdict.WAIT
        if _same(offered, self.token):
            return Verdict.RIGHT
        self.tries.record_wrong()
        return Verdict.WRONG

    @property
    def cookie_name(self) -> str:
        """A different name for each data folder: browsers send a host's cookies to all of its ports."""
        return f"{_COOKIE}_{self._derived(b'cookie name')[:8]}"

    @property
    def cookie_value(self) -> str:
        """Derived, not the token itself: what a browser's profile holds opens the monitor, and nothing else.

        It is derived from the ticket alone: derived from a short token, it would allow uncounted guesses.
        """
        return self._derived(b"lienworker monitor cookie")

    @property
    def metrics_token(self) -> str:
        """What Prometheus sends: it reads `/metrics`, and opens nothing else."""
        return self._derived(b"lienworker metrics")

    def _derived(self, purpose: bytes) -> str:
        return hmac.new(self.ticket.encode(), purpose, hashlib.sha256).hexdigest()

    def is_open(self, path: str) -> bool:
        return path in _OPEN_PATHS or path.startswith("/static/")

    def credentials(self, request: web.Request) -> Verdict:
        """Return what the request's header or cookie is worth; a token in its address is checked elsewhere."""
        kind, _, bearer = request.headers.get("Authorization", "").partition(" ")
        if kind.lower() == "bearer":
            if request.path == "/metrics" and _same(bearer.strip(), self.metrics_token):
                return Verdict.RIGHT
            return self.judge(bearer.strip())
        is_ours = _same(request.cookies.get(self.cookie_name, ""), self.cookie_value)
        return Verdict.RIGHT if is_ours else Verdict.WRONG

    @property
    def csrf(self) -> str:
        return hmac.new(self.secret, b"csrf", hashlib.sha256).hexdigest()

    def is_ours(self, offered: str) -> bool:
        return _same(offered, self.csrf)

    def seal(self, words: str) -> str:
        return hmac.new(self.secret, b"said " + _bytes(words), hashlib.sha256).hexdigest()[:32]

    def is_sealed(self, words: str, seal: str) -> bool:
        return _same(seal, self.seal(words))

    def is_same_origin(self, request: web.Request) -> bool:
        """Return whether a request comes from our own pages, as browsers say; others are refused in any case."""
        if request.headers.get("Sec-Fetch-Site", "same-origin") not in {"same-origin", "none"}:
            return False
        origin = request.headers.get("Origin")
        return origin is None or urlsplit(origin).netloc == request.headers.get("Host")


def _same(offered: str, true: str) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(_bytes(offered), _bytes(true))


def _bytes(text: str) -> bytes:
    """Return a header's bytes; aiohttp hands out those that are not text as half characters."""
    return text.encode("utf-8", "surrogatepass")


def _host_name(header: str) -> str | None:
    try:
        return urlsplit(f"//{header}").hostname
    except ValueError:
        return None
