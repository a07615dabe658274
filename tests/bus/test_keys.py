"""Names of keys and channels."""

from __future__ import annotations

import re
from pathlib import Path

import shared
from shared.bus.keys import CHATTER_OUTPUT, HUMAN_INPUT, Names


def test_the_empty_namespace_gives_the_names_of_the_contract() -> None:
    names = Names()
    assert names.channel(HUMAN_INPUT) == "human-input"
    assert names.channel(CHATTER_OUTPUT) == "chatter-output"
    assert names.agent("planner") == "agent:planner"
    assert names.events("s1") == "events:s1"


def test_a_namespace_stands_before_every_channel_and_every_key() -> None:
    names = Names("test")
    assert names.channel(HUMAN_INPUT) == "test:human-input"
    assert names.agent("planner") == "test:agent:planner"
    keys = (names.presence, names.meta, names.agents, names.queue("chatter"), names.stream("s"))
    assert all(key.startswith("pd:test:") for key in keys)


def test_a_channel_is_called_by_the_contract_again() -> None:
    for names in (Names(), Names("test")):
        assert names.bare(names.agent("planner")) == "agent:planner"


def test_all_keys_of_an_agent_share_one_slot() -> None:
    assert Names("test").queue("chatter") == "pd:test:{chatter}:"
    assert Names("test").stream("s1").startswith(Names("test").queue("chatter"))


def test_two_namespaces_share_nothing() -> None:
    one, two = Names("a"), Names("b")
    assert {one.agent("x"), one.queue("x"), one.meta}.isdisjoint({two.agent("x"), two.queue("x"), two.meta})


def test_keys_keep_the_names_under_which_data_lies_in_redis() -> None:
    names = Names("test")
    keys = names.keys("chatter")
    laid = {
        keys.inbox: "inbox",
        keys.outputs: "out",
        keys.dead_letters: "dead",
        keys.outbox: "archive",
        keys.outbox_holder: "archive:owner",
        keys.stored_output: "archive:said",
        keys.idle: "idle",
        keys.load: "load",
        keys.full: "full",
        keys.marker: "ear",
        keys.wake_up: "bell",
        keys.owners_known: "owners",
        keys.named("due"): "due",
        keys.handoff("w"): "seat:w",
        keys.message("m"): "msg:m",
        keys.call("r"): "call:r",
        keys.turn("s"): "turn:s",
        keys.given("s"): "given:s",
        keys.window("s"): "window:s",
        keys.owner("s"): "owner:s",
        keys.asker("s"): "who:s",
        keys.open_requests("s"): "asks:s",
        keys.unseen("s"): "untold:s",
        keys.events("s"): "events:s",
    }
    assert laid == {key: key.removeprefix("pd:test:{chatter}:") for key in laid}
    assert names.lease("leader") == "pd:test:{@leader}:"
    assert names.spending().prefix == "pd:test:{@money}:"
    assert names.question("t") == "pd:test:question:t"
    assert names.host_request("h", "r") == "pd:test:home:h:r"
    assert names.changed_path("web", "a.py") == "pd:test:paths:web:f0de093a8c24f6a3ed1c71a2"
    assert names.overlaps("web", "t") == "pd:test:paths:web:told:t"


def test_no_other_module_puts_a_key_together() -> None:
    made = re.compile(r"\.root\}|names\.queue\([^)]*\)\}|(?:queue|desk|keys|home)\.prefix\}")
    room = Path(shared.__file__).parent
    files = [file for file in room.rglob("*.py") if file != room / "bus" / "keys.py"]
    assert len(files) > 100
    assert [str(file) for file in files if made.search(file.read_text("utf-8"))] == []
