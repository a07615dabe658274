"""The composition root of a worker: the one place that chooses implementations."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass, field
from functools import cached_property

from shared import log
from shared.bus import embedded, signing
from shared.bus.base import Bus
from shared.bus.factory import make_bus
from shared.bus.keys import SCHEMA, Names
from shared.bus.model_lists import ModelLists
from shared.errors import ConfigurationError, StoreUnavailable
from shared.guard.files.host_id import home_id
from shared.guard.sandbox.sandbox import Sandbox
from shared.mcp.servers import Servers
from shared.models.base import Model
from shared.models.fallback import Outages
from shared.settings import Settings, load
from shared.store.base import Store
from shared.store.breaker import Breaker
from shared.store.factory import make_store, store_file
from shared.tasks.worktree.mirrors import Mirrors
from shared.tools.mcp.launch import launching
from shared.turns.signatures import Signatures
from shared.worker.connection import Connection
from shared.worker.permissions.authority import Authority
from shared.worker.permissions.service import ApprovalService
from shared.worker.provider import ReloadingModel
from shared.worker.repositories import KnownRepositories
from shared.worker.store_events import AnnouncingStore


def _reload() -> Settings:
    settings = load()
    log.hide(*settings.secrets())
    return settings


async def check_cluster(bus: Bus, names: Names) -> str:
    """The id of the cluster whose keys these are; ConfigurationError if a newer release wrote them."""
    await bus.command("HSETNX", names.meta, "cluster", secrets.token_hex(6))
    await bus.command("HSETNX", names.meta, "schema", SCHEMA)
    schema, cluster = await bus.command("HMGET", names.meta, "schema", "cluster")
    if not schema.isdigit():
        raise ConfigurationError(
            "the data in Redis cannot be read",
            f"{names.meta} names no schema",
            "look at it: promptdock doctor",
        )
    if int(schema) > SCHEMA:
        raise ConfigurationError(
            f"the data in Redis has schema {int(schema)}",
            f"this release knows {SCHEMA}",
            "run the release that wrote it, or use another PROMPTDOCK_NAMESPACE",
        )
    return str(cluster.decode())


async def redis_warnings(bus: Bus) -> list[str]:
    """What is wrong with how this Redis keeps data, in words."""
    try:
        info = (await bus.command("INFO", "persistence")).decode()
        policy = (await bus.command("INFO", "memory")).decode()
    except Exception:  # a server that hides INFO is no reason not to run
        return []
    found = []
    if "aof_enabled:1" not in info:
        found.append(
            "Redis keeps no append-only file: what was accepted is lost when it dies (set appendonly yes)"
        )
    if (
        "maxmemory_policy:" in policy
        and "maxmemory_policy:noeviction" not in policy
        and "maxmemory:0\r" not in policy
    ):
        found.append("Redis may throw keys away when memory is full (set maxmemory-policy noeviction)")
    return found


def unread() -> asyncio.Event:
    """An agent of which nothing was read yet."""
    event = asyncio.Event()
    event.set()
    return event


@dataclass
class CoreResources:
    """What every worker stands on, also one that thinks with no model. The Store may not be open."""

    settings: Settings
    connection: Connection
    store: Store
    cluster: str
    # The agent may have changed itself since it was last read.
    stale: asyncio.Event = field(default_factory=unread, kw_only=True)

    @property
    def signatures(self) -> Signatures:
        """Who judges what is heard."""
        return Signatures(self.connection.names, self.connection.signer, self.settings.unsigned_may)

    async def open_existing(self) -> None:
        """Open the Store where there is one: whoever only passes by makes none."""
        if self.settings.supabase_url or store_file(self.settings).exists():
            await _open(self.store)

    async def close(self) -> None:
        """Give everything back."""
        await self.store.close()
        await self.connection.bus.close()


@dataclass
class Resources(CoreResources):
    """What the worker of an agent is made of."""

    model: Model
    home: str
    sandbox: Sandbox
    outages: Outages = field(default_factory=Outages)  # of models, for all turns
    repositories: KnownRepositories = field(init=False)

    def __post_init__(self) -> None:
        self.repositories = KnownRepositories(self.store, self.repos)

    @property
    def repos(self) -> Mirrors:
        """The repositories as they lie on this home."""
        return Mirrors(self.settings.home, self.home, self.sandbox, hosts=self.settings.allowed_hosts)

    @property
    def approvals(self) -> ApprovalService:
        """The questions to people about single calls."""
        return ApprovalService(self.connection, self.store, self.settings.approver_roles, self.model.demo)

    @property
    def authority(self) -> Authority:
        """What makers of hooks and tasks may do."""
        return Authority(
            self.store, self.settings.home, self.settings.permission_profile or "", self.sandbox.offline
        )

    @cached_property
    def mcp(self) -> Servers:
        """The sessions with MCP servers; none is opened before an agent asks for its own."""
        settings = self.settings
        launch = launching(settings.home, lambda: self.sandbox)
        return Servers.of_home(settings.home, settings.secrets(), launch)

    async def close(self) -> None:
        """Give everything back."""
        await self.mcp.close()
        await self.model.close()
        await super().close()


async def connect(settings: Settings, agent: str) -> CoreResources:
    """Join the cluster; a wrong setting or a Redis that does not answer is said now."""
    log.hide(*settings.secrets())
    signer = await asyncio.to_thread(signing.of_home, settings)
    names = Names(settings.namespace)
    store = make_store(settings)
    bus = make_bus(embedded.address(settings), settings, f"promptdock-{agent}")
    try:
        cluster = await check_cluster(bus, names)
    except BaseException:
        await bus.close()
        raise
    connection = Connection(bus, names, signer, settings.lease_ms)
    return CoreResources(settings, connection, AnnouncingStore(Breaker(store), bus, names), cluster)


async def build(settings: Settings, agent: str) -> Resources:
    """Connect everything that an agent thinks and works with."""
    core = await connect(settings, agent)
    outages = Outages(settings.model_fallback_ms / 1000)
    cache = ModelLists(core.connection.bus, core.connection.names)
    model = ReloadingModel(settings, _reload, cache=cache, outages=outages)
    try:
        await _open(core.store)
        sandbox = await asyncio.to_thread(Sandbox.probe, settings.sandbox, [settings.home])
        home = await asyncio.to_thread(home_id, settings.home)
    except BaseException:
        await core.close()
        raise
    return Resources(settings, core.connection, core.store, core.cluster, model, home, sandbox, outages)


async def _open(store: Store) -> None:
    try:
        await store.open()
    except StoreUnavailable as error:
        log.get().warning("The store does not answer; going on without it", why=str(error))
