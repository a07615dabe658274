"""SIGTERM hands over what runs and takes nothing more: a rolling deploy loses and repeats nothing."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.messages_api import MessagesApi
from tests.support.messages_script import Body, Step, last_words
from tests.support.processes import Site, site, until
from tests.support.wire import Wire

LOOK = {"name": "check_agent_status", "input": {"agent": "planner"}}


class Slow:
    """Two rounds for each message; the second one takes very long the first time that it is asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    def __call__(self, body: Body) -> Step:
        said, rounds = last_words(body["messages"])
        self.asked.append((said, rounds))
        if rounds == 0:
            return Step(tools=(LOOK,))
        return Step(text="Handed over", delay=60.0 if self.asked.count((said, rounds)) == 1 else 0.0)


@pytest.fixture
def api() -> Iterator[MessagesApi]:
    """A provider that is slow once."""
    with MessagesApi(Slow()) as server:
        yield server


@pytest.fixture
def place(tmp_path: Path, valkey: str, api: MessagesApi) -> Iterator[Site]:
    """A site of its own for each test."""
    model = {"ANTHROPIC_API_KEY": "sk-ant-test-key-0000", "ANTHROPIC_BASE_URL": api.url}
    with site(tmp_path, valkey, **model) as made:
        yield made


@pytest.fixture
def wire(place: Site) -> Iterator[Wire]:
    """What is published there."""
    with Wire(place.url, place.names) as listening:
        yield listening


def test_a_turn_that_runs_is_handed_over_to_another_replica_at_its_last_step(
    place: Site, api: MessagesApi, wire: Wire
) -> None:
    script: Any = api.script
    (old,) = place.up("chatter")
    message = wire.send("Carry this over")
    until(lambda: len(script.asked) == 2, what="the second round")
    (new,) = place.up("chatter")
    began = time.monotonic()
    old.signal(signal.SIGTERM)
    old.says("Chatter draining")
    later = wire.send("And this is new", user="later")
    assert old.ended(20) == 0
    assert time.monotonic() - began < 15
    said = wire.closing(message)
    assert (said["status"], said["content"]) == ("complete", "Handed over")
    first = "[from test]: Carry this over"
    assert [asked for asked in script.asked if asked[0] == first] == [(first, 0), (first, 1), (first, 1)]
    wire.send(user="later", type="stop")
    wire.closing(later)
    assert len(wire.closings("test")) == 1
    assert not [words for words in old.said() if words == "Received message from user: later"]
    assert new.drain() == 0


def test_an_idle_worker_drains_at_once_and_leaves_the_roster(place: Site, wire: Wire) -> None:
    (worker,) = place.up("planner")
    began = time.monotonic()
    assert worker.drain() == 0
    assert time.monotonic() - began < 10  # half of what a turn under way would be given
    assert worker.said()[-2:] == ["Planner draining", "Planner stopped"]
    assert not wire.redis.hlen(place.names.presence)
    wire.wait("agent:status", lambda card: card["agent"] == "planner" and card["status"] == "offline")


def test_a_shutdown_is_taken_from_a_person_with_the_role_and_from_nobody_else(
    place: Site, wire: Wire
) -> None:
    (worker,) = place.up("planner", APPROVER_ROLES="boss")
    wire.publish("broadcast", {"command": "shutdown", "user_id": "mallory", "roles": ["guest"]})
    worker.says("A shutdown was refused")
    wire.publish("broadcast", {"command": "shutdown", "user_id": "ada", "roles": ["boss"]})
    assert worker.ended() == 0
