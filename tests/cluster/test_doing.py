"""What an agent does now stands in its presence, and is gone with its turn."""

from __future__ import annotations

import json
from typing import Any

from shared.bus.activity import Activity, doing
from tests.support.messages_api import MessagesApi
from tests.support.processes import Site, until
from tests.support.wire import Wire

RULES: list[dict[str, Any]] = [
    {
        "user": "look",
        "steps": [
            {"text": "I look.", "tools": [{"name": "list_tasks", "input": {}}]},
            {"text": "Nothing.", "hold": "go"},
        ],
    },
]
SETTINGS = {"PROMPTDOCK_MODEL": "claude-haiku-5-5"}


def _cards(wire: Wire) -> list[dict[str, Any]]:
    return [json.loads(card) for card in wire.redis.hvals(wire.names.presence)]


def _doing(wire: Wire) -> list[Activity]:
    return [activity for card in _cards(wire) for activity in doing(card)]


def test_a_turn_is_in_the_presence_of_its_agent_with_what_it_did_last_and_the_name_of_the_model(
    place: Site, wire: Wire, api: MessagesApi
) -> None:
    place.up("chatter")
    message = wire.send("look", user="ada")
    until(lambda: [one.act for one in _doing(wire)] == ["list_tasks"], what="what it does")
    (made,) = _doing(wire)
    assert (made.turn, made.kind, made.user) == (message, "message", "ada")
    (card,) = _cards(wire)
    assert (card["model"], card["provider"], card["status"]) == ("claude-haiku-5-5", "anthropic", "working")
    api.released.add("go")
    wire.closing(message)
    until(lambda: _doing(wire) == [], what="an agent that does nothing")
