"""A turn after the fact: what was done in it and by those that it asked, and what that took."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from shared.client import Client
from shared.client.views import trace
from shared.errors import UsageError
from shared.store.records import ConversationMessage, Task, TokenUsage, TurnRow, TurnStep, project_key
from shared.store.sqlite import SqliteStore

BEGAN = datetime(2026, 11, 22, 12, 0, 0, tzinfo=UTC)


def _at(seconds: float) -> datetime:
    return BEGAN + timedelta(seconds=seconds)


def _turn(id: str, agent: str, began: float, ended: float, **more: Any) -> TurnRow:
    at = {"created_at": _at(ended), "started_at": _at(began), "ended_at": _at(ended)}
    return TurnRow.model_validate(
        {"turn_id": id, "agent": agent, "state": "complete", "model": "m", **at, **more}
    )


def _step(
    turn: str, agent: str, number: int, kind: str, began: float, ended: float, **detail: Any
) -> TurnStep:
    return TurnStep(
        turn_id=turn, agent=agent, number=number, kind=kind, detail=detail,
        started_at=_at(began), ended_at=_at(ended), ms=int((ended - began) * 1000),
    )  # fmt: skip


def _said(turn: str, seq: int, user: str | None) -> ConversationMessage:
    return ConversationMessage(session_id=f"user:{user}", seq=seq, turn_id=turn, role="user", user_id=user)


CALL = {"type": "tool_use", "id": "c", "name": "consult_planner", "input": {"question": "How?"}}


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    store = SqliteStore(tmp_path / "promptdock.db")
    await store.open()
    task = Task(slug="calm-otter", project_id=project_key("default"), title="Dig")
    rows = [
        _turn("mess-1", "chatter", 0, 9, user_id="ada", session_id="user:ada"),
        _said("mess-1", 1, "ada"),
        _step("mess-1", "chatter", 1, "model", 0, 2, content=[CALL], usage=[100, 10, 0, 0, 0.5]),
        _step("mess-1", "chatter", 2, "result", 2, 8, tool="consult_planner", arguments={"question": "How?"}),
        _step("mess-1", "chatter", 3, "situation", 2, 2),
        _turn("mess-1.1.1", "planner", 3, 7),
        _step("mess-1.1.1", "planner", 1, "model", 3, 7, content=[], usage=[40, 4, 0, 0, 0.25]),
        TokenUsage(agent="chatter", turn_id="mess-1", model="m", input=100, output=10, cost=0.5),
        TokenUsage(agent="planner", turn_id="mess-1.1.1", model="m", input=40, output=4, cost=0.25),
        _turn("mess-2", "chatter", 20, 21, user_id="bob", session_id="user:bob"),
        _said("mess-2", 1, "bob"),
        task,
        _turn("t-1", "backend", 30, 40, task_id=task.id),
    ]
    for row in rows:
        await store.insert(row)

    async def opened() -> SqliteStore:
        return store

    yield cast(Client, SimpleNamespace(store=opened))
    await store.close()


async def test_a_turn_is_told_with_its_steps_and_with_those_of_the_agents_that_it_asked(
    client: Client,
) -> None:
    chatter, planner = await trace.trace(client, "mess-1", "ada")
    assert (chatter["agent"], chatter["ms"], chatter["input"], chatter["cost"]) == ("chatter", 9000, 100, 0.5)
    assert [(step["kind"], step["what"], step["after_ms"], step["ms"]) for step in chatter["steps"]] == [
        ("model", "asks for consult_planner", 0, 2000),
        ("result", "consult_planner: How?", 2000, 6000),
    ]
    assert (planner["agent"], planner["depth"], planner["ms"]) == ("planner", 1, 4000)


async def test_the_last_turn_of_a_person_is_meant_where_none_is_named(client: Client) -> None:
    assert [card["turn"] for card in await trace.trace(client, "", "ada")] == ["mess-1", "mess-1.1.1"]
    assert [card["turn"] for card in await trace.trace(client, "", "bob")] == ["mess-2"]


async def test_a_task_names_the_turns_in_which_it_was_done(client: Client) -> None:
    assert [card["agent"] for card in await trace.trace(client, "calm-otter", "ada")] == ["backend"]


@pytest.mark.parametrize("part", ["calm", "otter", "CALM-O"])
async def test_a_part_of_a_tasks_name_is_enough(client: Client, part: str) -> None:
    assert [card["agent"] for card in await trace.trace(client, part, "ada")] == ["backend"]


async def test_a_part_of_the_names_of_several_tasks_is_refused_with_them(client: Client) -> None:
    store = await client.store()
    await store.insert(Task(slug="calm-fox", project_id=project_key("default"), title="Dig"))
    with pytest.raises(UsageError) as refused:
        await trace.trace(client, "calm", "ada")
    assert "calm-fox, calm-otter" in refused.value.why


@pytest.mark.parametrize(
    ("name", "why"), [("mess", "several begin so"), ("nothing", "no turn that is stored")]
)
async def test_what_names_no_turn_or_several_is_refused(client: Client, name: str, why: str) -> None:
    with pytest.raises(UsageError) as refused:
        await trace.trace(client, name, "ada")
    assert why in refused.value.why


async def test_without_a_name_it_is_the_last_turn_that_the_persons_own_words_opened(client: Client) -> None:
    store = await client.store()
    own = {"user_id": "ada", "session_id": "user:ada"}
    for row in (
        _turn("news-of-a-task", "chatter", 50, 51, **own),
        _said("news-of-a-task", 3, None),
        _turn("a-command", "chatter", 60, 61, **own | {"session_id": "command:ada"}),
        _turn("a-command-beside", "chatter", 62, 63, **own),
    ):
        await store.insert(row)
    assert (await trace.trace(client, "", "ada"))[0]["turn"] == "mess-1"
    await store.insert(_turn("failed", "chatter", 70, 71, **own | {"state": "error"}))
    assert (await trace.trace(client, "", "ada"))[0]["turn"] == "failed", (
        "it left no words, and is what one looks for"
    )
