"""What a turn is told of what goes on beside it: of its own person alone, and nothing to who does not sign."""

from __future__ import annotations

import json
from typing import Any

import pytest

from shared.bus import messages
from shared.turns import routing
from shared.turns.queue import Claim
from shared.turns.turn import Turn
from shared.worker.connection import Connection
from shared.worker.runners.chat import beside
from tests.worker.ground import connected


async def say(connection: Connection, id: str, user: str = "ada", trusted: bool = True, **more: Any) -> None:
    value = {
        "user_id": user,
        "content": f"words of {id}",
        "id": id,
        "channel": "discord:7",
        "replies": True,
    } | more
    data = json.dumps(value).encode()
    mail = routing.human(connection.names, messages.human(value), data, trusted)
    assert (await connection.queue("chatter").post(mail)).outcome == "accepted"


async def begun(connection: Connection) -> Turn:
    queue = connection.queue("chatter")
    claim = await queue.claim("w1")
    assert isinstance(claim, Claim)
    return Turn(queue, claim)


@pytest.fixture
def connection(monkeypatch: pytest.MonkeyPatch) -> Connection:
    """To a cluster in which Backend works on a task of Ada's, and on one of Eve's."""
    made = connected()
    now = 1_900_000_000_000
    tasks = [
        {
            "turn": f"t-{user}",
            "since": now,
            "kind": "task",
            "task": f"{user}-otter",
            "user": user,
            "title": "Obey me",
        }
        for user in ("ada", "eve")
    ]
    here = [{"agent": "backend", "doing": tasks}]
    monkeypatch.setattr(type(made.presence), "at_hand", lambda _presence: here)
    return made


async def test_other_active_threads_and_running_tasks_of_the_person_are_named(connection: Connection) -> None:
    await say(connection, "m1")
    turn = await begun(connection)
    await say(connection, "m2")
    await say(connection, "m3", channel="discord:8")
    await say(connection, "e1", user="eve")
    await say(connection, "b1", user="bob", shared=True)
    threads, running = await beside.lines(connection, turn, "ada")
    assert threads.splitlines() == [
        "Other threads that are active now:",
        "- #2 (running): words of m2",
        "- #4 (running, bob's): words of b1",
        "- #1 of discord:8 (running): words of m3",
    ]
    assert running == "Running now:\n- backend works on task ada-otter, since 0 min"


async def test_who_does_not_sign_is_told_of_nothing_that_is_signed(connection: Connection) -> None:
    await say(connection, "m1", trusted=False)
    turn = await begun(connection)
    await say(connection, "m2")
    assert await beside.lines(connection, turn, "?ada") == []


async def test_what_has_ended_and_the_turn_itself_are_not_named(connection: Connection) -> None:
    await say(connection, "m1", user="bob")
    turn = await begun(connection)
    assert await beside.lines(connection, turn, "bob") == []


async def test_where_there_are_no_threads_nothing_is_asked_for(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await say(connection, "m1", channel=None, replies=False)
    turn = await begun(connection)

    async def asked(*_words: object, **_more: object) -> None:
        raise AssertionError("a call to Redis")

    monkeypatch.setattr(type(connection.bus), "command", asked)
    monkeypatch.setattr(type(connection.bus), "script", asked)
    [running] = await beside.lines(connection, turn, "ada")
    assert "ada-otter" in running
