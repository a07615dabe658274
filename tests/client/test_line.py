"""A client says and hears on a real server; Chatter is played by the test."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from shared.bus.embedded import Embedded
from shared.bus.keys import Names
from shared.bus.messages import Output
from shared.client import Client, Heard
from shared.client.feed import Feed
from shared.errors import BadMessage, BusUnreachable, TimedOut, UsageError
from shared.settings import Settings
from shared.store.sqlite import SqliteStore
from shared.turns.queue import Claim, Completion, Queue
from tests.client.conftest import Server, until
from tests.support.valkey import free_port

CHANNEL = "chatter-output"


def _queue(client: Client, agent: str = "chatter") -> Queue:
    return Queue(client.bus, client.names, agent, lease_ms=1000)


def _output(number: int, **fields: Any) -> Output:
    words: dict[str, Any] = {"user_id": "ada", "session_id": "s", "id": f"o-{number}"}
    return Output.model_validate({**words, "status": "complete", "content": str(number), **fields})


async def _say(client: Client, *numbers: int) -> None:
    for number in numbers:
        await _queue(client).announce(CHANNEL, _output(number).text(CHANNEL))


async def _take(feed: Feed, count: int) -> list[Heard]:
    async with asyncio.timeout(10):
        return [await anext(feed) for _ in range(count)]


async def test_what_chatter_says_is_heard_once_and_in_order(client: Client) -> None:
    async with client.outputs() as feed:
        await _say(client, 1, 2, 3)
        assert [heard.output.content for heard in await _take(feed, 3)] == ["1", "2", "3"]


async def test_nothing_is_missed_while_redis_is_dead_and_comes_back(client: Client, server: Server) -> None:
    async with client.outputs() as feed:
        await _say(client, 1)
        assert [heard.output.content for heard in await _take(feed, 1)] == ["1"]
        server.kill()
        server.start()
        async with Client(client.settings) as other:
            await _say(other, 2, 3)
        assert [heard.output.content for heard in await _take(feed, 2)] == ["2", "3"]


async def test_a_reader_who_comes_back_goes_on_after_its_cursor(client: Client) -> None:
    async with client.outputs() as feed:
        await _say(client, 1, 2)
        first = (await _take(feed, 2))[0]
    async with client.outputs(after=first.cursor) as feed:
        assert [heard.output.content for heard in await _take(feed, 1)] == ["2"]


async def test_a_foreign_chatter_is_heard_although_it_keeps_no_stream(client: Client) -> None:
    async with client.outputs() as feed:
        told = {"user_id": "ada", "content": "from afar", "status": "complete"}
        await client.bus.publish(CHANNEL, json.dumps(told))
        await client.bus.publish(CHANNEL, "not json")
        await _say(client, 1)
        heard = await _take(feed, 2)
    assert sorted(item.output.content for item in heard) == ["1", "from afar"]
    assert [item.output.content for item in heard if item.output.unsigned] == ["from afar"]


async def test_outputs_that_cannot_be_read_are_left_out(client: Client) -> None:
    async with client.outputs() as feed:
        await _queue(client).announce(CHANNEL, "[]")
        await _say(client, 1)
        assert [heard.output.content for heard in await _take(feed, 1)] == ["1"]


async def test_live_events_are_read_on_from_a_mark(client: Client) -> None:
    stream = client.names.stream("s")
    await client.bus.command("XADD", stream, "*", "data", '{"event": "start", "turn_id": "t-1"}')
    mark = await client.mark("s")
    await client.bus.command("XADD", stream, "*", "data", '{"event": "done", "turn_id": "t-1"}')
    async with asyncio.timeout(10):
        assert (await anext(client.events("s", mark))).kind == "done"
        assert (await anext(client.events("s", "0"))).kind == "start"


async def _answer(client: Client, **fields: Any) -> None:
    """Be Chatter for one message."""
    queue = _queue(client)
    async with asyncio.timeout(10):
        while not isinstance(claim := await queue.claim("w"), Claim):
            await asyncio.sleep(0.01)
    entry = claim.entries[0]
    output = _output(1, session_id=entry.session, answers=[entry.id], **fields)
    await queue.finish(claim.session, claim.epoch, Completion(channel=CHANNEL, output=output.text(CHANNEL)))


async def test_a_command_comes_back_with_its_result(client: Client) -> None:
    asked = asyncio.create_task(client.command("list_repos", {}, "ada"))
    await _answer(client, result={"repos": []})
    assert await asked == {"repos": []}


async def test_a_command_that_nobody_runs_ends_in_time(client: Client) -> None:
    with pytest.raises(TimedOut, match="list_repos"):
        await client.command("list_repos", {}, "ada", patience=0.2)


async def test_a_stop_goes_before_what_waits(client: Client) -> None:
    await client.say("first", "ada", "s")
    await client.stop("ada", "s")
    claim = await _queue(client).claim("w")
    assert isinstance(claim, Claim)
    assert [json.loads(entry.data).get("type", "message") for entry in claim.entries] == [
        "message",
        "stop",
    ] or [json.loads(entry.data).get("type") for entry in claim.entries] == ["stop"]


async def test_amends_and_decisions_are_accepted(client: Client) -> None:
    sent = [
        await client.amend("in French", "ada", "s"),
        await client.decide("a-1", "deny", "ada", "s", reason="no"),
    ]
    assert [one.outcome for one in sent] == ["accepted", "accepted"]


async def test_a_message_on_human_input_is_posted_with_an_id_of_ours(client: Client) -> None:
    sent = await client.publish("human-input", {"user_id": "ada", "content": "hi"})
    claim = await _queue(client).claim("w")
    assert isinstance(claim, Claim)
    assert claim.entries[0].id == sent.id
    assert json.loads(claim.entries[0].data)["via"] == "human-input"


async def test_the_same_id_twice_is_known(client: Client) -> None:
    words = {"user_id": "ada", "content": "hi", "id": "m-1"}
    assert [(await client.publish("human-input", words)).outcome for _ in range(2)] == ["accepted", "known"]


async def test_a_question_is_posted_to_the_agents_own_queue(client: Client) -> None:
    words = {"from": "x", "to": "planner", "type": "question", "payload": {"question": "?"}}
    sent = await client.publish("agent:planner", words)
    claim = await _queue(client, "planner").claim("w")
    assert isinstance(claim, Claim)
    assert claim.entries[0].id == sent.id


async def test_an_answer_reaches_the_turn_that_waits_for_it(client: Client) -> None:
    await client.say("hi", "ada", "s")
    queue = _queue(client)
    claim = await queue.claim("w")
    assert isinstance(claim, Claim)
    await queue.step(claim.session, claim.epoch, 0, 1, [b"{}"], ["r-1"])
    words = {"from": "planner", "to": "chatter", "type": "response", "payload": {"request_id": "r-1"}}
    assert (await client.publish("agent:chatter", words)).outcome == "accepted"
    came = await queue.step(claim.session, claim.epoch, 1, 1, [])
    assert [entry.id for entry in came] == ["answer:r-1"]


async def test_an_answer_that_nobody_of_ours_awaits_is_published_for_others(client: Client) -> None:
    words = {"from": "planner", "to": "x", "type": "response", "payload": {"request_id": "r-9"}}
    assert (await client.publish("agent:x", words)).outcome == "heard"


@pytest.mark.parametrize(
    ("channel", "message", "error"),
    [
        ("human-input", {"content": "no user"}, BadMessage),
        ("human-input", {"user_id": "a", "type": "nonsense"}, BadMessage),
        ("agent:planner", {"from": "x", "to": "backend", "type": "task"}, UsageError),
        ("agent:planner", {"from": "x", "to": "planner", "type": "progress"}, BadMessage),
        ("agent:planner", {"from": "x", "to": "planner", "type": "nonsense"}, BadMessage),
    ],
)
async def test_what_no_inbox_would_take_is_refused(
    client: Client, channel: str, message: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        await client.publish(channel, message)


async def test_who_tails_sees_what_passes_and_is_not_taken_for_an_agent(client: Client) -> None:
    tail = client.tail(["agent:*"])
    seen = asyncio.ensure_future(anext(tail))

    async def listening() -> bool:
        return int(await client.bus.command("PUBSUB", "NUMPAT")) == 1

    await until(listening)
    assert await client.bus.listeners("agent:planner") == 0
    await client.bus.publish("agent:planner", "{}")
    async with asyncio.timeout(10):
        assert await seen == ("agent:planner", b"{}")
    await tail.aclose()


async def test_namespaces_do_not_hear_each_other(settings: Settings) -> None:
    async with (
        Client(settings.model_copy(update={"namespace": "a"})) as one,
        Client(settings.model_copy(update={"namespace": "b"})) as two,
        two.outputs() as feed,
    ):
        await Queue(one.bus, Names("a"), "chatter").announce(
            "a:chatter-output", _output(1).text("a:chatter-output")
        )
        await Queue(two.bus, Names("b"), "chatter").announce(
            "b:chatter-output", _output(2).text("b:chatter-output")
        )
        assert [heard.output.content for heard in await _take(feed, 1)] == ["2"]


async def test_without_a_cluster_it_says_how_to_start_one(tmp_path: Path) -> None:
    async with Client(Settings(PROMPTDOCK_HOME=tmp_path / "home")) as client:
        with pytest.raises(BusUnreachable, match="promptdock up"):
            await client.reach()
    assert not (tmp_path / "home").exists(), "looking leaves nothing behind"


async def test_an_embedded_server_that_comes_back_on_another_port_is_found_again(tmp_path: Path) -> None:
    first = Embedded(tmp_path, None)
    first.start()
    settings = Settings(PROMPTDOCK_HOME=tmp_path, PROMPTDOCK_LEASE=1000)
    async with Client(settings) as client, client.outputs() as feed:
        await _say(client, 1)
        assert [heard.output.content for heard in await _take(feed, 1)] == ["1"]
        first.stop()
        assert (await client.say("kept", "ada")).outcome == "kept"
        second = Embedded(tmp_path, free_port())
        second.start()
        try:
            async with Client(settings) as other:
                await _say(other, 2)
            assert [heard.output.content for heard in await _take(feed, 1)] == ["2"]

            async def sent() -> bool:
                return not client.kept

            await until(sent)
        finally:
            second.stop()


async def test_who_looks_at_two_things_at_once_opens_the_store_once(client: Client) -> None:
    client.settings.home.mkdir(parents=True, exist_ok=True)
    made = SqliteStore(client.settings.home / "promptdock.db")
    await made.open()
    await made.close()
    first, second = await asyncio.gather(client.store(), client.store())
    assert first is second
