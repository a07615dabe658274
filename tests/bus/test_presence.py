"""Who is here, and since when."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from shared.bus import presence as module
from shared.bus.base import Bus
from shared.bus.keys import Names
from shared.bus.presence import LIFE_MS, Presence


@pytest.fixture
def presence(bus: Bus, names: Names) -> Presence:
    return Presence(bus, names)


async def age(bus: Bus, names: Names, field: str, ms: int) -> None:
    """Let a heartbeat be so much older."""
    card: dict[str, Any] = json.loads(await bus.command("HGET", names.presence, field))
    await bus.command("HSET", names.presence, field, json.dumps(card | {"seen": card["seen"] - ms}))


async def test_who_beats_is_here_with_what_it_says_of_itself(presence: Presence) -> None:
    await presence.beat("planner", "host-1", {"status": "idle", "about": "plans"})
    (card,) = await presence.here("planner")
    assert (card["agent"], card["instance"]) == ("planner", "host-1")
    assert (card["status"], card["about"]) == ("idle", "plans")
    assert 0 <= card["age_ms"] < 5000


async def test_nobody_is_here_before_the_first_heartbeat(presence: Presence) -> None:
    assert await presence.here() == []
    assert await presence.agents() == []


async def test_replicas_of_one_agent_are_here_side_by_side(presence: Presence) -> None:
    for instance in ("a", "b"):
        await presence.beat("planner", instance, {})
    await presence.beat("researcher", "c", {})
    assert {card["instance"] for card in await presence.here("planner")} == {"a", "b"}
    assert len(await presence.here()) == 3


async def test_it_lives_fifteen_seconds_after_the_last_heartbeat(
    presence: Presence, bus: Bus, names: Names
) -> None:
    assert LIFE_MS == 15_000
    await presence.beat("planner", "a", {})
    await age(bus, names, "planner/a", LIFE_MS - 3000)
    assert len(await presence.here("planner")) == 1
    await age(bus, names, "planner/a", 4000)
    assert await presence.here("planner") == []


async def test_the_clock_is_the_servers(
    presence: Presence, monkeypatch: pytest.MonkeyPatch, bus: Bus, names: Names
) -> None:
    monkeypatch.setattr(module, "now", lambda: "1999-01-01T00:00:00Z")  # a host whose own clock is wrong
    await presence.beat("planner", "a", {})
    assert len(await presence.here("planner")) == 1


async def test_who_leaves_is_gone_at_once_and_stays_known(presence: Presence) -> None:
    await presence.beat("planner", "a", {})
    await presence.leave("planner", "a")
    assert await presence.here("planner") == []
    assert await presence.agents() == ["planner"]


async def test_who_has_been_dead_for_long_is_swept_by_the_next_heartbeat(
    presence: Presence, bus: Bus, names: Names
) -> None:
    await presence.beat("planner", "dead", {})
    await age(bus, names, "planner/dead", 5 * LIFE_MS)
    await presence.beat("planner", "alive", {})
    assert await bus.command("HKEYS", names.presence) == [b"planner/alive"]


async def test_garbage_in_its_place_is_nobody(presence: Presence, bus: Bus, names: Names) -> None:
    await bus.command("HSET", names.presence, "x/1", "not JSON", "x/2", "[1]", "x/3", b"\xff")
    await presence.beat("planner", "a", {})
    assert [card["agent"] for card in await presence.here()] == ["planner"]


async def test_the_roster_names_all_who_were_here_and_what_those_who_are_here_are_for(
    bus: Bus, names: Names, presence: Presence
) -> None:
    await presence.beat("planner", "a", {"about": "plans"})
    await presence.beat("researcher", "b", {"about": "looks things up"})
    await presence.leave("researcher", "b")
    assert await Presence(bus, names).roster() == {"planner": "plans", "researcher": ""}


async def test_who_beats_knows_the_roster_without_asking_and_hears_of_newcomers(
    bus: Bus, names: Names, presence: Presence
) -> None:
    await presence.beat("chatter", "a", {"about": "talks"})
    other = Presence(bus, names)
    await other.beat("planner", "b", {"about": "plans"})
    assert await presence.roster() == {"chatter": "talks"}
    presence.met({"agent": "planner", "about": "plans"})
    assert await presence.roster() == {"chatter": "talks", "planner": "plans"} == await other.roster()


async def test_what_heartbeats_told_is_at_hand_until_it_is_old(
    presence: Presence, monkeypatch: pytest.MonkeyPatch
) -> None:
    def agents() -> list[str]:
        return [card["agent"] for card in presence.at_hand()]

    presence.met({"agent": "planner", "instance": "1"})
    assert agents() == [], "who does not beat hears nobody"
    await presence.beat("chatter", "1", {})
    presence.met({"agent": "planner", "instance": "1", "doing": []})
    presence.met({"agent": "no name", "instance": "1"})
    assert agents() == ["chatter", "planner"]
    presence.met({"agent": "planner", "instance": "1", "status": "offline"})
    assert agents() == ["chatter"]
    later = time.monotonic() + LIFE_MS / 1000 + 1
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert agents() == []


async def test_a_beat_forgets_what_an_agent_is_for_that_is_not_here_any_more(
    bus: Bus, names: Names, presence: Presence
) -> None:
    await Presence(bus, names).beat("planner", "b", {"about": "plans"})
    await presence.beat("chatter", "a", {"about": "talks"})
    assert (await presence.roster())["planner"] == "plans"
    await age(bus, names, "planner/b", LIFE_MS + 1000)
    await presence.beat("chatter", "a", {"about": "talks"})
    assert (await presence.roster())["planner"] == ""


async def test_a_bridge_that_died_leaves_the_roster_and_a_worker_that_died_stays_on_it(
    presence: Presence, bus: Bus, names: Names
) -> None:
    await bus.command("XADD", f"{names.queue('lower')}inbox", "*", "id", "m-1")
    for agent, kind in (("upper", module.PASSING), ("lower", module.PASSING), ("planner", "consult")):
        await presence.beat(agent, "a", {"kind": kind})
        await age(bus, names, f"{agent}/a", 5 * LIFE_MS)
    await presence.beat("chatter", "b", {})
    assert await presence.agents() == ["chatter", "lower", "planner"], "a message waits for lower"


async def test_who_is_here_or_has_work_is_not_retired(presence: Presence, bus: Bus, names: Names) -> None:
    await presence.beat("planner", "a", {})
    assert not await presence.retire("planner")
    await presence.leave("planner", "a")
    await bus.command("XADD", f"{names.queue('planner')}dead", "*", "id", "m-1")
    assert not await presence.retire("planner")
    await bus.command("DEL", f"{names.queue('planner')}dead")
    assert await presence.retire("planner")
    assert await presence.agents() == []
