"""The faults, one function each: it hurts the cluster while people talk, and says what must have held."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from tests.faults.checker import Findings, Mark, check
from tests.faults.cluster import Cluster, happens
from tests.faults.person import Person
from tests.faults.proxy import Proxy
from tests.faults.stores import store
from tests.faults.workload import Load
from tests.support.messages_script import Step

WARM = 25_000  # messages in which caches and the allocator of the workers fill up
POISON = "poison"  # how the id of a message begins that kills whoever claims it
# Where a worker may die on its way through a turn: those of whoever asks, then those of whoever is asked.
POINTS = (
    *("claimed", "model answered", "answer stored", "call registered", "request sent", "answer heard"),
    *("effect done", "result stored", "final bought", "finished"),
)
# Where a worker may freeze that knows its lease: it holds a claim that it has not read, or is about to buy.
SLEEPS = ("claim read", "model asked")
ASKED = ("claimed", "model answered", "worked", "final stored", "final sent", "finished")
Hurt = Callable[["Scene"], Coroutine[Any, Any, None]]


@dataclass
class Scene:
    """One row while it runs."""

    cluster: Cluster
    load: Load
    times: int  # how often to hurt
    dice: random.Random
    person: Person | None = None

    @property
    def lease(self) -> float:
        """Seconds."""
        return self.cluster.lease / 1000

    async def pause(self) -> None:
        """Let some work come under way."""
        await asyncio.sleep(self.dice.uniform(0.1, 0.4))

    async def repeat(self, hurt: Callable[[], Awaitable[None]]) -> None:
        """Hurt so often, and meanwhile keep people talking."""
        for _ in range(self.times):
            await self.pause()
            await happens(self.cluster.settled, 10)
            await hurt()
            self.cluster.forget()


async def play(
    cluster: Cluster,
    name: str,
    hurt: Hurt,
    load: Load,
    times: int = 1,
    *,
    person: Person | None = None,
    patience: float = 40.0,
) -> Findings:
    """Run one row: send, hurt, heal, wait, check. People talk at least as long as it hurts."""
    since, began = await Mark.now(cluster), time.monotonic()
    scene = Scene(cluster, load, times, random.Random(times), person)
    load.on.set()

    async def hurting() -> None:
        try:
            await hurt(scene)
        finally:
            load.on.clear()

    async with asyncio.TaskGroup() as group:
        group.create_task(load.run())
        group.create_task(hurting())
    found = await check(cluster, since, load, row=name, person=person, patience=patience)
    if hurt is results:  # nothing was in flight, but with a worker that lost its lease by being slow
        found.rebought += max(0, found.in_flight - found.stale)
    if len(cluster.sizes) == 2:
        (sent, small), (last, large) = cluster.sizes
        found.growth = (large - small) / 1024 / max(1, last - sent) * 1000
    found.faults, found.seconds = times, time.monotonic() - began
    return found


# -- workers -------------------------------------------------------------------------------------------------


async def kill_one(scene: Scene) -> None:
    """kill -9 of one of the replicas of Chatter."""
    await scene.repeat(lambda: scene.cluster.kill(scene.dice.choice(scene.cluster.replicas("chatter"))))


async def kill_two(scene: Scene) -> None:
    """kill -9 of two of three at once."""

    async def hurt() -> None:
        doomed = scene.dice.sample(scene.cluster.replicas("chatter"), 2)
        await asyncio.gather(*(scene.cluster.kill(worker) for worker in doomed))

    await scene.repeat(hurt)


async def kill_planner(scene: Scene) -> None:
    """kill -9 of the agent that is being consulted."""

    async def lives() -> bool:  # one that Redis's trouble has ended is started again
        return bool(scene.cluster.replicas("planner"))

    async def hurt() -> None:
        assert await happens(lives, 20), "no Planner lives"
        await scene.cluster.kill(scene.dice.choice(scene.cluster.replicas("planner")))

    await scene.repeat(hurt)


async def freeze(scene: Scene) -> None:
    """SIGSTOP of a replica beyond its lease, then SIGCONT."""
    seconds = 1.6 * scene.lease
    await scene.repeat(
        lambda: scene.cluster.freeze(scene.dice.choice(scene.cluster.replicas("chatter")), seconds)
    )


async def roll(scene: Scene) -> None:
    """A rolling replacement: a new replica comes, an old one drains."""

    async def hurt() -> None:
        old = scene.cluster.replicas("chatter")[0]
        await scene.cluster.start("chatter", proxied=old.pid in scene.cluster.proxies)
        code = await asyncio.to_thread(old.drain)
        assert code == 0, old.tail()

    await scene.repeat(hurt)


async def poison(scene: Scene) -> None:
    """A message that kills each worker that claims it; whoever dies is started again."""
    async with scene.cluster.kept("chatter"):
        for number in range(scene.times):
            user = f"{scene.load.tag}-poison{number}"
            await scene.load.send(user, "say", 0, id=f"{POISON}-{number}")
        scene.load.on.clear()
        await _ended(scene, 20 + 10 * scene.times)


async def points(scene: Scene) -> None:
    """Workers die at each named point of a turn; the environment of the cluster says for which message."""
    scene.load.on.clear()
    async with scene.cluster.kept("chatter"), scene.cluster.kept("planner"):
        await scene.load.done.wait()
        await _ended(scene, 20 + 5 * scene.times)


async def results(scene: Scene) -> None:
    """Workers die between a tool's result and the next model call, one after the other."""
    await points(scene)


