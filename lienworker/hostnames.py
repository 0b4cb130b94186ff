"""The one spelling of a host that pacing uses, however an address spells it. Pure; no lookups.

A name is what it is connected to: full-width letters, upper case, a dot at the end or `%2e` do not make it another
site. So the key of an address is parsed by the same parser as the address that is fetched (yarl, with IDNA).

A task with its own proxy has its own route: `county.example via proxy 1f2e3d4c`. What goes wrong there is the proxy's
word against the site's, so only that route cools and is given up; spacing is kept for the site.
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
    """Return the key of pacing: the host, with its port where that is not the scheme's default."""
    end = url.find("/", 8)
    return _host_of_site(url[:end] if end > 0 else url)


def route_of(url: str, proxy: str | None) -> str:
    """Return the host, and which of its own proxies a task uses to get there, hashed: it may hold a password."""
    host = host_of(url)
    return f"{host}{_VIA}{hashlib.sha256(proxy.encode()).hexdigest()[:8]}" if proxy else host


def site_of(route: str) -> str:
    """Return the host that a route leads to. No host contains a space."""
    return route.partition(" ")[0]


def same_host(spelled: str) -> str:
    """Return the current spelling of a host that another version of this program has stored."""
    site, via, proxy = spelled.partition(_VIA)
    try:
        url = URL(f"http://{site}")
        return f"{_shown(plain_host(url.raw_host or ''), url.explicit_port) or site}{via}{proxy}"
    except ValueError:
        return spelled


@lru_cache(maxsize=4096)
def _host_of_site(site: str) -> str:
    """Return a site's host. Cached: a file names few sites, and parsing one costs more than the rest of a row."""
    try:
        url = URL(site)
        name, port = plain_host(url.raw_host or ""), url.explicit_port
    except ValueError:
        name, port = "", None
    if not name:  # it cannot be fetched, but needs a host to wait and fail under
        return site.partition("//")[2].rpartition("@")[2].lower().replace(" ", "")
    return _shown(name, None if port == _DEFAULT_PORTS.get(url.scheme) else port)


def _shown(name: str, port: int | None) -> str:
    shown = f"[{name}]" if ":" in name else name
    return shown if port is None else f"{shown}:{port}"


def plain_host(host: str) -> str:
    """Return a host as yarl parses it, in the one spelling where two remain."""
    if "%" in host:
        host = URL.build(scheme="http", host=unquote(host).lower()).raw_host or ""
    host = host.rstrip(".")
    address = literal_address(host) if is_literal(host) else None
    return host if address is None else str(address)


def is_literal(host: str) -> bool:
    """Return whether the host is an address in any spelling that some resolver accepts: `127.1`, `0x7f000001`.

    As browsers do: a name whose last label is a number is an address.
    """
    if ":" in host:
        return True
    last = host.rstrip(".").rpartition(".")[2]
    return last.isdigit() or last.startswith("0x")


def literal_address(host: str) -> IPv4Address | IPv6Address | None:
    """Return the address that a literal spells, however oddly; None if it spells none."""
    try:
        if ":" in host:
            return IPv6Address(host)
        return IPv4Address(socket.inet_aton(host.rstrip(".")))
    except (ValueError, OSError):
        return None
