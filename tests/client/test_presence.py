"""What pages hear of who is here: whether and since when each works or waits, and not on what."""

from __future__ import annotations

from shared.bus.activity import Activity
from shared.client.fanout import presence_card

TURN = Activity("t", 2000, kind="message", user="ada", title="A secret plan", act="bash: ls")
WAITS = Activity("u", 1000, user="bob", waits="it is overloaded", waits_since=1500)


def test_who_works_is_told_since_when_and_not_on_what() -> None:
    card = {"agent": "chatter", "status": "working", "doing": [TURN.card(), WAITS.card()], "pid": 7}
    assert presence_card(card) == {"agent": "chatter", "status": "working", "since": 1000}
    assert presence_card({"agent": "chatter", "status": "idle"}) == {"agent": "chatter", "status": "idle"}


def test_who_waits_for_a_provider_is_told_why_and_since_when() -> None:
    card = {"agent": "chatter", "status": "waiting", "doing": [WAITS.card()]}
    assert presence_card(card) == {
        "agent": "chatter",
        "status": "waiting",
        "since": 1000,
        "waits": "it is overloaded",
        "waits_since": 1500,
    }
