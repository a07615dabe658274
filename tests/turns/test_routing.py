"""Where the answer to what cannot be used goes."""

from __future__ import annotations

import json

import pytest

from shared.bus import messages, reading
from shared.bus.keys import HUMAN_INPUT, Names
from shared.errors import BadMessage, Refused
from shared.turns import routing


@pytest.mark.parametrize(("error", "session"), [(Refused, "plain:ada"), (BadMessage, "user:ada")])
def test_a_refusal_fills_no_conversation_that_the_sender_only_names(
    error: type[BadMessage], session: str
) -> None:
    names = Names("here")
    data = json.dumps({"user_id": "ada", "content": "spam", "session_id": "user:ada", "id": "m"}).encode()
    mail = routing.dead(names, names.channel(HUMAN_INPUT), data, error("it must be signed"))
    assert json.loads(mail.refusal)["session_id"] == session


def test_a_persons_own_sessions_are_open_to_them_alone_however_alike_the_ids_are() -> None:
    names = Names("here")

    def sent(user: str, session: str | None) -> str:
        data = json.dumps({"user_id": user, "content": "hello", "session_id": session, "id": "m"}).encode()
        return routing.human(names, messages.human(reading.read(data)), data).session

    assert sent("a b", None) == sent("a b", "user:a%20b") == "user:a%20b"
    assert sent("a_b", None) == sent("a_b", "user:a_b") == "user:a_b"
    assert sent("a b", "command:a%20b") == "command:a%20b"
    for user, other in (("a b", "user:a_b"), ("a_b", "user:a%20b"), ("a b", "command:a_b")):
        with pytest.raises(Refused, match="leave session_id out"):
            sent(user, other)


def test_what_cannot_be_taken_is_answered_in_the_channel_from_which_it_came() -> None:
    names = Names("here")
    value = {"user_id": "ada", "content": "hi", "id": "m", "channel": "discord:7", "replies": True}
    busy = routing.human(names, messages.human(value), json.dumps(value).encode()).refusal
    assert json.loads(busy)["channel"] == "discord:7"
    data = json.dumps(value | {"thread": "two"}).encode()
    refused = routing.dead(names, names.channel(HUMAN_INPUT), data, BadMessage("no")).refusal
    assert json.loads(refused)["channel"] == "discord:7"


def test_two_messages_that_have_no_id_and_cannot_be_read_are_answered_under_two_ids() -> None:
    names = Names("here")
    data = json.dumps({"user_id": "ada", "content": 5}).encode()
    human = names.channel(HUMAN_INPUT)
    answers = [json.loads(routing.dead(names, human, data, BadMessage("no")).refusal)["id"] for _ in range(2)]
    assert len(set(answers)) == 2
