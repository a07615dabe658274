"""Hostile and broken things on the bus: none of them ends a worker, or speaks for somebody else."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from redis import exceptions as redis_errors
from redis.exceptions import NoPermissionError

from shared import log
from shared.bus.embedded import Embedded
from shared.bus.keys import Names
from shared.bus.redis import RedisBus
from shared.store.records import Log
from shared.store.sqlite import SqliteStore
from shared.turns.outbox import Outbox
from tests.support.guards import guarded
from tests.support.processes import Site, until
from tests.support.valkey import eventually, free_port, redis, valkey
from tests.support.wire import Wire, client

__all__ = ["redis", "valkey"]

RULES: list[dict[str, Any]] = []

NONSENSE = [
    ("x", "y"),
    ("kind", "rows", "data", "{"),
    ("kind", "rows", "data", '[{"table": "of_a_newer_release", "row": {}}]'),
    ("kind", "rows", "data", '[{"table": "logs", "row": {"level": 7}}]'),
    ("kind", "rows", "data", '[{"apply": "newer", "values": {}}]'),
    ("kind", "turn", "data", "[1, 2]"),
    ("kind", "message", "id", b"\xff", "channel", b"\xff", "session", b"\xff", "data", b"\xff"),
    ("data", "[]"),
    ("data", "null"),
    (b"\xff", b"\xff"),
]


@guarded("poisoned-entry")
async def test_a_row_that_cannot_be_read_ends_nobody_and_those_behind_it_are_stored(
    redis: RedisBus, tmp_path: Path
) -> None:
    names, store = Names(f"poison-{secrets.token_hex(4)}"), SqliteStore(tmp_path / "store.db")
    await store.open()
    archive = Outbox(redis, names, store, "chatter", "me", {})
    prefix = names.queue("chatter")
    for fields in NONSENSE:
        for stream in ("archive", "out"):
            await redis.command("XADD", f"{prefix}{stream}", "*", *fields)
    await archive.put([Log(agent="chatter", level="info", message="behind")])
    work = asyncio.create_task(archive.run(pause=0.02))
    try:

        async def stored() -> bool:
            assert not work.done(), "the archive ended"
            return bool(await store.select(Log, {"message": "behind"}))

        await eventually(stored)

        async def empty() -> bool:
            assert not work.done(), "the archive ended"
            if await redis.command("XLEN", f"{prefix}archive"):
                return False
            return not await redis.command("XLEN", f"{prefix}out")

        await eventually(empty)
        reasons = [flat[1] for _, flat in await redis.command("XRANGE", f"{prefix}dead", "-", "+")]
        assert len(reasons) > len(NONSENSE) and all(one.startswith(b"unreadable") for one in reasons)
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        await store.close()


STREAMS = ("archive", "out", "inbox", "dead", "journal:s", "window:s", "untold:s", "events:s")


def test_nonsense_in_every_key_that_workers_read_ends_none_of_them(place: Site, wire: Wire) -> None:
    redis: Any = wire.redis
    workers = place.up("chatter", "planner")
    assert wire.ask("before", user="eve")["status"] == "complete"
    for agent in ("chatter", "planner"):
        prefix = wire.names.queue(agent)
        for stream in STREAMS:
            for fields in NONSENSE:
                pairs = dict(zip(fields[::2], fields[1::2], strict=True))
                try:
                    redis.xadd(f"{prefix}{stream}", pairs)
                except Exception:
                    continue
        [entry, *_] = [entry for entry, _ in redis.xrange(f"{prefix}inbox")]
        for session in ("t", b"\xff\xfe", "u"):
            key = f"{prefix}mail:".encode() + (session if isinstance(session, bytes) else session.encode())
            redis.rpush(key, entry)
            redis.zadd(f"{prefix}due", {session: 1})
        redis.rpush(f"{prefix}given:u", entry)
        redis.rpush(f"{prefix}journal:u", "nonsense")
        redis.set(f"{prefix}turn:t", "of the wrong kind")
        redis.zadd(f"{prefix}due", {"nobody": 1})
        redis.zadd(f"{prefix}idle", {"nonsense": 9e15})
        redis.hset(f"{prefix}ears", "closed", "nonsense")
    for name in (b"\xff\xfe", "*", "x}:{y", "a\nb"):
        redis.sadd(wire.names.agents, name)
        redis.hset(wire.names.presence, name, json.dumps({"agent": "x}:{y", "seen": "never"}))
    for channel in ("agent:status", "broadcast", f"{wire.names.queue('chatter')}bell", "agent:chatter"):
        for text in ("nonsense", "[]", '{"type": [], "payload": 7}', '{"type": "response", "payload": []}'):
            wire.publish(channel, text)
    asked = [wire.ask(f"after {number}", user="eve") for number in range(2)]
    assert [said["status"] for said in asked] == ["complete", "complete"]
    reasons = until(
        lambda: [one["reason"] for one in wire.dead() if one.get("reason", "").startswith("unread")]
    )
    assert reasons
    until(
        lambda: not redis.xlen(f"{wire.names.queue('planner')}archive"),
        what="the planner's archive drained",
    )
    assert [worker.process.poll() for worker in workers] == [None, None]


def test_keys_of_the_wrong_kind_end_no_worker(place: Site, wire: Wire) -> None:
    [worker] = place.up("chatter") if not place.workers else [place.workers[0]]
    prefix = wire.names.queue("researcher")
    wire.redis.sadd(wire.names.agents, "researcher")
    for name in ("archive", "out", "inbox", "due", "ears", "idle", "full", "dead"):
        wire.redis.delete(f"{prefix}{name}")
        wire.redis.hset(f"{prefix}{name}", "x", "y")
    researcher = place.start("researcher")
    researcher.says("Subscribed to", 20)
    assert wire.ask("still there?", user="eve")["status"] == "complete"
    assert researcher.process.poll() is None, researcher.tail()
    assert worker.process.poll() is None, worker.tail()


# -- the embedded server ------------------------------------------------------------------------------------------

PEEK = """
import json, os, sys
import redis
server = redis.Redis(port=int(sys.argv[1]), socket_timeout=10)
server.ping()
os.setgid(65534); os.setuid(65534)
port, home = int(sys.argv[1]), sys.argv[2]
done = []
def tries(name, call):
    try:
        call()
    except (redis.RedisError, OSError):
        return
    done.append(name)
