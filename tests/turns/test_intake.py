"""Replicas that listen: plain PUBLISH is taken in exactly once and in order, whatever they go through."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from fakeredis import FakeServer

from shared.bus import messages
from shared.bus.base import Bus
from shared.bus.keys import CHATTER_OUTPUT, HUMAN_INPUT, Names
from shared.bus.redis import RedisBus
from shared.errors import PromptDockError
from shared.turns.intake import Intake
from shared.turns.queue import Mail, Queue
from tests.bus.fake import FakeBus
from tests.bus.malformed import EVERYTHING, said
from tests.bus.proxy import Proxy
from tests.support.valkey import eventually, until
from tests.turns.ground import claimed, state


@dataclass
class Replica:
    """One intake with a bus of its own, and what it was notified of."""

    bus: Bus
    names: Names
    rung: list[tuple[str, Any]] = field(default_factory=list)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    async def start(self) -> Replica:
        queue = Queue(self.bus, self.names, "chatter", lease_ms=60_000)
        channels = [self.names.channel(HUMAN_INPUT), self.names.agent("chatter")]
        self.intake = Intake(
            queue, channels, lambda channel, content: self.rung.append((channel, content)), channels
        )
        self.tasks = [asyncio.create_task(self.intake.run())]
        await asyncio.wait_for(self.intake.ready.wait(), 5)
        return self

    async def stop(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    def check(self) -> None:
        for task in self.tasks:
            assert not task.done(), task


Make = Callable[[], Replica]


@pytest.fixture(params=["fake", "real"])
async def make(request: pytest.FixtureRequest, valkey: str, names: Names) -> AsyncIterator[Make]:
    """Makes replicas that are ended with the test, and must have lived until then unless it ended them."""
    server = FakeServer()
    made: list[Replica] = []

    def make() -> Replica:
        bus = FakeBus(server) if request.param == "fake" else RedisBus(valkey, silence=3.0)
        made.append(Replica(bus, names))
        return made[-1]

    yield make
    alive = [task for replica in made for task in replica.tasks if not task.done() or not task.cancelled()]
    dead = [task for task in alive if task.done()]
    for replica in made:
        await replica.stop()
        await replica.bus.close()
    assert dead == []


async def inbox(bus: Bus, names: Names) -> list[str]:
    """The contents that were taken in, in their order."""
    entries = await bus.command("XRANGE", f"{names.queue('chatter')}inbox", "-", "+")
    return [json.loads(flat[flat.index(b"data") + 1])["content"] for _, flat in entries]


async def took(bus: Bus, names: Names, expected: list[str]) -> None:
    """All of these and nothing else, in this order."""

    async def there() -> bool:
        return len(await inbox(bus, names)) >= len(expected)

    await eventually(there)
    assert await inbox(bus, names) == expected


async def test_three_ears_take_each_plain_message_in_exactly_once_and_in_order(
    make: Make, names: Names
) -> None:
    replicas = [await make().start() for _ in range(3)]
    texts = [f"m{n}" for n in range(60)]
    for text in texts:
        await replicas[0].bus.publish(names.channel(HUMAN_INPUT), said(content=text))
    await took(replicas[0].bus, names, texts)


async def test_identical_messages_stay_as_many_as_were_sent(make: Make, names: Names) -> None:
    replicas = [await make().start() for _ in range(3)]
    for _ in range(5):
        await replicas[0].bus.publish(names.channel(HUMAN_INPUT), said(content="same"))
    await took(replicas[0].bus, names, ["same"] * 5)


# Only the real server: the fake one may keep a connection blocked whose reader was cancelled.
@pytest.mark.parametrize("make", ["real"], indirect=True)
async def test_ears_that_come_and_go_while_messages_come_neither_lose_nor_double_nor_swap(
    make: Make, names: Names
) -> None:
    stays = await make().start()
    sender = make().bus
    sent: list[str] = []

    async def send() -> None:
        for n in itertools.count():
            sent.append(f"m{n}")
            await sender.publish(names.channel(HUMAN_INPUT), said(content=f"m{n}"))
            await asyncio.sleep(0.001)

    sending = asyncio.create_task(send())
    for _ in range(4):
        comes = await make().start()
        seen = len(sent)
        await until(lambda seen=seen: len(sent) >= seen + 8)  # type: ignore[misc]
        await comes.stop()
        comes.tasks.clear()
    sending.cancel()
    await asyncio.gather(sending, return_exceptions=True)
    await took(stays.bus, names, sent)


async def test_what_is_posted_is_not_taken_in_again_by_the_ears_that_hear_it(
    make: Make, names: Names
) -> None:
    replica = await make().start()
    await make().start()
    channel = names.channel(HUMAN_INPUT)
    data = said(content="posted", via=channel)
    await replica.intake.queue.post(Mail("m1", "s", channel, data))
    await replica.bus.publish(channel, said(content="plain"))
    await took(replica.bus, names, ["posted", "plain"])
    assert next(content["content"] for name, content in replica.rung if name == channel) == "posted"


@pytest.mark.parametrize(
    "via", ["agent:chatter", "chatter-output", "", 7, None, ["human-input"], "HUMAN-INPUT"]
)
async def test_a_copy_that_names_another_channel_is_a_message_like_any_other(
    make: Make, names: Names, via: object
) -> None:
    replica = await make().start()
    await replica.bus.publish(names.channel(HUMAN_INPUT), said(content="heard", via=via))
    await took(replica.bus, names, ["heard"])


async def test_via_written_by_another_program_inside_the_words_hides_nothing(
    make: Make, names: Names
) -> None:
    replica = await make().start()
    channel = names.channel(HUMAN_INPUT)
    text = f'"via":"{channel}"'
    await replica.bus.publish(channel, said(content=text, notes=False, payload={"via": channel}))
    await took(replica.bus, names, [text])


@pytest.mark.parametrize("kind", EVERYTHING)
async def test_malformed_input_becomes_a_dead_letter_with_its_reason_and_the_next_message_is_taken(
    make: Make, names: Names, kind: str
) -> None:
    replica = await make().start()
    await make().start()
    data, _ = EVERYTHING[kind]
    await replica.bus.publish(names.channel(HUMAN_INPUT), data)
    await replica.bus.publish(names.channel(HUMAN_INPUT), said(content="after"))
    await took(replica.bus, names, ["after"])
    found = await state(replica.intake.queue)
    ((id, reason),) = found.dead
    assert id.startswith("p:")
    assert reason.startswith("malformed: ")
    replica.check()


# What of it names a user who can be read, and must therefore be answered.
ANSWERED = sorted(
    kind
    for kind, (data, _) in EVERYTHING.items()
    if kind.startswith(("a type", "a newer", "the year", "a deadline", "an id that", "content that", "roles"))
    or kind in ("NaN", "1e309", "__proto__", "10**400", "65 levels", "a megabyte", "half a character")
)


@pytest.mark.parametrize("kind", ANSWERED)
async def test_who_sent_something_malformed_is_told_once_with_the_reason(
    make: Make, names: Names, kind: str
) -> None:
    replica = await make().start()
    await make().start()
    data, why = EVERYTHING[kind]
    await replica.bus.publish(names.channel(HUMAN_INPUT), data)

    async def told() -> bool:
        return bool((await state(replica.intake.queue)).said)

    await eventually(told)
    (text,) = (await state(replica.intake.queue)).said
    output = json.loads(text)
    assert (output["status"], output["user_id"]) == ("error", "ann")
    assert why in output["content"]
    assert "Traceback" not in text
    assert output["via"] == names.channel(CHATTER_OUTPUT)


async def test_where_nobody_can_be_named_nobody_is_told(make: Make, names: Names) -> None:
    replica = await make().start()
    for data in (b"", b"[]", b'{"user_id": 7}', b'{"user_id": "a\\u0007b"}', b'{"user_id": "\\ud800"}'):
        await replica.bus.publish(names.channel(HUMAN_INPUT), data)

    async def buried() -> bool:
        return len((await state(replica.intake.queue)).dead) == 5

    await eventually(buried)
    assert (await state(replica.intake.queue)).said == []


async def test_an_error_names_the_message_that_it_answers(make: Make, names: Names) -> None:
    replica = await make().start()
    wrong = said(id="m7", session_id="s7", mode="turbo")
    await replica.bus.publish(names.channel(HUMAN_INPUT), wrong)

    async def told() -> bool:
        return bool((await state(replica.intake.queue)).said)

    await eventually(told)
    output = json.loads((await state(replica.intake.queue)).said[0])
    assert (output["in_reply_to"], output["answers"], output["session_id"]) == ("m7", ["m7"], "s7")


async def test_a_dead_letter_of_a_huge_message_is_cut(make: Make, names: Names) -> None:
    replica = await make().start()
    await replica.bus.publish(names.channel(HUMAN_INPUT), said(content="x" * 2_000_000))

    async def buried() -> bool:
        return bool((await state(replica.intake.queue)).dead)

    await eventually(buried)
    ((_, flat),) = await replica.bus.command("XRANGE", f"{names.queue('chatter')}dead", "-", "+")
    assert len(flat[flat.index(b"data") + 1]) <= 64 * 1024


@pytest.mark.parametrize(
    "message",
    [
        {"to": "planner"},
        {"from": "system"},
        {"type": "response", "payload": {}},
        {"type": "response", "payload": {"request_id": "never.asked"}},
        {"hops": "many"},
        {"type": "question"},
    ],
)
async def test_a_message_between_agents_that_cannot_be_used_is_a_dead_letter_without_an_output(
    make: Make, names: Names, message: dict[str, Any]
) -> None:
    replica = await make().start()
    base = {"id": "r1", "from": "planner", "to": "chatter", "type": "task", "payload": {}}
    await replica.bus.publish(names.agent("chatter"), json.dumps(base | message))

    async def buried() -> bool:
        return bool((await state(replica.intake.queue)).dead)

    await eventually(buried)
    found = await state(replica.intake.queue)
    assert (len(found.dead), found.said, found.inbox) == (1, [], [])


async def heard_by_x(replica: Replica, names: Names, sent: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the agent `x` hears when these are published on `agent:chatter`, until an answer to `end` comes."""
    heard: list[dict[str, Any]] = []
    ready = asyncio.Event()

    async def on_ready() -> None:
        ready.set()

    def take(_channel: str, data: bytes) -> None:
        heard.append(json.loads(data))

    listener = asyncio.create_task(replica.bus.listener([names.agent("x")], take, on_ready, "").run())
    await asyncio.wait_for(ready.wait(), 5)
    base = {"from": "x", "to": "chatter", "payload": {}}
    for message in [*sent, {"id": "end", "type": "question"}]:
        await replica.bus.publish(names.agent("chatter"), json.dumps(base | message))

    async def over() -> bool:
        return any(message["payload"]["request_id"] == "end" for message in heard)

    await eventually(over)
    listener.cancel()
    await asyncio.gather(listener, return_exceptions=True)
    return heard[:-1]


