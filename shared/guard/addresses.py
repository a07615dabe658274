"""Addresses that no remote and no page may have: of this machine, of its own link, and those that lead there."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# Where clouds tell a machine about itself and hand out its keys, besides 169.254.169.254.
_METADATA = frozenset(map(ipaddress.ip_address, ("100.100.100.200", "192.0.0.192", "fd00:ec2::254")))
_BROADCAST = ipaddress.ip_address("255.255.255.255")
# What gateways and kernels make IPv4 of: the last four bytes are the address that is meant.
_TRANSLATED = tuple(map(ipaddress.IPv6Network, ("64:ff9b::/96", "64:ff9b:1::/48", "::/96")))


def _meant(address: Address) -> Iterator[Address]:
    """The address, and the one of IPv4 that is within it."""
    yield address
    if isinstance(address, ipaddress.IPv6Address):
        within = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
        yield from (found for found in within if found is not None)
        if any(address in network for network in _TRANSLATED):
            yield ipaddress.IPv4Address(address.packed[-4:])


def is_nowhere(address: Address) -> bool:
    """Whether it is no place of the web: of this machine's own link, of all at once, or of its cloud's."""
    return any(
        found.is_link_local
        or found.is_multicast
        or found.is_unspecified
        or found in _METADATA
        or found == _BROADCAST
        for found in _meant(address)
    )


def is_inner(address: Address) -> bool:
    """Whether it is none of another machine."""
    return is_nowhere(address) or any(found.is_loopback for found in _meant(address))
