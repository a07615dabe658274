"""A cluster to be hurt: its own Redis behind proxies, a scripted model, replicas as real processes."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import resource
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import psutil

from shared.bus.keys import Names
from shared.bus.presence import Presence
from shared.bus.redis import RedisBus
from shared.errors import PromptDockError, Unreachable
from shared.turns.queue import Queue
from tests.faults.model import Thinker
from tests.faults.proxy import Proxy
from tests.faults.server import Server
from tests.support.messages_api import MessagesApi
from tests.support.processes import PATIENCE, Site, Worker

LEASE = 1500  # milliseconds
AGENTS = ("chatter", "planner", "backend")
_keys = itertools.count(1)


class Cluster:
    """Everything of one fault run; made by `cluster`."""

    def __init__(self, folder: Path, server: Server, api: MessagesApi, model: Thinker, lease: int) -> None:
        self.folder, self.server, self.api, self.model, self.lease = folder, server, api, model, lease
        self.names = Names("f")
        self.site = Site(
            folder,
            server.url,
            PROMPTDOCK_NAMESPACE=self.names.namespace,
            PROMPTDOCK_LEASE=str(lease),
            ANTHROPIC_API_KEY="sk-test-of-the-fault-suite",
            ANTHROPIC_BASE_URL=api.url,
            LOG_LEVEL="warning",
        )
        self.bus = RedisBus(server.url, silence=2.0, client_name="faults")
        self._presence = Presence(self.bus, self.names)
        self.proxies: dict[int, Proxy] = {}  # by process id
        self.keys: dict[int, str] = {}  # with which each process buys
        self._tended: dict[
            Worker, tuple[Proxy | None, dict[str, str]]
        ] = {}  # how each that lives was started
        self._again: dict[int, Worker] = {}  # who was started in place of a process
        self.frozen: list[str] = []  # who, from when to when (monotonic)
        self.recoveries: list[float] = []  # seconds from a fault until what it held was held by another
        self._watching: set[asyncio.Task[None]] = set()
        self._forgotten = 0
        self.sizes: list[tuple[int, int]] = []  # messages sent, bytes of memory of all Chatters
        self.queues = {agent: Queue(self.bus, self.names, agent, lease_ms=lease) for agent in AGENTS}

    # -- processes -------------------------------------------------------------------------------------------

    def replicas(self, agent: str) -> list[Worker]:
        """Those that live."""
        return [w for w in self.site.workers if w.name == agent and w.process.poll() is None]

    async def start(self, agent: str, proxied: bool = False, wait: bool = True, **environment: str) -> Worker:
        """One more replica, ready; through a proxy of its own if wanted."""
        proxy = await Proxy(self.server.url).__aenter__() if proxied else None
        if proxy is not None:
            environment["REDIS_URL"] = proxy.url
        worker = await self._begin(agent, proxy, environment)

        async def stands() -> bool:
            return await self._listens(self._successor(worker))

        if wait:
            assert await happens(stands, PATIENCE), self._successor(worker).tail()
        return self._successor(worker)

    async def supervise(self) -> None:
        """Whoever ends because Redis cannot be used is started again, as whoever supervises workers does."""
        while True:
            for worker in [worker for worker in self._tended if worker.process.poll() is not None]:
                proxy, environment = self._tended.pop(worker)
                if worker.process.poll() == Unreachable.exit_code:
                    self._again[worker.pid] = await self._begin(worker.name, proxy, environment)
            await asyncio.sleep(0.05)

    def _successor(self, worker: Worker) -> Worker:
        """The one that was started in its place, if that was needed."""
        while worker.pid in self._again:
            worker = self._again[worker.pid]
        return worker

    async def _begin(self, agent: str, proxy: Proxy | None, environment: dict[str, str]) -> Worker:
        # Each buys with a key of its own, so that the model's side can tell who asked.
        told = {"LOG_LEVEL": "info", "ANTHROPIC_API_KEY": f"sk-test-{agent}-{next(_keys)}", **environment}
        worker = await asyncio.to_thread(lambda: self.site.start(agent, **told))
        self.keys[worker.pid] = told["ANTHROPIC_API_KEY"]
        self._tended[worker] = proxy, environment
        if proxy is not None:
            self.proxies[worker.pid] = proxy
        return worker

    async def _listens(self, worker: Worker) -> bool:
        """Whether it has shown itself on the bus; its log takes no word where the disk is full."""
        code = worker.process.poll()
        assert code in (None, Unreachable.exit_code), f"ended with {code}: {worker.tail()}"
        return any(card["pid"] == worker.pid for card in await self._presence.here(worker.name))

    async def kill(self, worker: Worker, *, again: bool = True) -> None:
        """kill -9; what it held is watched until another holds it; a new replica takes its place."""
        held = await self.busy(worker)
        await asyncio.to_thread(worker.kill)
        self._watch(held)
        if again:
            await self.start(worker.name, proxied=worker.pid in self.proxies)

    async def freeze(self, worker: Worker, seconds: float) -> None:
        """SIGSTOP, and SIGCONT after so many seconds."""
        held = await self.busy(worker)
        worker.signal(signal.SIGSTOP)
        since = time.monotonic()
        self._watch(held)
        try:
            await asyncio.sleep(seconds)
        finally:
            self._wake(worker, since)

    async def busy(self, worker: Worker, patience: float = 1.0) -> dict[str, bytes]:
        """What it holds, as soon as it holds something; a fault that interrupts nothing proves nothing."""
        ends = time.monotonic() + patience
        while time.monotonic() < ends:
            with contextlib.suppress(PromptDockError):  # another fault may keep Redis from answering
                if held := await self.held(worker):
                    return held
            await asyncio.sleep(0.01)
        return {}

    async def held(self, worker: Worker) -> dict[str, bytes]:
        """The turns that a worker has under lease now: key of the turn -> its epoch."""
        found: dict[str, bytes] = {}
        prefix = f"{self.queues[worker.name].prefix}turn:"
        for key in await self.bus.command("KEYS", _literal(prefix) + "*"):
            owner, epoch = await self.bus.command("HMGET", key, "owner", "epoch")
            if owner and f"-{worker.pid}-".encode() in owner:
                found[key.decode()] = epoch
        return found

    def _watch(self, held: dict[str, bytes]) -> None:
        for key, epoch in held.items():
            task = asyncio.create_task(self._recovered(key, epoch, time.monotonic()))
            self._watching.add(task)
            task.add_done_callback(self._watching.discard)

    async def _recovered(self, key: str, epoch: bytes, since: float) -> None:
        while time.monotonic() - since < 60:
            with contextlib.suppress(PromptDockError):
                if await self.bus.command("HGET", key, "epoch") != epoch:
                    break
            await asyncio.sleep(0.02)
        self.recoveries.append(time.monotonic() - since)

    async def recovered(self) -> None:
        """Wait until all that is watched has been taken over."""
        if self._watching:
            await asyncio.wait(list(self._watching), timeout=60)

    @contextlib.asynccontextmanager
    async def kept(self, agent: str) -> AsyncIterator[None]:
        """Meanwhile whoever dies is replaced, as a supervisor would do it."""
        wanted = len(self.replicas(agent))
        proxied = any(worker.pid in self.proxies for worker in self.replicas(agent))

        async def keep() -> None:
            while True:
                if len(self.replicas(agent)) < wanted:
                    await self.start(agent, proxied, wait=False)
                await asyncio.sleep(0.02)

        keeper = asyncio.create_task(keep())
        try:
            yield
        finally:
            keeper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await keeper
            for worker in self.replicas(agent):
                await asyncio.to_thread(worker.ready)

    @contextlib.asynccontextmanager
    async def woken(self, agent: str, seconds: float) -> AsyncIterator[None]:
        """Meanwhile whoever stops itself is woken up so many seconds later."""
        asleep: dict[int, float] = {}

        def look() -> None:
            for worker in self.replicas(agent):
                if psutil.Process(worker.pid).status() != psutil.STATUS_STOPPED:
                    continue
                since = asleep.setdefault(worker.pid, time.monotonic())
                if time.monotonic() - since > seconds:
                    self._wake(worker, asleep.pop(worker.pid))

        async def keep() -> None:
            while True:
                look()
                await asyncio.sleep(0.02)

        keeper = asyncio.create_task(keep())
        try:
            yield
        finally:
            keeper.cancel()
            await asyncio.gather(keeper, return_exceptions=True)
            for worker in self.replicas(agent):
                worker.signal(signal.SIGCONT)

    def _wake(self, worker: Worker, since: float) -> None:
        worker.signal(signal.SIGCONT)
        woke = time.monotonic()
        self.frozen.append(f"{self.keys[worker.pid]} was frozen from {since:.3f} to {woke:.3f}")

    @contextlib.contextmanager
    def no_room(self, workers: list[Worker]) -> Iterator[None]:
        """Meanwhile no write of theirs to a file succeeds, as on a full disk."""
        limits = {worker.pid: resource.prlimit(worker.pid, resource.RLIMIT_FSIZE) for worker in workers}
        try:
            for pid, (_, most) in limits.items():
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, most))
            yield
        finally:
            for pid, limit in limits.items():
                with contextlib.suppress(ProcessLookupError):
                    resource.prlimit(pid, resource.RLIMIT_FSIZE, limit)

    def forget(self) -> None:
        """Let go of the requests of long ago; a long run makes gigabytes of them."""
        for exchange in self.api.exchanges[self._forgotten : -200]:
            exchange.body = {}
        self._forgotten = max(0, len(self.api.exchanges) - 200)

    # -- state -----------------------------------------------------------------------------------------------

    async def quiet(self, seconds: float = 40.0) -> bool:
        """Wait until no queue has anything left to do, and everything is stored; False if that takes longer."""
        return await happens(self._nothing_left, seconds)

    async def _nothing_left(self) -> bool:
        for queue in self.queues.values():
            for kind, name in (("XLEN", "inbox"), ("ZCARD", "due"), ("XLEN", "archive")):
                if await self.bus.command(kind, queue.prefix + name):
                    return False
        return True

    async def settled(self) -> bool:
        """Whether what was interrupted got on: three faults on one message rightly make it a dead letter."""
        for queue in self.queues.values():
            for key in await self.bus.command("KEYS", f"{_literal(queue.prefix)}turn:*"):
                if int(await self.bus.command("HGET", key, "tries") or 0) > 1:
                    return False
        return True

    async def leftovers(self) -> list[str]:
        """Keys of turns that are still there although nothing is left to do."""
        left: list[str] = []
        for queue in self.queues.values():
            for kind in ("mail", "join", "given", "journal", "turn"):
                keys = await self.bus.command("KEYS", f"{_literal(queue.prefix)}{kind}:*")
                left += [key.decode() for key in keys]
        return left

    async def state(self) -> list[str]:
        """What is under way and who lives, for whoever asks why nothing goes on."""
        told = []
        for name, queue in self.queues.items():
            alive = [worker.pid for worker in self.replicas(name)]
            told.append(f"{name}: {await queue.size()} open, alive: {alive}")
            for key in await self.bus.command("KEYS", f"{_literal(queue.prefix)}turn:*"):
                told.append(f"  {key.decode()}: {await self.bus.command('HGETALL', key)}")
        return told + [f"{worker.pid} {worker.tail()}" for worker in self.site.workers[-8:]]

    async def stale(self) -> int:
        """How many commits of workers without a lease were refused."""
        counts = [await self.bus.command("GET", f"{queue.prefix}stale") for queue in self.queues.values()]
        return sum(int(count or 0) for count in counts)

    async def close(self) -> None:
        """End everything."""
        for task in list(self._watching):
            task.cancel()
        await asyncio.to_thread(self.site.close)
        await self.bus.close()
        for proxy in self.proxies.values():
            await proxy.__aexit__(None, None, None)


def _literal(prefix: str) -> str:
    return prefix.replace("{", "[{]").replace("}", "[}]")


async def happens(condition: Callable[[], Awaitable[bool]], seconds: float) -> bool:
    """Whether a condition comes true in time; a Redis that is away only delays it."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        with contextlib.suppress(PromptDockError):
            if await condition():
                return True
        await asyncio.sleep(0.05)
    return False


@contextlib.asynccontextmanager
async def cluster(
    folder: Path,
    *,
    chatters: int = 3,
    planners: int = 1,
    backends: int = 0,
    lease: int = LEASE,
    delay: float = 0.05,
    proxied: bool = False,
    options: dict[str, str] | None = None,
    **environment: str,
) -> AsyncIterator[Cluster]:
    """A cluster that is ready, and gone afterwards. `options` are Redis's, `environment` the workers'."""
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    server, model = Server(folder / "server", **(options or {})), Thinker(delay)
    await server.up()
    try:
        with MessagesApi(model) as api:
            model.buyer = lambda: api.exchanges[-1].key
            made = Cluster(folder, server, api, model, lease)
            made.site.environment.update(environment)
            supervising = asyncio.create_task(made.supervise())
            try:
                wanted = ["chatter"] * chatters + ["planner"] * planners + ["backend"] * backends
                await asyncio.gather(*(made.start(agent, proxied and agent == "chatter") for agent in wanted))
                yield made
            finally:
                supervising.cancel()
                await asyncio.wait([supervising])
                await made.close()
    finally:
        await asyncio.to_thread(server.stop)
