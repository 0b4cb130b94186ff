"""The one spelling of a host that politeness goes by, however an address spells it. Pure; no look-ups.

A name is what it is connected to: full-width letters, upper case, a dot at the end or `%2e` do not make another site of
it. So the key of an address is read by the same parser as the address that is fetched (yarl, with IDNA).

A task that brings its own proxy has a route of its own: `county.example via proxy 1f2e3d4c`. What goes wrong there is
the proxy's word against the site's, so it cools and gives up that route only; pacing is kept for the site.
"""

from __future__ import annotations

import hashlib
import socket
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address
from urllib.parse import unquote

from yarl import URL

_DEFAULT_PORTS = {"http": 80, "https": 443}
_VIA = " via proxy "


def host_of(url: str) -> str:
    """Return what politeness is kept for: the host with its port, where that is not the scheme's own."""
    end = url.find("/", 8)
    return _host_of_site(url[:end] if end > 0 else url)


def route_of(url: str, proxy: str | None) -> str:
    """Return the host, and by which proxy of its own a task goes there. A proxy's address may hold a password."""
    host = host_of(url)
    return f"{host}{_VIA}{hashlib.sha256(proxy.encode()).hexdigest()[:8]}" if proxy else host


def site_of(route: str) -> str:
    """Return the host that a route leads to. No host has a blank in it."""
    return route.partition(" ")[0]


def same_host(spelled: str) -> str:
    """Return the one spelling of a host that some other version of this program has stored."""
    site, via, proxy = spelled.partition(_VIA)
    try:
        url = URL(f"http://{site}")
        return f"{_shown(plain_host(url.raw_host or ''), url.explicit_port) or site}{via}{proxy}"
    except ValueError:
        return spelled


@lru_cache(maxsize=4096)
def _host_of_site(site: str) -> str:
    """Remembered, since a file names few sites and taking an address apart costs more than the rest of a row."""
    try:
        url = URL(site)
        name, port = plain_host(url.raw_host or ""), url.explicit_port
    except ValueError:
        name, port = "", None
    if not name:  # nobody can fetch it; it still needs a place to wait and fail in
        return site.partition("//")[2].rpartition("@")[2].lower().replace(" ", "")
    return _shown(name, None if port == _DEFAULT_PORTS.get(url.scheme) else port)


def _shown(name: str, port: int | None) -> str:
    shown = f"[{name}]" if ":" in name else name
    return shown if port is None else f"{shown}:{port}"


def plain_host(host: str) -> str:
    """Return a host as yarl reads it, without what still can be spelled in two ways."""
    if "%" in host:
        host = URL.build(scheme="http", host=unquote(host).lower()).raw_host or ""
    host = host.rstrip(".")
    address = literal_address(host) if is_literal(host) else None
    return host if address is None else str(address)


def is_literal(host: str) -> bool:
    """True if the host is an address in any spelling that some resolver takes for one: `127.1`, `0x7f000001`.

    As browsers do it: a name whose last label is a number is an address.
    """
    if ":" in host:
        return True
    last = host.rstrip(".").rpartition(".")[2]
    return last.isdigit() or last.startswith("0x")


def literal_address(host: str) -> IPv4Address | IPv6Address | None:
    """The address that a literal spells, however oddly; None if it spells none."""
    try:
        if ":" in host:
            return IPv6Address(host)
        return IPv4Address(socket.inet_aton(host.rstrip(".")))
    except (ValueError, OSError):
        return None