for words in (
    ["GET", "pd::meta"], ["KEYS", "*"], ["XADD", "pd::{chatter}:out", "*", "x", "y"], ["CONFIG", "GET", "*"],
    ["CONFIG", "SET", "maxmemory", "1gb"], ["EVAL", "return 1", "0"], ["ACL", "LIST"], ["INFO"], ["MONITOR"],
    ["CLIENT", "LIST"], ["PUBSUB", "CHANNELS"], ["SHUTDOWN", "NOSAVE"], ["DEBUG", "SLEEP", "0"],
    ["PUBLISH", "pd::{chatter}:ear", "1"], ["PUBLISH", "pd::{chatter}:bell", "{}"], ["PUBLISH", "pd::board", "x"],
    ["PUBLISH", "pd::{chatter}:seat:w", "x"], ["PUBLISH", "home:x", "{}"], ["SUBSCRIBE", "pd::{chatter}:bell"],
    ["PSUBSCRIBE", "*"], ["PSUBSCRIBE", "pd:*"],
):
    tries(" ".join(words), lambda: server.execute_command(*words))
for name in ("redis.json", "redis/password", "redis/valkey.conf"):
    tries(name, lambda: open(os.path.join(home, name)).read())
print(json.dumps(done))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else for a moment")
@guarded("bus-password")
def test_another_user_of_the_machine_can_only_talk(tmp_path: Path) -> None:
    server = Embedded(tmp_path / "home", free_port())
    server.start()
    try:
        arguments = [sys.executable, "-c", PEEK, str(server.port), str(server.home)]
        told = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=True)
        assert json.loads(told.stdout) == []
    finally:
        server.stop()


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Embedded]:
    """An embedded server of its own."""
    server = Embedded(tmp_path / "own", free_port(), "x")
    server.start()
    yield server
    server.stop()


@pytest.mark.parametrize(
    "channel", ["human-input", "chatter-output", "agent:planner", "events:s", "broadcast"]
)
def test_anybody_talks_and_listens_on_the_channels_of_the_contract(own: Embedded, channel: str) -> None:
    with client(f"redis://127.0.0.1:{own.port}/0") as anybody, anybody.pubsub() as heard:
        heard.subscribe(f"x:{channel}")
        assert heard.get_message(timeout=5)["type"] == "subscribe"
        assert anybody.publish(f"x:{channel}", "{}") == 1
        with pytest.raises(NoPermissionError):
            anybody.publish(channel, "of another namespace")


def test_the_files_of_the_server_are_its_owners_alone(own: Embedded) -> None:
    for name in ("redis.json", "redis/password"):
        assert (own.home / name).stat().st_mode & 0o077 == 0
    password = urlsplit(own.url).password or ""
    assert len(password) >= 32
    assert password not in (own.home / "redis" / "valkey.conf").read_text()
    assert log.redact(f"cannot reach {own.url}, {password}").count("[hidden]") >= 1
    assert password not in log.redact(f"cannot reach {own.url}, {password}")


def test_a_home_without_a_password_gets_one_and_keeps_its_data(tmp_path: Path) -> None:
    home = tmp_path / "old"
    old = Embedded(home, free_port())
    with client(old.start()) as ours:
        ours.set("kept", "yes")
    old.stop()
    (home / "redis" / "password").unlink()  # as the release before left it
    (home / "redis" / "valkey.conf").write_text(f'port "{old.port}"\n')
    new = Embedded(home)
    with client(new.start()) as ours:
        assert ours.get("kept") == b"yes"
    assert new.port == old.port
    with client(f"redis://127.0.0.1:{new.port}") as anybody, pytest.raises(NoPermissionError):
        anybody.get("kept")
    new.stop()


def test_a_message_that_is_far_too_large_is_refused_to_its_sender_and_costs_no_other(
    own: Embedded,
) -> None:
    heard: list[bytes] = []
    with client(own.url) as listening, listening.pubsub() as subscription:
        subscription.subscribe("x:human-input")
        subscription.get_message(timeout=5)
        with client(f"redis://127.0.0.1:{own.port}") as anybody, pytest.raises(redis_errors.RedisError):
            anybody.publish("x:human-input", b"x" * (64 << 20))
        with client(f"redis://127.0.0.1:{own.port}") as anybody:
            for number in range(20):
                anybody.publish("x:human-input", f"{number}")
            anybody.publish("x:human-input", b"y" * (30 << 20))
            anybody.publish("x:human-input", "last")
        while b"last" not in heard:
            message = subscription.get_message(timeout=5)
            assert message is not None
            heard.append(message["data"])
    assert heard[:20] == [str(number).encode() for number in range(20)]
