"""Asking other agents from inside a turn: presence first, then patience, and an answer that counts once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from shared.bus.presence import instance_of
from shared.errors import Busy, ToolError
from shared.settings import Settings
from shared.turns.queue import Claim
from shared.turns.turn import Turn
from shared.worker.connection import Connection
from shared.worker.runners import peers as module
from shared.worker.runners.closing import Replies
from shared.worker.runners.peers import MAX_HOPS, Peers
from tests.support.valkey import eventually
from tests.worker.ground import connected, request, turn_of

QUESTION = {"question": "Which way?"}


class Ground:
    """Chatter's turn, with what was said and shown in it."""

    def __init__(self, connection: Connection, turn: Turn) -> None:
        self.connection, self.turn = connection, turn
        self.said, self.events = list[str](), list[str]()
        self.who: dict[str, Any] = {"user_id": "ann", "session_id": "talk", "roles": ["lead"]}

    def peers(self, hops: int = 0, patience_ms: int = 30_000) -> Peers:
        settings = Settings.model_validate({"TOOL_CALL_TIMEOUT": patience_ms})
        arguments = (self.connection, settings, "chatter", self.turn, self.who, hops)
        return Peers(*arguments, self._live, self._say)

    def _live(self, kind: str, payload: dict[str, Any]) -> None:
        if kind == "consult":
            self.events.append(payload["state"])

    async def _say(self, text: str) -> None:
        self.said.append(text)

    async def here(self, agent: str) -> None:
        """A worker of this agent shows itself."""
        await self.connection.presence.beat(agent, f"{instance_of(1)}a", {"status": "idle"})

    async def received(self, agent: str) -> dict[str, Any]:
        """The request that waits for this agent."""
        queue, found = self.connection.queue(agent), list[Claim]()

        async def due() -> bool:
            if isinstance(claim := await queue.claim("w2"), Claim):
                found.append(claim)
            return bool(found)

        await eventually(due, 5)
        return dict(json.loads(found[0].entries[0].data))

    async def wake(self) -> None:
        """As our dispatcher does when it hears of an answer."""
        self.turn.wake_up.set()


@pytest.fixture
async def ground(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Ground]:
    monkeypatch.setattr(module, "GRACE", 0.0)
    connection = connected()
    yield Ground(connection, await turn_of(connection, "chatter", "m1"))


async def test_a_question_is_answered_with_what_the_other_agent_says(ground: Ground) -> None:
    await ground.here("backend")
    asking = asyncio.create_task(ground.peers().ask("backend", QUESTION, "m1.1.1"))
    sent = await ground.received("backend")
    assert (sent["type"], sent["payload"], sent["hops"]) == ("question", QUESTION, 1)
    assert sent["on_behalf_of"] == {"user_id": "ann", "session_id": "talk", "roles": ["lead"]}
    await Replies(ground.connection, "backend").deliver(request(id="m1.1.1"), "response", {"answer": "left"})
    await ground.wake()
    assert await asyncio.wait_for(asking, 5) == {"answer": "left"}
    assert ground.events == ["sent", "answered"] and ground.said == ["Consulting with Backend..."]


async def test_an_answer_that_was_there_before_a_worker_died_is_not_asked_for_twice(ground: Ground) -> None:
    await ground.here("backend")
    await ground.turn.step(calls=["m1.1.1"])
    await Replies(ground.connection, "backend").deliver(request(id="m1.1.1"), "response", {"answer": "left"})
    await ground.turn.step()
    async with asyncio.timeout(5):
        assert await ground.peers().ask("backend", QUESTION, "m1.1.1") == {"answer": "left"}


async def test_an_agent_that_is_not_here_is_not_asked(ground: Ground) -> None:
    found = await ground.peers().ask("backend", QUESTION, "m1.1.1")
    assert found["error"] == "backend is offline" and "promptdock up -d --with backend" in found["fix"]
    assert ground.events == ["offline"]
    assert await ground.connection.queue("backend").size() == 0


