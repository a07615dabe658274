"""Where an address may lead: names are looked up once, judged, and kept to what was found.

Private networks, this machine, its own link and its cloud's inner addresses are refused, unless the owner granted the
host. One list and one look-up for git and for http: what is asked twice can be answered differently.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass

from shared import failpoints
from shared.errors import ToolError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
AddressLookup = Callable[[str], Awaitable[Sequence[str]]]

LOOKUP = 5.0  # seconds

# Where clouds tell a machine about itself and hand out its keys, besides 169.254.169.254.
_METADATA = frozenset(map(ipaddress.ip_address, ("100.100.100.200", "192.0.0.192", "fd00:ec2::254")))
_BROADCAST = ipaddress.ip_address("255.255.255.255")
# What gateways and kernels make IPv4 of: the last four bytes are the address that is meant.
_TRANSLATED = tuple(map(ipaddress.IPv6Network, ("64:ff9b::/96", "64:ff9b:1::/48", "::/96")))
# What some releases of Python take for everybody's.
_RESERVED = tuple(
    map(ipaddress.ip_network, ("0.0.0.0/8", "192.0.0.0/24", "198.18.0.0/15", "240.0.0.0/4", "fec0::/10"))
)
_INNER_NAMES = ("localhost", "localhost.localdomain", "metadata", "metadata.google.internal", "ip6-localhost")
_NOWHERE = "an address that is no place of the web"
_PRIVATE = "an address of this machine or of a private network"


async def look_up(name: str) -> list[str]:
    """The addresses of a name, the best first; none where it leads nowhere, or nobody answers in time."""
    try:
        async with asyncio.timeout(LOOKUP):
            found = await asyncio.get_running_loop().getaddrinfo(name, 443, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError, TimeoutError):
        return []
    return list(dict.fromkeys(str(entry[4][0]).partition("%")[0] for entry in found))


class Unknown(ToolError):
    """A name that nobody has an address for."""


@dataclass(frozen=True)
class Reach:
    """How far addresses may lead: `hosts` may lie in a private network or on this machine; `local` lets all do that.

    With `local` paths of this machine count as well: only for what a person has set up.
    """

    hosts: frozenset[str] = frozenset()
    local: bool = False
    resolve: AddressLookup = look_up

    def grants(self, host: str) -> bool:
        """Whether the owner named this host."""
        return self.local or plain(host) in map(plain, self.hosts)


PUBLIC = Reach()
LOCAL = Reach(local=True)


def plain(host: str) -> str:
    """A host as it is compared: without brackets, the dot at its end, and capitals."""
    return host.strip("[]").rstrip(".").casefold()


def written(host: str) -> Address | None:
    """The address that a host writes, also in the old forms (127.1, 0x7f000001, 2130706433); None for a name."""
    name = plain(host)
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(name))
    except (OSError, ValueError):
        return None


def refused(address: Address, granted: bool) -> str:
    """Why nothing is sent there; "" where it may be. What a host was granted is no place on its own link."""
    if is_nowhere(address):
        return _NOWHERE
    return _PRIVATE if is_private(address) and not granted else ""


def refused_text(host: str, reach: Reach) -> str:
    """Why a host cannot be used, as far as its text says so: nothing is looked up."""
    name, address = plain(host), written(host)
    if address is not None:
        return refused(address, reach.grants(host))
    inner = name in _INNER_NAMES or name.endswith(".localhost")
    return _PRIVATE if inner and not reach.grants(host) and not _off() else ""


async def pin(host: str, reach: Reach) -> list[Address]:
    """The addresses that a host has now, each of them judged; ToolError where one may not be used, or there is none."""
    given = written(host)
    found = [given] if given else [ipaddress.ip_address(one) for one in await reach.resolve(plain(host))]
    if not found:
        raise Unknown(f"{host!a} cannot be reached", "its name leads nowhere", "correct the address")
    for address in found:
        if why := refused(address, reach.grants(host)):
            fix = "" if is_nowhere(address) else "its owner can name the host in ALLOWED_HOSTS"
            raise ToolError(f"{host!a} cannot be reached", f"it leads to {address}, {why}", fix)
    return found


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
    return not _off() and any(
        found.is_link_local
        or found.is_multicast
        or found.is_unspecified
        or found in _METADATA
        or found == _BROADCAST
        for found in _meant(address)
    )


def is_private(address: Address) -> bool:
    """Whether it is none that the whole world calls by this number, or stands for one that is not."""
    return not _off() and (is_nowhere(address) or any(map(_inner, _meant(address))))


def _inner(address: Address) -> bool:
    return not address.is_global or any(address in network for network in _RESERVED)


def _off() -> bool:
    return failpoints.without("private-network")
