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


async def _inbox(client: Client) -> list[str]:
    entries = await client.bus.command("XRANGE", f"{client.names.queue('chatter')}inbox", "-", "+")
    return [json.loads(dict(zip(e[::2], e[1::2], strict=True))[b"data"])["content"] for _, e in entries]


def _letters(client: Client) -> list[Path]:
    return sorted(client.spool.folder.glob("*.json"))


def _age(client: Client, seconds: float) -> None:
    """Make the letters look as if they had been written so long ago."""
    for path in _letters(client):
        path.rename(path.with_name(f"{time.time_ns() - int(seconds * 1e9):020d}{path.name[20:]}"))


async def test_an_accepted_message_leaves_the_outbox(client: Client) -> None:
    sent = await client.say("hello", "ada")
    assert (sent.outcome, sent.waiting) == ("accepted", 0)
    assert await _inbox(client) == ["hello"]

    async def empty() -> bool:
        return not _letters(client)

    await until(empty)


async def test_a_message_that_finds_no_room_on_the_disk_is_refused_with_what_to_do(client: Client) -> None:
    usual, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, most))
    try:
        with pytest.raises(PromptDockError, match="not sent") as told:
            await client.say("hello", "ada")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (usual, most))
    assert str(client.spool.folder) in told.value.why
    assert "make room" in told.value.fix
    assert list(client.spool.folder.iterdir()) == []
    assert (await client.say("again", "ada")).outcome == "accepted"


async def test_what_is_said_while_redis_is_dead_goes_out_in_order_when_it_is_back(
    client: Client, server: Server
) -> None:
    await client.say("one", "ada")

    async def on_disk() -> bool:
        return not list(client.spool.folder.glob("*.json"))

    await until(on_disk)
    server.kill()
    assert [(await client.say(text, "ada")).outcome for text in ("two", "three")] == ["kept", "kept"]
    assert client.kept == 2
    assert [path.stat().st_mode & 0o777 for path in _letters(client)[-2:]] == [0o600, 0o600]
    assert client.spool.folder.stat().st_mode & 0o777 == 0o700
    server.start()

    async def sent() -> bool:
        return not _letters(client)

    await until(sent)
    assert await _inbox(client) == ["one", "two", "three"]


async def test_a_letter_that_a_dead_process_left_goes_out_with_the_next_client(
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
    client: Client, settings: Settings
) -> None:
    await client.say("once", "ada", message_id="m-1")
    async with Client(settings) as second:
        second.spool.put("human-input", {"user_id": "ada", "content": "once", "id": "m-1"})
        _age(second, 60)
        await second.say("next", "ada")
        assert await _inbox(second) == ["once", "next"]


async def test_letters_to_another_cluster_and_too_old_ones_stay_or_go_but_are_not_sent(
    client: Client,
) -> None:
    other = Spool(client.spool.folder, "redis://elsewhere|")
    other.put("human-input", {"user_id": "ada", "content": "not ours", "id": "m-1"})
    _age(client, 60)
    client.spool.put("human-input", {"user_id": "ada", "content": "old", "id": "m-2"})
    newest = _letters(client)[-1]
    newest.rename(newest.with_name(f"{time.time_ns() - int((LIFE + 60) * 1e9):020d}{newest.name[20:]}"))
    await client.say("now", "ada")
    assert await _inbox(client) == ["now"]

    async def only_the_others_is_left() -> bool:
        return [json.loads(p.read_text())["message"]["content"] for p in _letters(client)] == ["not ours"]

    await until(only_the_others_is_left)


async def test_what_cannot_be_taken_is_said_at_once_and_not_kept(client: Client) -> None:
    with pytest.raises(BadMessage):
        await client.say("hello", "")
    assert not client.spool.folder.exists() or not _letters(client)


async def test_a_full_inbox_is_said_at_once_and_not_kept(client: Client) -> None:
    await client.bus.command("SET", f"{client.names.queue('chatter')}full", "0.99")
    with pytest.raises(Busy):
        await client.say("hello", "ada")
    assert _letters(client) == []


async def test_a_half_written_letter_is_no_letter(client: Client) -> None:
    client.spool.folder.mkdir(parents=True)
    (client.spool.folder / f"{time.time_ns() - 60_000_000_000:020d}-x.json").write_text('{"line"')
    os.sync()
    assert (await client.say("hello", "ada")).outcome == "accepted"
