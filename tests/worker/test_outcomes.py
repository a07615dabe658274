"""How a task came out, as its asker and the person are told."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from shared.bus import messages
from shared.store.records import Task, project_key
from shared.store.row import new_id
from shared.store.sqlite import SqliteStore
from shared.tasks import states
from shared.turns.turn import Turn
from shared.worker.connection import Connection
from shared.worker.runners.chat import wording
from shared.worker.runners.missed import missed
from shared.worker.runners.task_run import Payload, TaskRun, apply_tasks


async def task_run_of(store: SqliteStore, **more: Any) -> TaskRun:
    """The run of a task that is under way."""
    row = Task(slug="calm-otter", project_id=project_key("default"), title="Dig", **more)
    await store.insert(row)
    for event in ("assigned", "started"):
        await states.move(store, row.id, event, "backend", "turn")
    turn = SimpleNamespace(id="turn", epoch=1, records=[])
    request = SimpleNamespace(id="r", payload={"task_id": "calm-otter", "title": "Dig"})
    nowhere = cast(Connection, None)
    return TaskRun(nowhere, store, False, "backend", cast(Turn, turn), cast(messages.AgentMessage, request))


def told(payload: Payload) -> str:
    """What the person reads."""
    envelope = {"id": "a", "from": "backend", "to": "chatter", "type": "response"}
    return wording.outcome_text(
        messages.agent({**envelope, "payload": {"request_id": "r", **payload}, "timestamp": messages.now()})
    )


@pytest.mark.parametrize(
    ("row", "payload", "how", "state"),
    [
        ({}, {"status": "completed"}, "completed", "COMPLETED"),
        ({"requires_approval": True}, {"status": "completed"}, "awaiting_approval", "AWAITING_APPROVAL"),
        ({"verification": "human"}, {"status": "completed"}, "awaiting_approval", "AWAITING_APPROVAL"),
        ({"requires_approval": True}, {"status": "failed", "unproved": True}, "failed", "FAILED"),
        ({}, {"status": "failed", "error": "no"}, "failed", "FAILED"),
        ({}, {"status": "failed", "lasting": True}, "failed", "BLOCKED"),
        ({"requires_approval": True}, {"status": "stopped", "error": "no"}, "stopped", "BLOCKED"),
    ],
)
async def test_what_is_told_of_a_task_is_the_state_that_it_is_in(
    store: SqliteStore, row: dict[str, Any], payload: Payload, how: str, state: str
) -> None:
    task_run = await task_run_of(store, **row)
    judged = await task_run.judged(payload)
    assert judged | {"again_in": None} == payload | {"status": how, "again_in": None}
    assert await task_run.judged(judged) == judged
    for change in (await task_run.ends(judged))[1:]:
        await apply_tasks(store, [change.values])
    (kept,) = await store.select(Task)
    assert kept.status == state


async def test_a_change_of_a_task_that_cannot_be_stored_holds_up_none_behind_it(store: SqliteStore) -> None:
    task_run = await task_run_of(store)
    changes = [change.values for change in (await task_run.ends({"status": "completed"}))[1:]]
    with capture_logs() as logged:
        await apply_tasks(store, [{"task": str(new_id())}, *changes])
    (kept,) = await store.select(Task)
    assert (kept.status, [line["log_level"] for line in logged]) == ("COMPLETED", ["error"])


def test_work_that_waits_for_review_is_told_with_what_the_person_can_do() -> None:
    card = {"task_id": "calm-otter", "title": "Dig", "status": "awaiting_approval", "summary": "A hole."}
    text = told(card | {"branch": "promptdock/calm-otter", "commits": ["abc"]})
    assert text.startswith("Task calm-otter (Dig) by backend is done and waits for your review: ")
    for way in (
        "promptdock tasks review calm-otter",
        "promptdock tasks merge calm-otter",
        "approve_task",
        "A hole.",
    ):
        assert way in text
    assert "completed" not in text
    branchless = told(card)
    assert "approve_task" in branchless and "tasks merge" not in branchless
    assert told(card | {"status": "completed"}).startswith("Task calm-otter (Dig) by backend: completed.")


def output(content: str, **fields: Any) -> messages.Output:
    words = {"user_id": "ann", "status": "task_update", "id": "o", "session_id": "s", "content": content}
    return messages.Output.model_validate(words | {"timestamp": messages.now()} | fields)


def test_what_a_person_missed_is_told_whole_with_the_options_of_a_question() -> None:
    text = "Task a by backend: completed.\n[ ] one box\nVerified."
    assert wording.away(output(text)) == f"While you were away: {text}"
    asked = output("Which?", status="awaiting_input", question="Which?", options=["tea", "coffee"])
    assert wording.away(asked) == "While you were away: Which?\n1. tea\n2. coffee"


def test_what_is_missed_twice_is_told_in_the_same_words() -> None:
    once = wording.away(output("Task a by backend: completed."))
    assert wording.away(output(once, options=["tea"])) == once


def test_of_a_conversation_of_several_each_is_told_what_was_for_them() -> None:
    untold = [
        ("1-0", output("for ann").text("chatter-output").encode()),
        ("2-0", output("for bob", user_id="bob").text("chatter-output").encode()),
        ("3-0", b"no output"),
    ]
    assert [(id, told.content) for id, told in missed(untold, "ann")] == [("1-0", "for ann")]


@pytest.mark.parametrize(("tried", "seconds"), [(0, 30), (2, 120), (3, None)])
async def test_a_task_that_failed_says_when_it_is_tried_again_and_not_where_it_is_not(
    store: SqliteStore, tried: int, seconds: int | None
) -> None:
    task_run = await task_run_of(store, attempts=tried)
    payload = await task_run.judged({"task_id": "calm-otter", "status": "failed", "error": "no"})
    assert payload.get("again_in") == seconds
    assert (f"It is tried again in {seconds} s." in told(payload)) is (seconds is not None)


def test_branches_in_the_way_of_a_merge_are_one_line_however_many_there_are() -> None:
    clashes = [{"branch": f"promptdock/{name}", "files": ["a.py"]} for name in "abcdef"]
    shown = told({"task_id": "calm-otter", "status": "completed", "receipt": {"clashes": clashes}})
    (line,) = [line for line in shown.splitlines() if "cannot be merged" in line]
    assert "6 branches" in line and "promptdock/a: a.py" in line and line.endswith("and 2 more.")
    one = told({"task_id": "calm-otter", "status": "completed", "receipt": {"clashes": clashes[:1]}})
    assert "It cannot be merged with promptdock/a: a.py, as it is." in one
