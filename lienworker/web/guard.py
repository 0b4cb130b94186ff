"""Who may come in. Decided before any view is asked.

- The `Host` header must be one of ours: a strange name that leads to our address is DNS rebinding.
- Off loopback (or where a token is set) a visitor must know the token: in the address once, then in a cookie that
  scripts cannot read; programs send `Authorization: Bearer …`.
- What changes something must carry the token that only our own pages know, and must not come from another origin.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
import socket
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from aiohttp import web

COOKIE = "lienworker_monitor"
CSRF_FIELD, CSRF_HEADER = "csrf", "X-CSRF-Token"
#: Alive or not is nobody's secret, and probes carry no token.
_OPEN_PATHS = {"/healthz", "/readyz", "/login"}
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


@dataclass(frozen=True)
class Guard:
    """The rules of one server. `token` None means that everybody on this machine may come in."""

    host: str
    token: str | None = field(repr=False)
    allowed_hosts: frozenset[str] = frozenset()
    #: New at each start, so a form of an old page has to be loaded again.
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

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
        # A bare address cannot be rebound; but a server on loopback is called by nothing else.
        return address.is_loopback or not is_loopback(self.host)

    def knows_token(self, offered: str) -> bool:
        return self.token is None or _same(offered, self.token)

    @property
    def cookie_value(self) -> str:
        """Not the token itself: what lies in a browser's profile opens the monitor, and nothing else."""
        return hmac.new((self.token or "").encode(), b"lienworker monitor cookie", hashlib.sha256).hexdigest()

    def may_enter(self, request: web.Request) -> bool:
        if self.token is None or request.path in _OPEN_PATHS or request.path.startswith("/static/"):
            return True
        kind, _, bearer = request.headers.get("Authorization", "").partition(" ")
        if kind.lower() == "bearer" and self.knows_token(bearer.strip()):
            return True
        return _same(request.cookies.get(COOKIE, ""), self.cookie_value)

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
        """Browsers say where a request comes from; one from elsewhere is refused whatever it carries."""
        if request.headers.get("Sec-Fetch-Site", "same-origin") not in {"same-origin", "none"}:
            return False
        origin = request.headers.get("Origin")
        return origin is None or urlsplit(origin).netloc == request.headers.get("Host")


def _same(offered: str, true: str) -> bool:
    """Takes the same time however much of it is right."""
    return hmac.compare_digest(_bytes(offered), _bytes(true))


def _bytes(text: str) -> bytes:
    """Headers may hold any byte; aiohttp gives those that are no text as half characters."""
    return text.encode("utf-8", "surrogatepass")


def _host_name(header: str) -> str | None:
    try:
        return urlsplit(f"//{header}").hostname
    except ValueError:
        return None
