"""Names of keys and channels."""

from __future__ import annotations

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