async def test_a_malformed_request_gets_one_error_that_says_what_is_wrong(make: Make, names: Names) -> None:
    replica = await make().start()
    await make().start()
    (told,) = await heard_by_x(replica, names, [{"id": "r1", "type": "question", "hops": "many"}])
    assert (told["from"], told["to"], told["type"]) == ("chatter", "x", "error")
    assert told["payload"]["request_id"] == "r1"
    assert "hops" in told["payload"]["why"]
    assert messages.agent(told).request_id == "r1"
    reasons = [reason for _, reason in (await state(replica.intake.queue)).dead]
    assert "hops" in reasons[0] and "payload.question" in reasons[1]


async def test_what_is_no_request_or_names_nobody_is_not_answered(make: Make, names: Names) -> None:
    replica = await make().start()
    sent: list[dict[str, Any]] = [
        {"id": "r1", "type": "response"},
        {"id": "r2", "type": "error", "hops": "many"},
        {"id": "r3", "type": ["question"]},
        {"id": "r 4", "type": "question"},
        {"id": "r5", "type": "question", "from": "X"},
        {"id": "r6", "type": "question", "from": "status"},
    ]
    assert await heard_by_x(replica, names, sent) == []


async def test_a_question_of_a_foreign_program_is_a_session_of_its_own(make: Make, names: Names) -> None:
    replica = await make().start()
    question = {"id": "r1", "from": "x", "to": "chatter", "type": "question", "payload": {"question": "?"}}
    for _ in range(2):  # the same id is one request
        await replica.bus.publish(names.agent("chatter"), json.dumps(question))

    async def taken() -> bool:
        return bool(await replica.intake.queue.size())

    await eventually(taken)
    claim = await claimed(replica.intake.queue)
    assert (claim.session, len(claim.entries)) == ("r1", 1)