async def test_a_question_ends_after_so_many_agents(ground: Ground) -> None:
    await ground.here("backend")
    found = await ground.peers(hops=MAX_HOPS).ask("backend", QUESTION, "m1.1.1")
    assert f"through {MAX_HOPS} agents" in found["why"]
    assert await ground.connection.queue("backend").size() == 0


@pytest.mark.parametrize("name", ["x}:{y", "*", "Backend", "../x", "person"])
async def test_a_name_that_is_no_agent_s_reaches_no_queue(ground: Ground, name: str) -> None:
    peers = ground.peers()
    assert "no agent is called" in (await peers.ask(name, QUESTION, "m1.1.1"))["error"]
    assert (await peers.status(name))["online"] is False
    for call in (peers.send(name, {}, "k"), peers.stop(name, "k")):
        with pytest.raises(ToolError, match="no agent is called"):
            await call


async def test_who_does_not_answer_in_time_is_given_up_and_counted(ground: Ground) -> None:
    await ground.here("backend")
    peers = ground.peers(patience_ms=1)
    found = await peers.ask("backend", QUESTION, "m1.1.1")
    assert found["error"] == "backend did not respond within timeout"
    assert peers.timeouts == 1 and ground.events == ["sent", "timeout"] and not peers.waiting


async def test_the_person_ends_one_consult_and_the_turn_goes_on(ground: Ground) -> None:
    await ground.here("backend")
    peers = ground.peers()
    asking = asyncio.create_task(peers.ask("backend", QUESTION, "m1.1.1"))
    await ground.received("backend")
    peers.give_up("m1.9.9")
    peers.give_up("m1.1.1")
    await ground.wake()
    assert await asyncio.wait_for(asking, 5) == {"error": "stopped by the person"}


async def test_the_person_may_say_how_to_go_on_without_the_answer(ground: Ground) -> None:
    await ground.here("backend")
    peers = ground.peers()
    asking = asyncio.create_task(peers.ask("backend", QUESTION, "m1.1.1"))
    await ground.received("backend")
    peers.give_up("m1.1.1", "ask planner instead")
    await ground.wake()
    assert await asyncio.wait_for(asking, 5) == {"error": "stopped by the person: ask planner instead"}


async def test_progress_is_told_of_awaited_requests_and_not_in_floods(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ground.here("backend")
    peers = ground.peers()
    asking = asyncio.create_task(peers.ask("backend", QUESTION, "m1.1.1"))
    await ground.received("backend")
    assert peers.progress("m1.9.9", "nobody waits") == ""
    assert peers.progress("m1.1.1", "half way") == "Backend: half way"
    assert peers.progress("m1.1.1", "and more") == ""
    monkeypatch.setattr(module, "_QUIET", 0.0)
    assert ground.events == ["sent", "working"], "that it works is shown once"
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)


async def test_a_task_is_delivered_and_its_place_in_the_queue_told(ground: Ground) -> None:
    ahead = [await ground.peers().send("backend", {"task_id": "calm-otter"}, f"m1.1.{n}") for n in (1, 2)]
    assert ahead == [0, 1]
    assert ground.said[0] == "Assigned task calm-otter to Backend."


async def test_an_agent_whose_queue_is_full_is_busy(ground: Ground) -> None:
    queue = ground.connection.queue("backend")
    queue.limit = 0
    with pytest.raises(Busy, match="takes nothing more"):
        await ground.peers().send("backend", {}, "m1.1.1")


async def test_the_status_of_an_agent_is_that_of_a_replica_that_works(ground: Ground) -> None:
    presence = ground.connection.presence
    for number, does in enumerate(("idle", "working", "idle")):
        card = {"status": does, "current": f"q{number}" if does == "working" else None}
        await presence.beat("backend", f"{instance_of(1)}{number}", card)
    known = await ground.peers().status("backend")
    assert (known["online"], known["status"], known["instances"]) == (True, "working", 3)
    assert known["current"] == ["q1"]
    assert (await ground.peers().status("frontend"))["status"] == "offline"
