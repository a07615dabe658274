"""A task as its worker sees it, after another worker of it died."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from shared.bus.messages import AgentMessage
from shared.errors import Lasting
from shared.store.records import Project, Repo, Task, TaskResult, project_key
from shared.store.sqlite import SqliteStore
from shared.tasks.worktree.receipt import CheckRun, Produced, Receipt
from shared.turns.records import Records
from shared.turns.turn import Turn
from shared.worker.connection import Connection
from shared.worker.runners.task_run import TaskRun, apply_tasks

PROJECT = project_key("default")


async def task_run_of(store: SqliteStore) -> TaskRun:
    """Of a task called `calm-fox`, in a project of its own."""
    await store.upsert([Project(id=PROJECT, slug="default", name="Default")])
    words: dict[str, Any] = {"id": "m", "from": "chatter", "to": "backend", "type": "task"}
    request = AgentMessage.model_validate({**words, "payload": {"task_id": "calm-fox"}})
    turn = cast(Turn, SimpleNamespace(id="t", epoch=2, records=Records()))
    return TaskRun(cast(Connection, None), store, False, "backend", turn, request)


async def test_going_on_with_what_a_dead_worker_had_begun_is_no_warning(store: SqliteStore) -> None:
    task_run = await task_run_of(store)
    await store.insert(Task(slug="calm-fox", project_id=PROJECT, title="x", status="IN_PROGRESS"))
    await task_run.load()
    with capture_logs() as logged:
        await task_run.move("assigned", owner="backend")
        await task_run.move("started")
        await task_run.move("answered")
    assert [(line["log_level"], line["change"]) for line in logged] == [
        ("debug", "assigned"),
        ("debug", "started"),
        ("warning", "answered"),
    ]


async def test_a_task_whose_repository_is_unclear_says_with_which_command_the_person_names_it(
    store: SqliteStore,
) -> None:
    task_run = await task_run_of(store)
    await store.upsert([Repo(project_id=PROJECT, name=name, kind="backend") for name in ("bank", "shop")])
    with pytest.raises(Lasting, match="none named") as refused:
        await task_run.repo()
    assert "bank" in refused.value.why and "shop" in refused.value.why
    assert "promptdock tasks restart calm-fox --repo " in refused.value.fix


async def test_a_change_that_a_person_overtook_is_a_warning_and_one_that_nobody_can_read_an_error(
    store: SqliteStore,
) -> None:
    await task_run_of(store)
    task = Task(slug="calm-fox", project_id=PROJECT, title="x", status="COMPLETED")
    await store.insert(task)
    change: dict[str, Any] = {"task": str(task.id), "event": "passed", "actor": "backend", "key": "t"}
    with capture_logs() as logged:
        await apply_tasks(store, [change | {"epoch": 1, "changes": {}}, change])
    assert [line["log_level"] for line in logged] == ["warning", "error"]


PASSED = {"command": "true", "exit_code": 0, "check": True, "by": "harness"}


@pytest.mark.parametrize(
    ("tried", "head", "verified"),
    [
        ([("c1", [PASSED], "verified")], "c1", "verified"),
        ([("c1", [PASSED], "verified"), ("", [], "unverified")], "c1", "verified"),
        ([("c1", [PASSED], "verified"), ("", [PASSED | {"exit_code": 1}], "unverified")], "c1", "unverified"),
        ([("c1", [PASSED], "verified"), ("c2", [], "unverified")], "c2", "unverified"),
        ([("c1", [PASSED], "verified")], "c2", "unverified"),
        ([("c1", [], "unverified")], "c1", "unverified"),
    ],
)
async def test_an_attempt_that_changed_nothing_keeps_the_proof_of_its_commit(
    store: SqliteStore, tried: list[tuple[str, list[dict[str, Any]], Any]], head: str, verified: str
) -> None:
    task_run = await task_run_of(store)
    task = Task(slug="calm-fox", project_id=PROJECT, title="x", status="IN_PROGRESS")
    await store.insert(task)
    for number, (commit, commands, said) in enumerate(tried):
        at = datetime(2026, 1, 1, number, tzinfo=UTC)
        made = {"commits": ["c0", commit] if commit else [], "commands": commands, "verified": said}
        await store.insert(TaskResult(task_id=task.id, created_at=at, **made))
    await task_run.load()
    made_now = Receipt(commits=[Produced(sha="c0", subject="x"), Produced(sha=head, subject="y")])
    now = await task_run.proved(made_now, head)
    assert now.verified == verified
    assert bool(now.commands) == (head == "c1" and any(commands for _, commands, _ in tried))
    ours = [CheckRun.model_validate(PASSED)]
    nothing = await task_run.proved(Receipt(commands=ours), head)  # it is merged, and was checked once more
    last = next((commit for commit, _, _ in reversed(tried) if commit), "")
    assert nothing.verified == ("verified" if head == last else "unverified")
    own = made_now.model_copy(update={"commands": [CheckRun(command="false", exit_code=1, check=True)]})
    assert await task_run.proved(own, head) is own, "what was checked now counts"