async def asleep(scene: Scene) -> None:
    """Workers freeze between their look at the lease and what it is for, and wake up when another has the turn."""
    scene.load.on.clear()
    async with scene.cluster.woken("chatter", 1.6 * scene.lease):
        await scene.load.done.wait()
        await _ended(scene, 20 + 5 * scene.times)


# -- the network ---------------------------------------------------------------------------------------------


async def half_open(scene: Scene) -> None:
    """All connections of one replica carry nothing any more, and nobody is told."""

    async def hurt() -> None:
        scene.dice.choice(list(_proxies(scene))).half_open()
        if scene.person is not None:
            scene.person.proxy.half_open()
        await asyncio.sleep(scene.lease)

    await scene.repeat(hurt)


async def half_open_person(scene: Scene) -> None:
    """Only the line of the person's gateway is dead, while everybody talks on."""
    assert scene.person is not None, "nobody listens"
    scene.person.proxy.half_open()
    await asyncio.sleep(3 * scene.lease)


async def partition(scene: Scene) -> None:
    """One replica is cut off beyond its lease, now both ways, now one."""
    ways = [("there", "back"), ("back",), ("there",)]

    async def hurt() -> None:
        proxy = scene.dice.choice(list(_proxies(scene)))
        proxy.partition(*ways[scene.dice.randrange(3)])
        await asyncio.sleep(1.8 * scene.lease)
        proxy.heal()

    await scene.repeat(hurt)


async def cut(scene: Scene) -> None:
    """Connections are cut and refused for a moment, and late afterwards."""

    async def hurt() -> None:
        proxy = scene.dice.choice(list(_proxies(scene)))
        proxy.refuses = True
        proxy.cut()
        if scene.person is not None:
            scene.person.proxy.cut()
        await asyncio.sleep(0.2)
        proxy.heal()
        proxy.delay = 0.02
        await asyncio.sleep(0.2)
        proxy.heal()

    await scene.repeat(hurt)


def _proxies(scene: Scene) -> list[Proxy]:
    found = [
        scene.cluster.proxies[w.pid]
        for w in scene.cluster.replicas("chatter")
        if w.pid in scene.cluster.proxies
    ]
    assert found, "no replica stands behind a proxy"
    return found


# -- Redis ---------------------------------------------------------------------------------------------------


async def kill_redis(scene: Scene) -> None:
    """kill -9 of Redis, and its restart. Plain PUBLISH rests meanwhile: nobody acknowledges it."""

    async def hurt() -> None:
        scene.load.may_publish.clear()
        await asyncio.sleep(0.15)
        await scene.cluster.server.die()
        await asyncio.sleep(0.3)
        await scene.cluster.server.up()
        assert await happens(lambda: _all_listen(scene), 20), "not all replicas listen again"
        scene.load.may_publish.set()

    await scene.repeat(hurt)


async def outbox(scene: Scene) -> None:
    """Redis dies, and people go on talking to their gateway, which keeps it."""
    person, load = scene.person, scene.load
    assert person is not None, "nobody speaks"
    for number in range(scene.times):
        load.may_publish.clear()
        await asyncio.sleep(0.15)
        await scene.cluster.server.die()
        for n in range(5):
            user = f"{load.tag}-kept{n}"
            identity, text = f"{user}-{number}", f"say {user} {number}"
            sent = await person.client.say(text, user, message_id=identity)
            assert sent.outcome == "kept", sent
            load.acknowledged[identity], load.words[identity] = user, text
        await scene.cluster.server.up()
        assert await happens(lambda: _all_listen(scene), 20), "not all replicas listen again"
        load.may_publish.set()
        assert await happens(lambda: _sent(person), 20), "the outbox does not empty"


