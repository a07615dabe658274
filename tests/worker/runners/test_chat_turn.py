"""The parts of a conversation's turn: who speaks in it, what it begins with, and what joins it."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from shared.bus import messages
from shared.conversation.past import History
from shared.turns.queue import QueueEntry
from shared.turns.records import NoteRecord
from shared.turns.turn import Turn
from shared.worker.connection import Connection
from shared.worker.runners.chat.turn import beginning
from shared.worker.runners.chat.turn.joining import Joining
from shared.worker.runners.chat.turn.participants import Participants
from shared.worker.runners.chat.turn.state import ChatTurn, Opening
from shared.worker.runners.inputs import TurnInput
from tests.worker.ground import connected, turn_of

PICTURE = {"type": "image", "media_type": "image/png", "data": "aGk="}


def said(content: str = "Hello", user: str = "ann", **more: Any) -> messages.Said:
    message = messages.human({"user_id": user, "content": content, "id": f"id-{content}", **more})
    assert isinstance(message, messages.Said)
    return message


class Output:
    """What the turn says, kept."""

    def __init__(self) -> None:
        self.told = list[str]()

    async def tell(self, _status: str, text: str, _suffix: str, **_more: Any) -> None:
        self.told.append(text)

    def now(self) -> int:
        return 1_000


class Peers:
    """The agents that this turn asks, and the answers that came too late."""

    def __init__(self, *asked: str) -> None:
        self.asked, self.given_up, self.came_late = dict.fromkeys(asked, "backend"), list[str](), list[str]()

    def take(self, entry: QueueEntry) -> bool:
        return json.loads(entry.data)["payload"]["request_id"] in self.asked

    def give_up(self, request: str, reason: str) -> None:
        self.given_up.append(f"{request}: {reason}")

    def late(self, answer: messages.AgentMessage) -> None:
        self.came_late.append(str(answer.request_id))


class Ground:
    """A turn of Ann's, with stand-ins for what it says and whom it asks."""

    def __init__(self, connection: Connection, turn: Turn, given: TurnInput, *asked: str) -> None:
        self.turn, self.output, self.peers = turn, Output(), Peers(*asked)
        self.people = Participants(turn, given)
        parts = (None, turn, given, None, self.output, self.people, SimpleNamespace(project=""))
        self.chat = ChatTurn(*cast(Any, parts))
        self.human = connection.names.channel("human-input")
        self.joining = Joining(self.chat, cast(Any, self.peers), self.human)

    def comes(self, message: dict[str, Any], channel: str = "") -> None:
        data = json.dumps(message).encode()
        self.turn.given.append(QueueEntry(str(message.get("id", "")), "s", channel or self.human, data, 0))

    def answers(self, request: str, **payload: Any) -> None:
        message = {"id": f"a.{request}", "from": "backend", "to": "chatter", "type": "response"}
        self.comes({**message, "payload": {"request_id": request, **payload}}, "agent:chatter")


async def ground_of(given: TurnInput, *asked: str) -> Ground:
    connection = connected()
    ground = Ground(connection, await turn_of(connection, "chatter", "m1"), given, *asked)
    await ground.people.identify()
    ground.turn.joined()
    return ground


async def test_words_of_somebody_who_may_less_lead_to_no_more_than_they_may() -> None:
    people = (await ground_of(TurnInput(said=[said(roles=["lead", "dev"])]))).people
    assert people.roles() == {"lead", "dev"} and people.approver().alone()
    people.join([said(user="bob", roles=["dev", "ops"])])
    assert people.roles() == {"dev"} and people.person == "ann"
    assert not people.approver().alone(), "no standing permission of Ann's holds for Bob's words"


async def test_a_request_of_an_agent_is_on_behalf_of_whom_it_names() -> None:
    envelope: dict[str, Any] = {"id": "q", "from": "web", "to": "chatter", "type": "question", "hops": 2}
    envelope["payload"] = {"question": "?"}
    behalf = {"user_id": "eve", "session_id": "talk", "roles": ["ops"]}
    request = messages.agent({**envelope, "on_behalf_of": behalf})
    people = (await ground_of(TurnInput(requests=[request]))).people
    assert (people.approver().who, people.roles(), people.hops) == (("eve", "talk"), frozenset({"ops"}), 2)


async def test_pictures_stand_behind_the_words_that_they_came_with() -> None:
    opening = Opening(["words", "a note", "the date"], [PICTURE])
    blocks = opening.message()["content"]
    assert [block.get("text", block["type"]) for block in blocks] == ["words", "image", "a note", "the date"]


async def test_what_joined_before_a_worker_died_is_not_part_of_the_opening_too() -> None:
    ground = await ground_of(TurnInput(said=[said("first"), said("second")]))
    ground.turn.records.append(NoteRecord(text="[from ann]: second"))
    texts = beginning._opening(ground.chat, [], [], "a note").texts
    assert texts == ["[from ann]: first", "a note"]


async def test_only_the_first_message_that_a_turn_adds_is_the_person_s() -> None:
    ground = await ground_of(TurnInput(said=[said()]))
    blocks = [{"role": role, "content": [{"type": "text", "text": "."}]} for role in ("user", "assistant")]
    added = ground.chat.added(History(window=[], seq=7), blocks)
    assert [(one["seq"], one.get("user_id")) for one in added] == [(8, "ann"), (9, None)]


async def test_words_that_come_while_a_turn_runs_are_handed_to_its_model_once() -> None:
    ground = await ground_of(TurnInput(said=[said(roles=["lead"])]))
    ground.comes({"user_id": "bob", "content": "And this", "id": "m2", "roles": []})
    ground.comes({"nonsense": True})
    assert list(await ground.joining()) == ["[from bob]: And this"]
    assert ground.people.roles() == frozenset() and await ground.joining() == []


async def test_an_answer_that_nobody_awaits_is_told_and_one_that_is_awaited_is_handed_over() -> None:
    ground = await ground_of(TurnInput(said=[said()]), "m1.1.1")
    ground.answers("m1.1.1", answer="left")
    ground.answers("m0.1.1", answer="right")
    [late] = await ground.joining()
    assert isinstance(late, str) and "late answer from agent backend" in late and "right" in late
    assert ground.peers.came_late == ["m0.1.1"]


async def test_the_outcome_of_a_task_is_told_to_the_person_and_to_the_model() -> None:
    ground = await ground_of(TurnInput(said=[said()]))
    ground.answers("t1", task_id="calm-otter", title="Dig", status="completed")
    [words] = await ground.joining()
    assert "calm-otter" in str(words)
    assert ground.output.told == ["Task calm-otter (Dig) by backend: completed."]


@pytest.mark.parametrize(
    ("named", "ends"), [({}, True), ({"turn_id": "m1"}, True), ({"turn_id": "m0"}, False)]
)
async def test_a_stop_ends_the_turn_that_it_names(named: dict[str, str], ends: bool) -> None:
    ground = await ground_of(TurnInput(said=[said()]))
    ground.comes({"user_id": "ann", "type": "stop", "id": "s1", **named})
    if ends:
        with pytest.raises(asyncio.CancelledError):
            await ground.joining()
    else:
        assert await ground.joining() == []


async def test_a_stop_that_names_a_consult_ends_that_alone() -> None:
    ground = await ground_of(TurnInput(said=[said()]), "m1.1.1")
    ground.comes({"user_id": "ann", "type": "stop", "id": "s1", "request_id": "m1.1.1", "reason": "enough"})
    assert await ground.joining() == []
    assert ground.peers.given_up == ["m1.1.1: enough"] and ground.turn.wake_up.is_set()
