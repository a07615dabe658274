"""Which server a key lies on: one server, the master behind sentinels, or a node of a cluster.

redis://host:6379/0                                    one server (rediss:// with TLS, unix:// by socket)
redis+sentinel://host1:26379,host2:26379/service/0     the master that the sentinels name
redis+cluster://host1:7000,host2:7001                  the node that owns the key's slot
"""

from __future__ import annotations

import asyncio
import re
from abc import ABC, abstractmethod
from typing import Any
from urllib.parse import unquote, urlsplit

from shared.bus.redis.ways import Library, load_library, plain
from shared.bus.redis.wire import LOST, Way
from shared.errors import BusUnreachable, ConfigurationError

_FORM = re.compile(r"(?P<kind>rediss?)\+(?P<how>sentinel|cluster)://", re.IGNORECASE)


class Topology(ABC):
    """Makes connections. A node is a name that only the topology understands."""

    @abstractmethod
    async def node(self, key: str | None) -> str:
        """The node that owns a key; any node for None."""

    @abstractmethod
    def way(self, node: str) -> Way:
        """How a node is reached, for one connection."""

    async def nodes(self) -> list[str]:
        """All nodes that take subscriptions."""
        return [await self.node(None)]

    async def look_again(self) -> None:
        """What was known may be outdated: a node said that a key has moved, or does not answer."""
        return

    async def close(self) -> None:
        """Give connections back."""
        return


def of(url: str, options: dict[str, Any]) -> Topology:
    """The topology that a URL names; ConfigurationError where it cannot be read."""
    match = _FORM.match(url)
    try:
        if match is None:
            return Single(url, options)
        rest = f"{match['kind']}://{url[match.end() :]}"
        return Sentinels(rest, options) if match["how"].lower() == "sentinel" else RedisCluster(rest, options)
    except ValueError as error:
        raise ConfigurationError(
            "REDIS_URL cannot be read", str(error), "write it as redis://host:6379"
        ) from None


class Single(Topology):
    """One server."""

    def __init__(self, url: str, options: dict[str, Any]) -> None:
        self._plain = plain(url, options["client_name"])
        if self._plain is not None:
            return
        load_library()
        from redis.asyncio.connection import Connection, parse_url

        own: dict[str, Any] = dict(parse_url(url))
        self._make = own.pop("connection_class", Connection)
        self._options = own | options

    async def node(self, key: str | None) -> str:
        return ""

    def way(self, node: str) -> Way:
        return self._plain or Library(self._make(**self._options))


class Sentinels(Topology):
    """The master of a service. Each new connection asks the sentinels anew, so a failover needs no more."""

    def __init__(self, url: str, options: dict[str, Any]) -> None:
        load_library()
        from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool

        hosts, login, path, tls = _parts(url)
        service, _, database = path.partition("/")
        if not service:
            raise ValueError("the name of the service is missing after the hosts")
        patience = options["socket_connect_timeout"]
        sentinel = Sentinel(  # type: ignore[no-untyped-call]
            hosts, sentinel_kwargs={"socket_timeout": patience, "socket_connect_timeout": patience}
        )
        self._sentinels: Any = sentinel.sentinels  # clients with connections of their own
        self._pool = SentinelConnectionPool(  # type: ignore[no-untyped-call]
            service, sentinel, ssl=tls, db=int(database or 0), **login, **options
        )

    async def node(self, key: str | None) -> str:
        return ""

    def way(self, node: str) -> Way:
        return Library(self._pool.make_connection())  # type: ignore[no-untyped-call]

    async def close(self) -> None:
        for client in self._sentinels:
            await client.aclose()


class RedisCluster(Topology):
    """The nodes of a cluster; where a slot lies is asked of the cluster when it is not known or has moved."""

    def __init__(self, url: str, options: dict[str, Any]) -> None:
        self._hosts, self._login, path, self._tls = _parts(url)
        if path not in ("", "0"):
            raise ValueError("a cluster has no numbered databases")
        load_library()
        self._options = options
        self._map: Any = None
        self._asking = asyncio.Lock()  # callers that miss the map at the same time ask once, together

    async def node(self, key: str | None) -> str:
        known = self._map or await self._known()
        owner = known.get_default_node() if key is None else known.get_node_from_key(key)
        return f"{owner.host} {owner.port}"

    def way(self, node: str) -> Way:
        from redis.asyncio.connection import Connection, SSLConnection

        host, port = node.split()
        make = SSLConnection if self._tls else Connection
        return Library(make(host=host, port=int(port), **self._login, **self._options))

    async def nodes(self) -> list[str]:
        known = self._map or await self._known()
        return [f"{node.host} {node.port}" for node in known.get_primaries()]

    async def look_again(self) -> None:
        await self.close()

    async def close(self) -> None:
        known, self._map = self._map, None
        if known is not None:
            await known.aclose()

    async def _known(self) -> Any:
        async with self._asking:
            if self._map is None:
                self._map = await self._ask()
            return self._map

    async def _ask(self) -> Any:
        from redis.asyncio.cluster import ClusterNode, RedisCluster
        from redis.exceptions import RedisError

        patience = self._options["socket_connect_timeout"]
        made = RedisCluster(
            startup_nodes=[ClusterNode(host, port) for host, port in self._hosts],
            ssl=self._tls,
            socket_timeout=patience,
            socket_connect_timeout=patience,
            **self._login,
        )
        try:
            return await made.initialize()
        except BaseException as error:  # a caller that gives up leaves no connection behind either
            await made.aclose()
            if isinstance(error, (*LOST, RedisError, TimeoutError)):
                raise BusUnreachable("the Redis cluster does not answer", str(error)) from error
            raise


def _parts(url: str) -> tuple[list[tuple[str, int]], dict[str, Any], str, bool]:
    """Hosts, login, path and whether TLS is wanted, of a URL with several hosts."""
    split = urlsplit(url)
    login_text, _, hosts_text = split.netloc.rpartition("@")
    hosts = []
    for place in hosts_text.split(","):
        host, _, port = place.rpartition(":")
        hosts.append((host.strip("[]") or "127.0.0.1", int(port)))
    user, _, password = login_text.partition(":")
    login: dict[str, Any] = {"username": unquote(user), "password": unquote(password)}
    return (
        hosts,
        {key: value for key, value in login.items() if value},
        split.path.strip("/"),
        split.scheme == "rediss",
    )
