"""Which addresses are on the public internet, and the operator's exceptions. Pure.

The networks are listed here, after the IANA registries of special-purpose addresses, because the answers of
`ipaddress` (`is_private`, `is_global`) differ between Python versions.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from yarl import URL

from lienworker.errors import InputError
from lienworker.fetching.urls import is_host

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
# Global unicast is one block; loopback, link-local, unique local, multicast and all else lie outside.
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
    """True if the address, or the IPv4 address that it carries, is one of the public internet."""
    inner = embedded(address)
    if inner is not None:
        address = inner
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _REFUSED_V4)
    return address in _GLOBAL_V6 and not any(address in network for network in _REFUSED_V6)


def embedded(address: Address) -> IPv4Address | None:
    """The IPv4 address to which an IPv6 address leads: mapped, 6to4, or through a NAT64 gateway."""
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
