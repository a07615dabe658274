"""What every bus does, whatever is below it."""

from __future__ import annotations

import asyncio

import pytest

from shared.bus.base import Bus, Script
from shared.bus.keys import Names
from shared.errors import PromptDockError
from tests.support.valkey import until

ADD = Script("add", "#!lua\nreturn redis.call('INCRBY', KEYS[1]..'sum', ARGV[1])")


async def test_a_script_runs_on_its_key_and_keeps_what_it_did(bus: Bus, names: Names) -> None:
    key = names.queue("a")
    assert await bus.script(ADD, key, 40) == 40
    assert await bus.script(ADD, key, 2) == 42
    assert await bus.command("GET", f"{key}sum") == b"42"


async def test_scripts_asked_together_each_get_their_own_reply(bus: Bus, names: Names) -> None:
    key = names.queue("a")
    replies = await asyncio.gather(*(bus.script(ADD, key, 1) for _ in range(50)))
    assert replies == list(range(1, 51))


async def test_an_error_reply_is_an_error_of_ours_and_the_next_command_works(bus: Bus, names: Names) -> None:
    key = f"{names.root}text"
    await bus.command("SET", key, "words")
    with pytest.raises(PromptDockError):
        await bus.command("INCR", key)
    assert await bus.command("GET", key) == b"words"


async def test_an_error_in_a_script_is_an_error_of_ours(bus: Bus, names: Names) -> None:
    broken = Script("broken", "#!lua\nreturn redis.call('INCR', KEYS[1], 'too', 'many')")
    with pytest.raises(PromptDockError):
        await bus.script(broken, names.queue("a"))


async def test_bytes_pass_unchanged(bus: Bus, names: Names) -> None:
    key, value = f"{names.root}bytes", bytes(range(256)) + b"\r\n$5\r\n"
    await bus.command("SET", key, value)
    assert await bus.command("GET", key) == value


async def test_a_listener_hears_channels_and_patterns_in_the_order_of_publishing(
    bus: Bus, names: Names
) -> None:
    heard: list[tuple[str, bytes]] = []
    ready = asyncio.Event()

    async def on_ready() -> None:
        ready.set()

    plain, wide = names.channel("plain"), names.channel("wide")
    listener = bus.listener(
        [plain], lambda channel, data: heard.append((channel, data)), on_ready, "", [f"{wide}.*"]
    )
    task = asyncio.create_task(listener.run())
    try:
        await asyncio.wait_for(ready.wait(), 5)
        assert await bus.publish(plain, b"1") == 1
        assert await bus.publish(f"{wide}.x", "2") == 1
        assert await bus.publish(plain, b"3") == 1
        assert await bus.publish(names.channel("other"), b"4") == 0
        await until(lambda: len(heard) == 3)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert heard == [(plain, b"1"), (f"{wide}.x", b"2"), (plain, b"3")]


async def test_listeners_counts_who_subscribes_by_exact_name(bus: Bus, names: Names) -> None:
    ready = asyncio.Event()

    async def on_ready() -> None:
        ready.set()

    channel = names.agent("x")
    listener = bus.listener([channel], lambda _c, _d: None, on_ready, "", [names.channel("agent:*")])
    assert await bus.listeners(channel) == 0
    task = asyncio.create_task(listener.run())
    try:
        await asyncio.wait_for(ready.wait(), 5)
        assert await bus.listeners(channel) == 1
        assert await bus.listeners(names.agent("y")) == 0
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_reading_goes_on_after_the_cursor_of_each_stream(bus: Bus, names: Names) -> None:
    one, two = f"{names.root}one", f"{names.root}two"
    first = (await bus.command("XADD", one, "*", "data", "a")).decode()
    await bus.command("XADD", one, "*", "data", "b")
    await bus.command("XADD", two, "*", "data", "c", "more", "d")
    found = await bus.read({one: first, two: "0"}, 1000)
    assert [(entry.stream, entry.fields) for entry in found] == [
        (one, {"data": b"b"}),
        (two, {"data": b"c", "more": b"d"}),
    ]
    assert await bus.read({entry.stream: entry.id for entry in found}, 20) == []


async def test_reading_waits_for_the_first_entry(bus: Bus, names: Names) -> None:
    stream = f"{names.root}late"
    reading = asyncio.create_task(bus.read({stream: "$"}, 5000))
    entries: list[str] = []
    while not reading.done():  # `$` counts from when the server takes it up, so go on until it did
        entries.append((await bus.command("XADD", stream, "*", "data", "x")).decode())
        await asyncio.wait([reading], timeout=0.02)
        assert len(entries) < 200
    assert (await reading)[0].id in entries


async def test_a_read_that_waits_does_not_hold_up_commands(bus: Bus, names: Names) -> None:
    reading = asyncio.create_task(bus.read({f"{names.root}nothing": "0"}, 30_000))
    try:
        assert await asyncio.wait_for(bus.command("PING"), 2) == b"PONG"
        assert not reading.done()
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
