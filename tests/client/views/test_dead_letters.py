"""Dead letters: listed, found by a part of a name, thrown away, posted again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from shared.bus import messages
from shared.client import Client
from shared.client.views import dead_letters
from shared.errors import UsageError


async def put(client: Client, id: str, data: dict[str, Any] | str, channel: str = "human-input") -> None:
    """A dead letter of Chatter."""
    await client.reach()
    await client.bus.command("SADD", client.names.agents, "chatter")
    text = data if isinstance(data, str) else json.dumps(data)
    fields = (
        "id",
        id,
        "session",
        "s",
        "channel",
        client.names.channel(channel),
        "reason",
        "poison",
        "data",
        text,
    )
    await client.bus.command("XADD", f"{client.names.queue('chatter')}dead", "*", *fields)


WORDS = {"user_id": "ada", "content": "Hello"}


async def ids(client: Client) -> list[str]:
    return [letter.id for letter in await dead_letters.letters(client)]


async def test_the_newest_come_first_each_with_its_words(client: Client) -> None:
    await put(client, "first", WORDS)
    await put(client, "second", "no json")
    assert await ids(client) == ["second", "first"]
    [_, first] = [letter.card() for letter in await dead_letters.letters(client)]
    assert (first["agent"], first["reason"], first["content"]) == ("chatter", "poison", "Hello")


async def test_one_is_found_by_a_part_of_its_id_and_dropped_alone(client: Client) -> None:
    await put(client, "abc-1", WORDS)
    await put(client, "xyz-2", WORDS)
    assert await dead_letters.drop(client, "abc") == 1
    assert await ids(client) == ["xyz-2"]
    with pytest.raises(UsageError, match="there is no dead letter 'abc'"):
        await dead_letters.drop(client, "abc")
    assert await dead_letters.drop(client, None) == 1
    assert await ids(client) == []


async def test_one_that_is_posted_again_has_a_new_id_and_is_dead_no_more(client: Client) -> None:
    await put(client, "abc-1", {**WORDS, "id": "abc-1", "deadline": "2020-01-01T00:00:00Z"})
    sent = await dead_letters.replay(client, "abc-1")
    assert (sent.outcome, sent.id != "abc-1") == ("accepted", True)
    assert await ids(client) == []
    [(_, flat)] = await client.bus.command("XRANGE", f"{client.names.queue('chatter')}inbox", "-", "+")
    message = json.loads(dict(zip(flat[::2], flat[1::2], strict=True))[b"data"])
    assert (message["content"], message["replay_of"], "deadline" in message) == ("Hello", "abc-1", False)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("no json", "cannot be posted again"),
        ({"type": next(iter(messages.ANSWERS)), "id": "a"}, "is an answer"),
    ],
)
async def test_what_nobody_could_read_or_awaits_is_refused_and_stays(
    client: Client, data: Any, why: str
) -> None:
    await put(client, "abc-1", data)
    with pytest.raises(UsageError, match=why):
        await dead_letters.replay(client, "abc-1")
    assert await ids(client) == ["abc-1"]


async def test_a_time_in_which_nobody_listened_is_told_as_such_and_cannot_be_posted_again(
    client: Client,
) -> None:
    await put(client, "", "")
    queue = client.names.queue("chatter")
    reason = "gap: plain messages may have been lost between 1763880000000 and 1763880007000 (ms since 1970): nobody"
    await client.bus.command("XADD", f"{queue}dead", "*", "reason", reason, "data", "")
    [gap, _] = await dead_letters.letters(client)
    card = gap.card()
    assert card["kind"] == "gap"
    assert "nobody listened from" in card["reason"]
    assert "1763880000000" not in card["reason"]
    with pytest.raises(UsageError, match="no message") as refused:
        await dead_letters.replay(client, gap.key)
    assert f"dead drop {gap.key}" in refused.value.fix
