"""What was said is on disk until the server has it, and goes out once."""

from __future__ import annotations

import json
import os
import resource
import time
from pathlib import Path

import pytest

from shared.client import Client
from shared.client.spool import LIFE, Spool
from shared.errors import BadMessage, Busy, PromptDockError
from shared.settings import Settings
from tests.client.conftest import Server, until


async def _inbox(visitor: Client) -> list[str]:
    entries = await visitor.bus.command("XRANGE", f"{visitor.names.desk('chatter')}inbox", "-", "+")
    return [json.loads(dict(zip(e[::2], e[1::2], strict=True))[b"data"])["content"] for _, e in entries]


def _letters(visitor: Client) -> list[Path]:
    return sorted(visitor.outbox.folder.glob("*.json"))


def _age(visitor: Client, seconds: float) -> None:
    """Make the letters look as if they had been written so long ago."""
    for path in _letters(visitor):
        path.rename(path.with_name(f"{time.time_ns() - int(seconds * 1e9):020d}{path.name[20:]}"))


async def test_an_accepted_message_leaves_the_outbox(visitor: Client) -> None:
    sent = await visitor.say("hello", "ada")
    assert (sent.outcome, sent.waiting) == ("accepted", 0)
    assert await _inbox(visitor) == ["hello"]

    async def empty() -> bool:
        return not _letters(visitor)

    await until(empty)


async def test_a_message_that_finds_no_room_on_the_disk_is_refused_with_what_to_do(visitor: Client) -> None:
    usual, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, most))
    try:
        with pytest.raises(PromptDockError, match="not sent") as told:
            await visitor.say("hello", "ada")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (usual, most))
    assert str(visitor.outbox.folder) in told.value.why
    assert "make room" in told.value.fix
    assert list(visitor.outbox.folder.iterdir()) == []
    assert (await visitor.say("again", "ada")).outcome == "accepted"


async def test_what_is_said_while_redis_is_dead_goes_out_in_order_when_it_is_back(
    visitor: Client, server: Server
) -> None:
    await visitor.say("one", "ada")

    async def on_disk() -> bool:
        return not list(visitor.outbox.folder.glob("*.json"))

    await until(on_disk)
    server.kill()
    assert [(await visitor.say(text, "ada")).outcome for text in ("two", "three")] == ["kept", "kept"]
    assert visitor.kept == 2
    assert [path.stat().st_mode & 0o777 for path in _letters(visitor)[-2:]] == [0o600, 0o600]
    assert visitor.outbox.folder.stat().st_mode & 0o777 == 0o700
    server.start()

    async def sent() -> bool:
        return not _letters(visitor)

    await until(sent)
    assert await _inbox(visitor) == ["one", "two", "three"]


async def test_a_letter_that_a_dead_process_left_goes_out_with_the_next_visitor(
    settings: Settings, server: Server
) -> None:
    async with Client(settings) as first:
        await first.reach()
        server.kill()
        await first.say("left", "ada")
    server.start()
    async with Client(settings) as second:
        _age(second, 60)
        await second.say("fresh", "ada")
        assert await _inbox(second) == ["left", "fresh"]


async def test_a_letter_that_had_arrived_already_is_not_answered_twice(
    visitor: Client, settings: Settings
) -> None:
    await visitor.say("once", "ada", message_id="m-1")
    async with Client(settings) as second:
        second.outbox.put("human-input", {"user_id": "ada", "content": "once", "id": "m-1"})
        _age(second, 60)
        await second.say("next", "ada")
        assert await _inbox(second) == ["once", "next"]


async def test_letters_to_another_cluster_and_too_old_ones_stay_or_go_but_are_not_sent(
    visitor: Client,
) -> None:
    other = Spool(visitor.outbox.folder, "redis://elsewhere|")
    other.put("human-input", {"user_id": "ada", "content": "not ours", "id": "m-1"})
    _age(visitor, 60)
    visitor.outbox.put("human-input", {"user_id": "ada", "content": "old", "id": "m-2"})
    newest = _letters(visitor)[-1]
    newest.rename(newest.with_name(f"{time.time_ns() - int((LIFE + 60) * 1e9):020d}{newest.name[20:]}"))
    await visitor.say("now", "ada")
    assert await _inbox(visitor) == ["now"]

    async def only_the_others_is_left() -> bool:
        return [json.loads(p.read_text())["message"]["content"] for p in _letters(visitor)] == ["not ours"]

    await until(only_the_others_is_left)


async def test_what_cannot_be_taken_is_said_at_once_and_not_kept(visitor: Client) -> None:
    with pytest.raises(BadMessage):
        await visitor.say("hello", "")
    assert not visitor.outbox.folder.exists() or not _letters(visitor)


async def test_a_full_inbox_is_said_at_once_and_not_kept(visitor: Client) -> None:
    await visitor.bus.command("SET", f"{visitor.names.desk('chatter')}full", "0.99")
    with pytest.raises(Busy):
        await visitor.say("hello", "ada")
    assert _letters(visitor) == []


async def test_a_half_written_letter_is_no_letter(visitor: Client) -> None:
    visitor.outbox.folder.mkdir(parents=True)
    (visitor.outbox.folder / f"{time.time_ns() - 60_000_000_000:020d}-x.json").write_text('{"line"')
    os.sync()
    assert (await visitor.say("hello", "ada")).outcome == "accepted"
