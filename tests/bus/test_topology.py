"""A cluster of three nodes and a master behind a sentinel, both real, on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis

from shared.bus.embedded import binary
from shared.bus.keys import Names
from shared.bus.redis import RedisBus
from shared.errors import ConfigurationError
from shared.turns.handoff import Handoff
from shared.turns.intake import Intake
from shared.turns.queue import Claim, Completion, Mail, Queue
from tests.support.valkey import eventually, free_port

SLOTS = 16384


class Node:
    """One server process with its own folder."""

    def __init__(self, folder: Path, *options: str, sentinel: bool = False) -> None:
        folder.mkdir(parents=True)
        # A cluster node also listens on its port + 10000.
        self.port = free_port()
        config = folder / "valkey.conf"
        lines = [f"port {self.port}", "bind 127.0.0.1", f'dir "{folder}"', *options]
        if not sentinel:
            lines.append('save ""')
        config.write_text("\n".join(lines) + "\n")
        self.process = subprocess.Popen(
            [str(binary()), str(config), *(["--sentinel"] if sentinel else [])], stdout=subprocess.DEVNULL
        )
        self.client = redis.Redis(port=self.port, decode_responses=True)
        until(lambda: self.ask("PING"))

    def ask(self, *words: str | int) -> Any:
        """What the server answers to a command."""
        return self.client.execute_command(*words)  # type: ignore[no-untyped-call]

    def stop(self) -> None:
        self.client.close()
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)


def until(condition: object, seconds: float = 20) -> None:
    """Wait for a condition, errors of a server that is not up yet included."""
    ends = time.monotonic() + seconds
    while True:
        with contextlib.suppress(redis.RedisError):
            if condition():  # type: ignore[operator]
                return
        assert time.monotonic() < ends, "the servers did not come up"
        time.sleep(0.02)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[list[Node]]:
    folder = tmp_path_factory.mktemp("cluster")
    options = ("cluster-enabled yes", "cluster-node-timeout 2000", "appendonly yes")
    nodes = [Node(folder / str(number), *options) for number in range(3)]
    for node in nodes:
        request.addfinalizer(node.stop)
    share = SLOTS // 3 + 1
    for number, node in enumerate(nodes):
        first, last = number * share, min(SLOTS, (number + 1) * share) - 1
        node.ask("CLUSTER", "ADDSLOTSRANGE", first, last)
        node.ask("CLUSTER", "MEET", "127.0.0.1", nodes[0].port)
    for node in nodes:
        until(lambda node=node: "cluster_state:ok" in str(node.ask("CLUSTER", "INFO")))
    yield nodes


@pytest.fixture
async def bus(cluster: list[Node]) -> object:
    made = RedisBus("redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in cluster))
    yield made
    await made.close()


async def _turn(bus: RedisBus, agent: str) -> tuple[Queue, Claim]:
    queue = Queue(bus, Names("topology"), agent)
    mail = Mail(f"m-{agent}", "s", "human-input", json.dumps({"user_id": "u"}).encode())
    assert (await queue.post(mail)).outcome == "accepted"
    claim = await queue.claim("w")
    assert isinstance(claim, Claim)
    return queue, claim


async def test_queues_on_all_nodes_of_a_cluster_carry_turns_to_their_end(
    bus: RedisBus, cluster: list[Node]
) -> None:
    agents = [f"agent{number}" for number in range(12)]
    for agent in agents:
        queue, claim = await _turn(bus, agent)
        await queue.step(claim.session, claim.epoch, 0, len(claim.entries), [b"{}"])
        await queue.finish(claim.session, claim.epoch, Completion("chatter-output", '{"x":1}'))
        assert await queue.size() == 0
    used = [node for node in cluster if any(node.client.scan_iter("pd:topology:*"))]
    assert len(used) == 3


async def test_a_plain_publish_on_any_node_is_heard_once_by_ears_on_the_owner_of_the_slot(
    bus: RedisBus, cluster: list[Node]
) -> None:
    queue = Queue(bus, Names("topology"), "listener")
    channel = queue.names.agent("listener")
    heard = asyncio.Event()
    intakes = [Intake(queue, [channel], lambda *_: heard.set(), plain=[channel]) for _ in range(3)]
    tasks = [asyncio.create_task(intake.run()) for intake in intakes]
    async with asyncio.timeout(15):
        for intake in intakes:
            await intake.ready.wait()
        assert await bus.listeners(channel) == 3
        for number, node in enumerate(cluster):
            asked = {"payload": {"question": "Which way?"}}
            question = {"id": f"q{number}", "from": "x", "to": "listener", "type": "question", **asked}
            assert node.client.publish(channel, json.dumps(question)) >= 0
        await eventually(lambda: _holds(queue, 3))
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert await queue.size() == 3


async def test_an_idle_worker_is_given_a_message_on_the_node_that_owns_its_queue(
    bus: RedisBus, cluster: list[Node]
) -> None:
    came: list[str] = []
    async with asyncio.timeout(15):
        for agent in ("idle1", "idle2", "idle3", "idle4"):
            queue, claim = await _turn(bus, agent)
            handoff = Handoff(queue, "w", lambda: True, lambda given: came.append(given.entries[0].id))
            intake = Intake(queue, [queue.names.agent(agent)], lambda *_: None, plain=[], handoff=handoff)
            task = asyncio.create_task(intake.run())
            await intake.ready.wait()
            await queue.finish(claim.session, claim.epoch, Completion())
            await queue.post(Mail(f"next-{agent}", "s", "human-input", b"{}"))
            await eventually(partial(_among, f"next-{agent}", came))
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def _among(id: str, came: list[str]) -> bool:
    return id in came


async def _holds(queue: Queue, messages: int) -> bool:
    return await queue.size() >= messages


async def test_a_slot_that_moves_to_another_node_is_followed(bus: RedisBus, cluster: list[Node]) -> None:
    queue = Queue(bus, Names("topology"), "mover")
    assert await queue.size() == 0
    slot = cluster[0].ask("CLUSTER", "KEYSLOT", queue.prefix)
    ids = [node.ask("CLUSTER", "MYID") for node in cluster]
    owner = next(n for n in range(3) if _owns(cluster[n], ids[n], slot))
    target = (owner + 1) % 3
    for node in cluster:
        node.ask("CLUSTER", "SETSLOT", slot, "NODE", ids[target])
    mail = Mail("moved", "s", "human-input", b"{}")
    assert (await queue.post(mail, patience=5)).outcome == "accepted"
    assert cluster[target].client.exists(f"{queue.prefix}inbox")


def _owns(node: Node, own: str, slot: int) -> bool:
    found = node.ask("CLUSTER", "SLOTS")
    return any(first <= slot <= last for first, last in _ranges(found, own))


def _ranges(slots: object, own: str) -> list[tuple[int, int]]:
    if isinstance(slots, dict):  # the client's own shape
        return [key for key, value in slots.items() if own in str(value)]
    return [(entry[0], entry[1]) for entry in slots if own in str(entry[2])]  # type: ignore[attr-defined]


async def test_the_master_that_a_sentinel_names_is_followed_through_a_failover(tmp_path: Path) -> None:
    master = Node(tmp_path / "master", "appendonly yes")
    replica = Node(tmp_path / "replica", f"replicaof 127.0.0.1 {master.port}", "appendonly yes")
    watch = (
        f"sentinel monitor main 127.0.0.1 {master.port} 1",
        "sentinel down-after-milliseconds main 500",
        "sentinel failover-timeout main 3000",
    )
    sentinel = Node(tmp_path / "sentinel", *watch, sentinel=True)
    bus = RedisBus(f"redis+sentinel://127.0.0.1:{sentinel.port}/main", silence=2.0)
    try:
        until(lambda: replica.client.info("replication")["master_link_status"] == "up")
        until(lambda: sentinel.ask("SENTINEL", "REPLICAS", "main"))
        queue = Queue(bus, Names("failover"), "chatter")
        assert (await queue.post(Mail("before", "s", "human-input", b"{}"))).outcome == "accepted"
        until(lambda: replica.client.exists(f"{queue.prefix}inbox"))
        master.stop()
        receipt = await queue.post(Mail("after", "s", "human-input", b"{}"), patience=30)
        assert receipt.outcome == "accepted"
        assert await queue.size() == 2
        assert replica.client.info("replication")["role"] == "master"
    finally:
        await bus.close()
        for node in (master, replica, sentinel):
            node.stop()


@pytest.mark.parametrize(
    "url",
    [
        "redis+sentinel://127.0.0.1:1",
        "redis+cluster://127.0.0.1",
        "redis+cluster://127.0.0.1:1/3",
        "http://x",
    ],
)
async def test_a_url_that_cannot_be_read_is_a_configuration_error(url: str) -> None:
    with pytest.raises(ConfigurationError, match="REDIS_URL"):
        RedisBus(url)
