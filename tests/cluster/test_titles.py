"""A conversation gets a title by the model beside its second turn: bought once, and never over a person's own."""

from __future__ import annotations

import json
from typing import Any

from tests.support.messages_api import MessagesApi
from tests.support.messages_script import words
from tests.support.processes import Site, until
from tests.support.wire import Wire

ASKED = "Give a title to the conversation below"
SETTINGS = {"BUDGET_TITLES": "0.05"}
RULES: list[dict[str, Any]] = [
    {"user": ASKED, "steps": [{"text": '"Painting the fence blue."\n\nIs that good?'}]},
    {"steps": [{"text": "Noted"}]},
]


def bought(api: MessagesApi) -> int:
    """How often a title was asked for."""
    return sum(ASKED in words(body["messages"][0]["content"]) for body in api.requests)


def titled(place: Site, session: str, by: str) -> list[str]:
    """The title of a conversation, once it is whose it is to be."""
    sql = "select title from sessions where key = ? and titled = ?"
    return [row["title"] for row in place.query(sql, session, by)]


def test_the_model_names_a_conversation_once_at_its_second_turn(
    place: Site, wire: Wire, api: MessagesApi
) -> None:
    (mortal,) = place.up("chatter")
    wire.ask("Hello there", user="ann", session_id="fence")
    until(lambda: titled(place, "fence", "words") == ["Hello there"])
    assert bought(api) == 0
    mortal.kill()
    (mortal,) = place.up("chatter", PROMPTDOCK_FAULT="answer stored")
    wire.ask("The fence is to be blue", user="ann", session_id="fence")
    mortal.ended()
    place.up("chatter")
    assert until(lambda: titled(place, "fence", "model")) == ["Painting the fence blue"]
    request = next(body for body in api.requests if ASKED in words(body["messages"][0]["content"]))
    assert "The fence is to be blue" in json.dumps(request["messages"])
    wire.ask("And the door?", user="ann", session_id="fence")
    assert bought(api) == 1, "bought once, also after its worker died"


def test_a_title_that_a_person_gave_stays(place: Site, wire: Wire, api: MessagesApi) -> None:
    if not any(worker.process.poll() is None for worker in place.workers):
        place.up("chatter")
    before = bought(api)
    wire.ask("Hello again", user="ann", session_id="roof")
    until(lambda: titled(place, "roof", "words"))
    arguments = {"session_id": "roof", "title": "My roof"}
    wire.closing(wire.send(user="ann", type="command", tool="rename_session", arguments=arguments))
    wire.ask("The roof is to be red", user="ann", session_id="roof")
    ran = "select state from turns where session_id = 'roof' and turn_id like 'title:%'"
    until(lambda: place.query(ran), what="the turn that looks whether a title is wanted")
    assert titled(place, "roof", "person") == ["My roof"] and bought(api) == before
