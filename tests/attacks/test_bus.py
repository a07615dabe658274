"""Hostile and broken things on the bus: none of them ends a worker, or speaks for somebody else."""

from __future__ import annotations

import asyncio
import json
import secrets
from pathlib import Path
from typing import Any

from shared.bus.keys import Names
from shared.bus.redis import RedisBus
from shared.store.records import Log
from shared.store.sqlite import SqliteStore
from shared.turns.archive import Archive
from tests.support.guards import guarded
from tests.support.processes import Site, until
from tests.support.valkey import eventually, redis, valkey
from tests.support.wire import Wire

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
    archive = Archive(redis, names, store, "chatter", "me", {})
    prefix = names.desk("chatter")
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
            return not await redis.command("XLEN", f"{prefix}archive")

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
        prefix = wire.names.desk(agent)
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
    for channel in ("agent:status", "broadcast", f"{wire.names.desk('chatter')}bell", "agent:chatter"):
        for text in ("nonsense", "[]", '{"type": [], "payload": 7}', '{"type": "response", "payload": []}'):
            wire.publish(channel, text)
    asked = [wire.ask(f"after {number}", user="eve") for number in range(2)]
    assert [said["status"] for said in asked] == ["complete", "complete"]
    reasons = until(
        lambda: [one["reason"] for one in wire.dead() if one.get("reason", "").startswith("unread")]
    )
    assert reasons
    until(
        lambda: not redis.xlen(f"{wire.names.desk('planner')}archive"),
        what="the planner's archive drained",
    )
    assert [worker.process.poll() for worker in workers] == [None, None]


def test_keys_of_the_wrong_kind_end_no_worker(place: Site, wire: Wire) -> None:
    [worker] = place.up("chatter") if not place.workers else [place.workers[0]]
    prefix = wire.names.desk("researcher")
    wire.redis.sadd(wire.names.agents, "researcher")
    for name in ("archive", "out", "inbox", "due", "ears", "idle", "full", "dead"):
        wire.redis.delete(f"{prefix}{name}")
        wire.redis.hset(f"{prefix}{name}", "x", "y")
    researcher = place.start("researcher")
    researcher.says("Subscribed to", 20)
    assert wire.ask("still there?", user="eve")["status"] == "complete"
    assert researcher.process.poll() is None, researcher.tail()
    assert worker.process.poll() is None, worker.tail()
