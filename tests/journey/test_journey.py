"""From one sentence to a merged change: real processes, a real Redis, git and SQLite, and a scripted model."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from tests.faults.server import Server
from tests.journey.story import Journey, walk
from tests.support.processes import until
from tests.support.valkey import valkey

__all__ = ["valkey"]


@pytest.mark.timeout(300)
def test_one_sentence_becomes_a_change_that_is_planned_checked_allowed_and_merged(
    tmp_path: Path, valkey: str
) -> None:
    with walk(tmp_path, valkey, "chatter", "planner", "frontend", "backend") as journey:
        journey.asks()
        journey.lets_them_work()
        journey.merges()
        journey.one_branch_holds_every_commit_once()
        journey.the_receipts_say_what_was_checked()
        journey.the_trail_is_whole()
        assert journey.model.again == 0, "an answer was bought twice"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A Redis of its own, to be killed."""
    made = Server(tmp_path / "redis")
    made.start()
    yield made
    made.stop()


@pytest.mark.timeout(300)
def test_it_is_all_the_same_when_the_scheduler_the_workers_and_redis_are_killed_on_the_way(
    tmp_path: Path, server: Server
) -> None:
    with walk(tmp_path, server.url, "chatter", "chatter", "planner", "frontend", "backend") as journey:
        journey.asks()
        kill(journey, "frontend")
        kill(journey, "chatter", holder(journey))
        asyncio.run(server.die())
        asyncio.run(server.up())
        until(lambda: heard(journey), what="a Chatter that is back")
        journey.lets_them_work(meanwhile=lambda: kill(journey, "backend"))
        journey.merges()
        journey.one_branch_holds_every_commit_once()
        journey.the_receipts_say_what_was_checked()
        journey.the_trail_is_whole()
        assert not journey.model.backward, "an answer that was stored was bought again"
        assert journey.model.again <= 3, "more was bought again than what was in flight"


def holder(journey: Journey) -> bytes:
    """Who schedules now."""
    found = journey.wire.redis.get(f"{journey.wire.names.root}{{@scheduler}}:holder")
    assert isinstance(found, bytes)
    return found


def kill(journey: Journey, agent: str, owner: bytes = b"") -> None:
    """kill -9 of the worker of that name (or of the one that is named so), and another one in its place."""
    living = [w for w in journey.site.workers if w.name == agent and w.process.poll() is None]
    (one,) = [worker for worker in living if not owner or f"-{worker.pid}-".encode() in owner]
    one.kill()
    journey.site.up(agent)


def heard(journey: Journey) -> bool:
    """Whether a Chatter listens again."""
    with contextlib.suppress(redis.ConnectionError, redis.TimeoutError):
        ((_, count),) = journey.wire.redis.pubsub_numsub(journey.wire.names.channel("human-input"))
        return bool(count == 2)
    return False
