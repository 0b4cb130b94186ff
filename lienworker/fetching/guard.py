"""Keeps fetches out of the operator's own network: a task list is input from outside.

Names are checked after they were resolved, and what was checked is what aiohttp connects to: it gets the
addresses from here and asks nobody else, so a name that changes between check and use gains nothing. aiohttp does not
ask its resolver about literal addresses; those are checked before each request (`check`).
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from lienworker.errors import InputError
from lienworker.fetching.failures import FetchError
from lienworker.fetching.urls import is_host
from lienworker.hostnames import is_literal, literal_address

Lookup = Callable[[str], Awaitable[list[str]]]

DNS_TTL = 60.0
# A failed lookup is remembered just long enough to spare the resolver a burst.
DNS_FAILURE_TTL = 5.0
_MAX_NAMES = 10_000


async def system_lookup(host: str) -> list[str]:
    """Return all addresses of a name, in the order in which the system prefers them."""
    found = await asyncio.get_running_loop().getaddrinfo(
        host, None, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG
    )
    return list(dict.fromkeys(str(entry[4][0]).partition("%")[0] for entry in found))


class Guard:
    """The one place that says which hosts may be connected to, with a cache of their addresses."""

    def __init__(
        self,
        allow_private: Iterable[str],
        *,
        timeout: float = 10.0,
        lookup: Lookup = system_lookup,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._exceptions = Exceptions.parse(allow_private)
        self._timeout = timeout
        self._lookup = lookup
        self._clock = clock
        self._known: dict[str, tuple[float, list[str]]] = {}
        self._asking: dict[str, asyncio.Task[list[str]]] = {}
        # Asked once a page, for few hosts; only hosts that passed are remembered.
        self.check = lru_cache(maxsize=1_000)(self._check)

    def _check(self, host: str, port: int) -> None:
        """Refuse a literal address that must not, or cannot, be connected to. Names pass."""
        if not is_literal(host):
            return
        address = literal_address(host)
        if address is None:
            raise FetchError("bad_url", f"{host} is not an address.")
        if not (self._admits(address) or self._exceptions.allow_host(host, port)):
            raise _refused(host, address)
        if ":" not in host and host != str(address):
            # Which address 0177.1 means depends on the library, so it is refused.
            raise FetchError("bad_url", f"{host} is an odd spelling of {address}; write it so.")

    async def addresses(self, host: str, port: int) -> list[str]:
        """Return the addresses of a host that may be connected to: at least one, or `FetchError`."""
        self.check(host, port)
        if is_literal(host):
            return [host]
        found = await self._resolve(host)
        if not found:
            raise FetchError("dns_failed", f"The name {host} cannot be resolved.")
        if self._exceptions.allow_host(host, port):
            return found
        admitted = [text for text in found if self._admits(ipaddress.ip_address(text))]
        if not admitted:
            raise _refused(host, ipaddress.ip_address(found[0]))
        return admitted

    def _admits(self, address: Address) -> bool:
        return is_public(address) or self._exceptions.allow_address(address)

    async def _resolve(self, host: str) -> list[str]:
        known = self._known.get(host)
        if known is not None and known[0] > self._clock():
            return known[1]
        task = self._asking.get(host)
        if task is None:
            task = self._asking[host] = asyncio.create_task(self._ask(host))
        # Shielded: a fetch that is cancelled must not cancel the answer for the others that wait for it.
        return await asyncio.shield(task)

    async def _ask(self, host: str) -> list[str]:
        try:
            async with asyncio.timeout(self._timeout):
                found = await self._lookup(host)
        except (OSError, UnicodeError):  # a timeout is an OSError, too
            found = []
        finally:
            del self._asking[host]
        self._known.pop(host, None)
        while len(self._known) >= _MAX_NAMES:
            del self._known[next(iter(self._known))]
        self._known[host] = (self._clock() + (DNS_TTL if found else DNS_FAILURE_TTL), found)
        return found

    async def close(self) -> None:
        tasks = list(self._asking.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class GuardedResolver(AbstractResolver):
    """Hands aiohttp the addresses that the guard admits, and no others."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for address in await self._guard.addresses(host, port)
        ]

    async def close(self) -> None:
        """Do nothing: the guard outlives the connectors that share it."""


def _refused(host: str, address: Address) -> FetchError:
    where = f"{host} is" if host == str(address) else f"{host} leads to {address},"
    return FetchError(
        "private_address", f"{where} a private or reserved address; LIENWORKER_ALLOW_PRIVATE_HOSTS={host} allows it."
    )


# Which addresses are on the public internet, and the operator's exceptions. Pure.
#
# The networks are listed here, after the IANA registries of special-purpose addresses, because the answers of
# `ipaddress` (`is_private`, `is_global`) differ between Python versions.


Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_REFUSED_V4 = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",  # this network, unspecified
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carrier-grade NAT
        "127.0.0.0/8",  # loopback
        "169.254.0.0/16",  # link-local, and the clouds' metadata services
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
    )
)
# Global unicast is one block; loopback, link-local, unique local, multicast and everything else are outside.
_GLOBAL_V6 = IPv6Network("2000::/3")
_REFUSED_V6 = tuple(
    IPv6Network(text)
    for text in (
        "2001::/23",  # protocol assignments: Teredo (which carries IPv4 addresses), ORCHID, benchmarks
        "2001:db8::/32",  # documentation
        "3fff::/20",  # documentation
    )
)
_NAT64 = IPv6Network("64:ff9b::/96")


def is_public(address: Address) -> bool:
    """Return whether the address, or the IPv4 address embedded in it, belongs to the public internet."""
    inner = embedded(address)
    if inner is not None:
        address = inner
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _REFUSED_V4)
    return address in _GLOBAL_V6 and not any(address in network for network in _REFUSED_V6)


def embedded(address: Address) -> IPv4Address | None:
    """Return the IPv4 address that an IPv6 address leads to: mapped, 6to4, or through a NAT64 gateway."""
    if isinstance(address, IPv4Address):
        return None
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour


@dataclass(frozen=True, slots=True)
class Exceptions:
    """Where the operator allows private addresses."""

    everything: bool
    hosts: frozenset[tuple[str, int | None]]
    networks: tuple[Network, ...]

    @classmethod
    def parse(cls, entries: Iterable[str]) -> Exceptions:
        hosts: set[tuple[str, int | None]] = set()
        networks: list[Network] = []
        everything = False
        for entry in filter(None, (text.strip() for text in entries)):
            network = _network(entry)
            if entry.lower() == "all":
                everything = True
            elif network is not None:
                networks.append(network)
            else:
                hosts.add(_host_and_port(entry))
        return cls(everything, frozenset(hosts), tuple(networks))

    def allow_host(self, host: str, port: int) -> bool:
        if self.everything:
            return True
        name = host.rstrip(".")
        return (name, port) in self.hosts or (name, None) in self.hosts

    def allow_address(self, address: Address) -> bool:
        inner = embedded(address) or address
        return self.everything or any(inner in net or address in net for net in self.networks)


def _network(entry: str) -> Network | None:
    try:
        return ipaddress.ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        return None


def _host_and_port(entry: str) -> tuple[str, int | None]:
    try:
        url = URL(f"http://{entry}")
        host, port = url.raw_host or "", url.explicit_port
    except ValueError:
        host, port = "", None
    if not is_host(host) or url.raw_path != "/" or url.query_string:
        raise InputError(f"{entry!r} is not a host name, address or network to allow private fetches for")
    return host.rstrip("."), port