async def test_progress_and_cancel_only_wake_the_worker(make: Make, names: Names) -> None:
    replica = await make().start()
    for kind in ("progress", "cancel"):
        message = {
            "id": "p",
            "from": "planner",
            "to": "chatter",
            "type": kind,
            "payload": {"request_id": "r"},
        }
        await replica.bus.publish(names.agent("chatter"), json.dumps(message))
    await until(
        lambda: [c["type"] for n, c in replica.rung if n.endswith("agent:chatter")] == ["progress", "cancel"]
    )
    found = await state(replica.intake.queue)
    assert (found.inbox, found.dead) == ([], [])


@pytest.mark.parametrize("garbage", [b"", b"words", b"\xff", b"1.5", b"-3", b"[" * 100_000])
async def test_garbage_on_the_channels_of_the_mechanism_itself_ends_no_ear(
    make: Make, names: Names, garbage: bytes
) -> None:
    replica = await make().start()
    await replica.bus.publish(replica.intake.queue.marker, garbage)
    await replica.bus.publish(replica.intake.queue.wake_up, garbage)
    await replica.bus.publish(names.channel(HUMAN_INPUT), said(content="after"))
    await took(replica.bus, names, ["after"])
    replica.check()


async def test_after_a_broken_connection_plain_messages_are_taken_in_again(valkey: str, names: Names) -> None:
    async with Proxy(valkey) as proxy:
        replica = Replica(RedisBus(proxy.url, silence=0.5), names)
        await replica.start()
        other = RedisBus(valkey)
        for harm in (proxy.cut, proxy.freeze):
            joined = await other.command("GET", f"{names.queue('chatter')}ear")
            harm()

            async def again(before: bytes = joined) -> bool:
                return bool(await other.command("GET", f"{names.queue('chatter')}ear") != before)

            await eventually(again)
        await eventually(lambda: _heard(other, names))
        replica.check()
        await replica.stop()
        await replica.bus.close()
        await other.close()


