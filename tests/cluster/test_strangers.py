"""Who does not sign gets no agent and no profile that may do more than the one who answers everybody."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.processes import Site
from tests.support.wire import Message, Wire

SETTINGS = {
    "UNSIGNED_MAY": "command"
}  # whoever owns the cluster makes the agents; the rest is said by strangers
RULES: list[dict[str, Any]] = [
    {"system": "You are Bard", "steps": [{"text": "O"}]},
    {"steps": [{"text": "Hello"}]},
]


@pytest.fixture(scope="module", autouse=True)
def _chatter(place: Site) -> None:
    place.up("chatter")


def make(wire: Wire, name: str, mode: str) -> None:
    arguments = {"name": name, "system_prompt": "You are Bard.", "permission_mode": mode}
    said = wire.closing(wire.send(user="owner", type="command", tool="create_agent", arguments=arguments))
    assert said["status"] == "complete", said


def says(wire: Wire, **more: Any) -> Message:
    return wire.ask("hi", user="eve", **more)


def test_an_agent_that_may_do_no_more_answers_a_stranger_and_one_that_may_does_not(wire: Wire) -> None:
    make(wire, "meek", "locked")
    make(wire, "mighty", "open")
    assert says(wire, channel="promptdock:meek")["content"] == "O"
    for way in ({"channel": "promptdock:mighty"}, {"profile_id": "mighty"}):
        refused = says(wire, **way)
        assert refused["status"] == "error" and "nobody knows who sent it" in refused["content"], refused
    assert says(wire)["content"] == "Hello"


def test_a_strangers_conversation_in_a_channel_is_none_of_the_one_who_signs(wire: Wire) -> None:
    assert says(wire, channel="promptdock:meek")["session_id"] == "plain:on:promptdock:meek:eve"
