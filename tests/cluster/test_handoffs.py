"""A Chatter that has just answered is given the next message; who died or leaves is given none."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from shared.bus.keys import HUMAN_INPUT
from shared.turns.scripts import CLAIM, FINISH, POST, STEP
from tests.support.post import post
from tests.support.processes import Site, Worker, until
from tests.support.wire import Wire

RULES: list[dict[str, Any]] = [{"steps": [{"text": "Good day"}]}]
SETTINGS = {"PROMPTDOCK_LEASE": "600000"}  # what is given to nobody would not be answered within this test


@pytest.fixture
def chatter(place: Site, wire: Wire) -> Iterator[Worker]:
    """One that is idle after its first answer."""
    (worker,) = place.up("chatter")
    wire.closing(wire.send("hello", user="first"))
    until(lambda: _idle(wire) == 1, what="an idle Chatter")
    yield worker
    worker.signal(signal.SIGTERM)
    worker.ended(20)


def _idle(wire: Wire) -> int:
    return int(wire.redis.zcard(f"{wire.names.queue('chatter')}idle"))


def test_an_idle_chatter_is_given_what_comes_next_and_answers_it_once(chatter: Worker, wire: Wire) -> None:
    with wire.redis.pubsub() as handoffs:  # type: ignore[no-untyped-call]
        handoffs.psubscribe(f"*{wire.names.queue('chatter')}seat:*".replace("{", "\\{").replace("}", "\\}"))
        assert handoffs.get_message(timeout=10)["type"] == "psubscribe"
        for number in range(3):
            wire.closing(wire.send(f"and {number}", user="second"))
            until(lambda: _idle(wire) == 1, what="an idle Chatter")
            told = handoffs.get_message(timeout=10)
            assert f"and {number}".encode() in told["data"]
    assert len(wire.closings("second")) == 3
    chatter.signal(signal.SIGTERM)
    assert chatter.ended(20) == 0
    assert _idle(wire) == 0


def test_a_turn_that_was_given_takes_one_script_until_its_answer(
    chatter: Worker, place: Site, wire: Wire
) -> None:
    names, ran = {script.sha: script.name for script in (POST, CLAIM, STEP, FINISH)}, list[str]()
    with wire.redis.monitor() as monitor:  # type: ignore[no-untyped-call]
        human = {"id": "one", "user_id": "fourth", "content": "hello"}
        assert post(place.url, place.names, [human]) == ["accepted"]
        while "finish" not in ran:
            words = monitor.next_command()["command"].split(" ")
            ran += [names[word] for word in words[1:2] if words[0] == "EVALSHA" and word in names]
    # A worker looks each second for what is due, also when it has just been given something.
    assert [name for name in ran if name != "claim"] == ["post", "finish"]
    assert wire.closing("one")["content"] == "Good day"


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