async def _heard(bus: Bus, names: Names) -> bool:
    """Whether a plain message is taken in by now (who listens may only just be joining)."""
    await bus.publish(names.channel(HUMAN_INPUT), said(content="again"))
    return bool(await inbox(bus, names))


async def test_a_time_in_which_nobody_listened_is_noted_among_the_dead_letters(
    valkey: str, names: Names
) -> None:
    async with Proxy(valkey) as proxy:
        bus = RedisBus(proxy.url, silence=5.0)
        queue = Queue(bus, names, "chatter")
        intake = Intake(
            queue, [names.channel(HUMAN_INPUT)], lambda _c, _m: None, plain=[names.channel(HUMAN_INPUT)]
        )
        running = asyncio.create_task(intake.run())
        try:
            await asyncio.wait_for(intake.ready.wait(), 10)
            assert await bus.command("XLEN", f"{queue.prefix}dead") == 0
            proxy.cut()

            async def noted() -> bool:
                rows = await bus.command("XRANGE", f"{queue.prefix}dead", "-", "+")
                return any(flat[1].startswith(b"gap: plain messages may have been lost") for _, flat in rows)

            async def asked() -> bool:
                try:
                    return await noted()
                except PromptDockError:
                    return False  # the line of the commands was cut too

            await eventually(asked)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await bus.close()