async def _sent(person: Person) -> bool:
    return person.client.kept == 0


async def _all_listen(scene: Scene) -> bool:
    heard = await scene.cluster.bus.listeners(scene.cluster.queues["chatter"].marker)
    return heard >= len(scene.cluster.replicas("chatter"))


async def read_only(scene: Scene) -> None:
    """Redis becomes somebody's replica for a moment, as in a failover."""

    async def hurt() -> None:
        await scene.cluster.server.tell("REPLICAOF", "127.0.0.1", "1")
        await asyncio.sleep(0.5)
        await scene.cluster.server.tell("REPLICAOF", "NO", "ONE")

    await scene.repeat(hurt)


async def deaf(scene: Scene) -> None:
    """Redis cuts every subscriber, as it does with one that is too slow. Plain PUBLISH rests meanwhile."""

    async def hurt() -> None:
        scene.load.may_publish.clear()
        await asyncio.sleep(0.15)
        await scene.cluster.server.tell("CLIENT", "KILL", "TYPE", "pubsub")
        assert await happens(lambda: _all_listen(scene), 20), "not all replicas listen again"
        scene.load.may_publish.set()

    await scene.repeat(hurt)


async def full(scene: Scene) -> None:
    """Redis has no memory left for a while."""

    async def hurt() -> None:
        await scene.cluster.server.tell("CONFIG", "SET", "maxmemory", "1")
        await asyncio.sleep(0.6)
        await scene.cluster.server.tell("CONFIG", "SET", "maxmemory", "0")

    await scene.repeat(hurt)


# -- what else we stand on -----------------------------------------------------------------------------------


async def provider(scene: Scene) -> None:
    """The model provider is busy, overloaded, or ends its stream too early: each answer's first try fails."""
    failures = [
        Step(status=429, retry_after=0.05),
        Step(status=529),
        Step(text="cut off", fault="cut"),
        Step(text="stalled", fault="stall"),
        Step(text="unfinished", fault="unfinished"),
    ]

    def trouble(said: str, tries: int) -> Step | None:
        return failures[len(said.encode()) % len(failures)] if tries == 1 else None

    scene.cluster.model.trouble = trouble
    try:
        scene.load.on.clear()
        await scene.load.done.wait()
        await happens(lambda: _all_closed(scene), 30)
    finally:
        scene.cluster.model.trouble = lambda _said, _tries: None


async def _all_closed(scene: Scene) -> bool:
    return await scene.cluster.queues["chatter"].size() == 0


async def _ended(scene: Scene, seconds: float) -> None:
    assert await happens(lambda: _all_closed(scene), seconds), "\n".join(
        ("not all have ended", *await scene.cluster.state())
    )


# -- nothing at all ------------------------------------------------------------------------------------------


async def soak(scene: Scene) -> None:
    """No fault: how much the workers grow, once the first messages have filled what is filled once."""
    load, workers = scene.load, scene.cluster.replicas("chatter")
    load.on.clear()

    async def said(messages: int) -> None:
        while load.sent < messages and not load.done.is_set():
            await asyncio.sleep(0.2)
            scene.cluster.forget()
        if messages >= WARM:
            scene.cluster.sizes.append((load.sent, sum(worker.rss() for worker in workers)))

    total = load.each * (load.own + load.plain)
    if total >= 2 * WARM:
        await said(WARM)
    await said(total)
    await happens(lambda: _all_closed(scene), 120)


# -- two at once ---------------------------------------------------------------------------------------------

WORKERS: tuple[Hurt, ...] = (kill_one, freeze, half_open, partition, cut)
# Not with a full disk: no worker starts on one, and some of the others start workers.
SERVERS: tuple[Hurt, ...] = (kill_planner, read_only, deaf, full, store)


async def pair(scene: Scene) -> None:
    """Two different faults side by side, drawn anew each time."""
    for _ in range(scene.times):
        both = scene.dice.choice(WORKERS), scene.dice.choice(SERVERS)
        once = Scene(scene.cluster, scene.load, 1, scene.dice, scene.person)
        await asyncio.gather(*(hurt(once) for hurt in both))
