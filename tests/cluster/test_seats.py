"""A Chatter that has just answered is given the next message; who died or leaves is given none."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from shared.bus.keys import HUMAN_INPUT
from tests.support.post import post
from tests.support.processes import Site, Worker, until
from tests.support.wire import Wire

RULES: list[dict[str, Any]] = [{"steps": [{"text": "Good day"}]}]
SETTINGS = {"PROMPTDOCK_LEASE": "600000"}  # what is given to nobody would not be answered within this test


@pytest.fixture
def chatter(place: Site, wire: Wire) -> Worker:
    """One that is idle after its first answer."""
    (worker,) = place.up("chatter")
    wire.closing(wire.send("hello", user="first"))
    until(lambda: _idle(wire) == 1, what="an idle Chatter")
    return worker


def _idle(wire: Wire) -> int:
    return int(wire.redis.zcard(f"{wire.names.desk('chatter')}idle"))


def test_an_idle_chatter_is_given_what_comes_next_and_answers_it_once(chatter: Worker, wire: Wire) -> None:
    with wire.redis.pubsub() as seats:  # type: ignore[no-untyped-call]
        seats.psubscribe(f"*{wire.names.desk('chatter')}seat:*".replace("{", "\\{").replace("}", "\\}"))
        assert seats.get_message(timeout=10)["type"] == "psubscribe"
        for number in range(3):
            wire.closing(wire.send(f"and {number}", user="second"))
            until(lambda: _idle(wire) == 1, what="an idle Chatter")
            told = seats.get_message(timeout=10)
            assert f"and {number}".encode() in told["data"]
    assert len(wire.closings("second")) == 3
    chatter.signal(signal.SIGTERM)
    assert chatter.ended(20) == 0
    assert _idle(wire) == 0


def test_what_comes_after_an_idle_chatter_died_waits_for_no_lease(
    chatter: Worker, place: Site, wire: Wire
) -> None:
    chatter.signal(signal.SIGKILL)
    chatter.ended(20)
    until(lambda: not wire.redis.pubsub_numsub(wire.names.channel(HUMAN_INPUT))[0][1], what="its silence")
    assert _idle(wire) == 1
    human = {"id": "late", "user_id": "third", "content": "is anybody here"}
    assert post(place.url, place.names, [human]) == ["accepted"]
    place.up("chatter")
    assert wire.closing("late")["content"] == "Good day"
