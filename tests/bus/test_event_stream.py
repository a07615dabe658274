"""Live events: heard as they happen, kept for who comes back, and cheap."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any

import pytest

from shared.bus.base import Argument
from shared.bus.event_stream import EventStream
from shared.bus.keys import Names
from shared.bus.redis import RedisBus
from shared.errors import Fenced
from shared.redaction import hide
from shared.worker.runners.waiting import waiting_notice
from tests.support.valkey import until


async def kept(redis: RedisBus, names: Names) -> list[dict[str, Any]]:
    """The events of the session that its stream holds."""
    entries = await redis.command("XRANGE", names.stream("s"), "-", "+")
    return [json.loads(fields[1]) for _, fields in entries]


async def test_events_are_published_and_kept_in_the_order_in_which_they_happened(
    redis: RedisBus, names: Names
) -> None:
    heard: list[dict[str, Any]] = []
    ready = asyncio.Event()

    async def on_ready() -> None:
        ready.set()

    channel = names.events("s")
    listener = redis.listener([channel], lambda _, data: heard.append(json.loads(data)), on_ready, channel)
    task = asyncio.create_task(listener.run())
    await ready.wait()
    live = EventStream(redis, names, "s")
    live("start", {"turn_id": "t"})
    for word in ("one ", "two"):
        live("chunk", {"content": word})
    live("done", {})
    await live.close()
    await until(lambda: len(heard) == 3)
    task.cancel()
    assert heard == [
        {"event": "start", "turn_id": "t"},
        {"event": "chunk", "content": "one two"},
        {"event": "done"},
    ]
    assert await kept(redis, names) == heard
    assert 3500 < await redis.command("TTL", names.stream("s")) <= 3600


async def test_what_is_gathered_leaves_in_one_round_trip_and_closing_does_not_wait_for_more(
    redis: RedisBus, names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    warm = EventStream(redis, names, "other")  # the server knows the script from now on
    warm("start", {})
    await warm.close()
    asked: list[Argument] = []
    call = redis._call

    async def counted(key: str | None, *arguments: Argument) -> Any:
        asked.append(arguments[0])
        return await call(key, *arguments)

    monkeypatch.setattr(redis, "_call", counted)
    monkeypatch.setattr("shared.bus.event_stream._FLUSH", 30.0)
    live = EventStream(redis, names, "s")
    for number in range(5):
        live("step", {"number": number})
    await live.close()
    assert asked == ["EVALSHA"]
    assert [event["number"] for event in await kept(redis, names)] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("size", [1, 5, 11])
async def test_a_secret_is_in_no_event_however_its_text_is_cut(
    redis: RedisBus, names: Names, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shared.bus.event_stream._FLUSH", 0.0)
    secret = "sk-ant-api03-Live7Pw2Jx9Vb4Mn6"
    hide(secret)
    live = EventStream(redis, names, "s")
    for kind in ("thinking", "chunk"):
        text = f"The key is {secret}, he said as"
        for at in range(0, len(text), size):
            live(kind, {"content": text[at : at + size]})
            await asyncio.sleep(0)
    live("tool_call", {"tool": "bash", "arguments": {"command": f"echo {secret}"}})
    live("chunk", {"content": f"and again: {secret[:20]}"})
    await live.close()
    events = await kept(redis, names)
    said = {
        kind: "".join(event["content"] for event in events if event["event"] == kind)
        for kind in ("thinking", "chunk")
    }
    assert said["thinking"] == "The key is [hidden], he said as"
    assert said["chunk"] == "The key is [hidden], he said asand again: [hidden]"
    assert [event["event"] for event in events if event["event"] != "thinking"][-2:] == ["tool_call", "chunk"]
    assert secret not in json.dumps(events) and secret[:20] not in json.dumps(events)


async def test_a_notice_for_a_turn_that_is_another_workers_by_now_is_dropped() -> None:
    said: list[str] = []

    async def say(text: str) -> None:
        said.append(text)
        raise Fenced("the turn belongs to another worker now")

    spawned: list[Coroutine[Any, Any, None]] = []
    take = waiting_notice(lambda *_: None, say, spawned.append)
    take("waiting", {"content": "busy"})
    await spawned[0]
    assert said == ["The model provider makes us wait: busy. /stop ends it"]


async def test_a_long_wait_is_told_again_only_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, said = [0.0], list[str]()

    async def say(text: str) -> None:
        said.append(text)

    monkeypatch.setattr("shared.worker.runners.waiting.time", SimpleNamespace(monotonic=lambda: clock[0]))
    spawned: list[Coroutine[Any, Any, None]] = []
    take = waiting_notice(lambda *_: None, say, spawned.append)
    for moment, kind in ((1.0, "silent"), (10.0, "waiting"), (30.0, "waiting"), (31.0, "chunk")):
        clock[0] = moment
        take(kind, {"content": f"at {moment:.0f}"})
    for notice in spawned:
        await notice
    assert said == [
        "The model provider makes us wait: at 1. /stop ends it",
        "The model provider still makes us wait: at 30. /stop ends it",
    ]
