"""Tasks: making, finding and changing them, and carrying them through their states."""

from __future__ import annotations

from typing import Any

import pytest

from shared.guard.permissions.presets import preset
from shared.store.records import Audit, Repo, Task, TaskEvent, TaskResult, Workspace
from shared.store.row import new_id, now
from shared.tasks import command, states
from shared.tools import catalog
from tests.support.guards import guarded
from tests.tools.bench import Bench
from tests.tools.ground import commit, git, write


async def _made(bench: Bench, title: str, **more: Any) -> str:
    return str((await bench.ok("create_task", title=title, **more))["created"])


async def _set(bench: Bench, slug: str, status: str, **more: Any) -> None:
    """A state that only workers reach."""
    assert await bench.store.update(Task, {"status": status, **more}, {"slug": slug})


async def _status(bench: Bench, slug: str) -> str:
    return str((await bench.ok("get_task", task_id=slug))["status"])


async def test_a_list_says_how_many_completed_tasks_it_left_out(bench: Bench) -> None:
    for title in ("one", "two"):
        await _set(bench, await _made(bench, title), "COMPLETED")
    told = await bench.ok("list_tasks")
    assert (told["total"], told["left_out"]["completed"]) == (0, 2)
    assert "left_out" not in await bench.ok("list_tasks", include_completed=True)


async def test_what_a_task_is_given_reaches_whoever_does_it(bench: Bench) -> None:
    await bench.linked()
    above = await _made(bench, "All of it")
    slug = await _made(bench, "A part", attachments=["docs/a.md"], parent_id=above)
    await bench.ok("stop_task", task_id=slug)
    await bench.ok("reopen_with_feedback", task_id=slug, feedback="Make it red.")
    (row,) = await bench.store.select(Task, {"slug": slug})
    told = await command.command_file(bench.store, row)
    assert "## Read first\n\n- docs/a.md" in told and "Make it red." in told
    assert slug in (await bench.ok("get_task_tree", task_id=above))["tree"]
    (repo,) = await bench.store.select(Repo)
    for name, owner in (("queue", repo.id), ("attic", None)):
        path = str(bench.home / name)
        await bench.store.insert(Workspace(project_id=repo.project_id, repo_id=owner, name=name, path=path))
    assert (await bench.ok("create_task", title="There", preferred_workspace_id="queue"))["repo_id"] == "shop"
    assert "no task can work" in await bench.no("create_task", title="No", preferred_workspace_id="attic")


async def test_what_nobody_would_do_is_refused_in_words(bench: Bench) -> None:
    slug = await _made(bench, "x")
    assert "no agent checks" in await bench.no("edit_task", task_id=slug, verification_type="qa_agent")


def test_work_whose_checks_did_not_all_pass_is_looked_at_where_they_are_to_decide() -> None:
    task = Task(slug="a", project_id=new_id(), title="x", verification="auto_test")
    assert states.to_review(task, "partly") and not states.to_review(task, "verified")
    assert not states.to_review(task.model_copy(update={"verification": None}), "unverified")


async def test_a_task_is_made_once_with_a_name_that_can_be_said(bench: Bench) -> None:
    await bench.linked()
    made = await bench.twice(
        "create_task", title="Add a page", description="all of it", repo_id="shop", priority=5
    )
    assert made["created"].count("-") >= 1
    assert await bench.store.count(Task) == await bench.store.count(TaskEvent, {"event": "created"}) == 1
    told = await bench.ok("get_task", task_id=made["created"])
    assert (told["status"], told["description"], told["repo"], told["priority"]) == (
        "READY",
        "all of it",
        "shop",
        5,
    )
    wrong: dict[str, Any]
    for wrong in ({"title": ""}, {"title": "x", "priority": -1}, {"title": "x", "task_type": "magic"}):
        assert "cannot take" in await bench.no("create_task", **wrong)
    for wrong in ({"project_id": "no"}, {"repo_id": "no"}, {"profile_id": "no"}, {"depends_on": ["no-task"]}):
        assert "there is no" in await bench.no("create_task", title="x", **wrong)


async def test_tasks_are_listed_flat_compact_and_as_a_tree(bench: Bench) -> None:
    top = await _made(bench, "top")
    below = await _made(bench, "below")
    done = await _made(bench, "done")
    [parent] = await bench.store.select(Task, {"slug": top})
    await _set(bench, below, "IN_PROGRESS", parent_id=parent.id)
    await _set(bench, done, "COMPLETED")
    told = await bench.ok("list_tasks")
    assert ({row["id"] for row in told["tasks"]}, told["total"]) == ({top, below}, 2)
    assert [row["id"] for row in (await bench.ok("list_tasks", completed_only=True))["tasks"]] == [done]
    assert (await bench.ok("list_tasks", status="IN_PROGRESS"))["total"] == 1
    assert (await bench.ok("list_tasks", include_completed=True))["total"] == 3
    tree = (await bench.ok("list_tasks", display_mode="tree"))["display"]
    assert f"○ {top} [READY] top\n└── ▶ {below} [IN_PROGRESS] below" in tree
    assert "[" not in (await bench.ok("list_tasks", display_mode="compact"))["display"]
    told = await bench.ok("get_task_tree", task_id=top, compact=True)
    assert (told["tree"], told["count"]) == (f"○ {top}\n└── ▶ {below}", 2)
    await bench.ok("create_project", name="Other")
    await _made(bench, "elsewhere", project_id="other")
    told = await bench.ok("list_active_tasks_all_projects")
    assert [(part["project_id"], part["count"]) for part in told["projects"]] == [
        ("default", 2),
        ("other", 1),
    ]


async def test_a_task_is_edited_in_what_is_given_and_moved_to_another_project(bench: Bench) -> None:
    slug = await _made(bench, "x")
    told = await bench.twice(
        "edit_task", task_id=slug, title="y", task_type="bugfix", max_retries=1, verification_type="human"
    )
    assert told["fields"] == ["title", "max_retries", "verification_type", "task_type"]
    await bench.ok("edit_task", task_id=slug, task_type="None", status="BLOCKED")
    told = await bench.ok("get_task", task_id=slug)
    assert (told["title"], told["task_type"], told["status"]) == ("y", None, "BLOCKED")
    await bench.ok("create_project", name="Other")
    await bench.ok("edit_task", task_id=slug, project_id="other")
    assert (await bench.ok("get_task", task_id=slug))["project_id"] == "other"
    assert "at least one" in await bench.no("edit_task", task_id=slug)
    assert "no task" in await bench.no("edit_task", task_id="no-task", title="z")


async def test_a_task_waits_for_those_that_it_depends_on(bench: Bench) -> None:
    first = await _made(bench, "first")
    second = await _made(bench, "second", depends_on=[first])
    third = await _made(bench, "third")
    assert await _status(bench, second) == "DEFINED"
    assert (await bench.twice("add_dependency", task_id=third, depends_on=second))["status"] == "DEFINED"
    assert "circle" in await bench.no("add_dependency", task_id=first, depends_on=third)
    assert "itself" in await bench.no("add_dependency", task_id=first, depends_on=first)
    told = await bench.ok("get_task_dependencies", task_id=second)
    assert ([row["id"] for row in told["upstream"]], [row["id"] for row in told["downstream"]]) == (
        [first],
        [third],
    )
    await _set(bench, first, "FAILED")
    told = await bench.ok("get_chain_health", task_id=first)
    assert {row["id"] for row in told["stuck_downstream"]} == {second, third}
    assert (await bench.ok("get_chain_health", project_id="default"))["total_stuck_chains"] == 1
    told = await bench.ok("skip_task", task_id=first)
    assert (told["unblocked"], told["unblocked_count"]) == ([second], 1)
    assert (await bench.ok("remove_dependency", task_id=third, depends_on=second))["status"] == "READY"
    assert "does not depend" in await bench.no("remove_dependency", task_id=third, depends_on=second)


ALLOWED = {"allowed_by": "ada"}  # a person has allowed this very call


@pytest.mark.parametrize(
    ("tool", "before", "after", "more"),
    [
        ("restart_task", "FAILED", "READY", {}),
        ("reopen_with_feedback", "COMPLETED", "READY", {"feedback": "Add tests"}),
        ("reopen_with_feedback", "AWAITING_APPROVAL", "READY", {"feedback": "Add tests"}),
        ("approve_task", "AWAITING_APPROVAL", "COMPLETED", {}),
        ("approve_plan", "AWAITING_PLAN_APPROVAL", "READY", {}),
        ("reject_plan", "AWAITING_PLAN_APPROVAL", "READY", {"feedback": "Smaller"}),
        ("delete_plan", "AWAITING_PLAN_APPROVAL", "COMPLETED", {}),
        ("skip_task", "BLOCKED", "COMPLETED", {}),
        ("stop_task", "READY", "BLOCKED", {}),
    ],
)
async def test_a_task_moves_where_its_state_allows_it_and_only_there(
    bench: Bench, tool: str, before: str, after: str, more: dict[str, Any]
) -> None:
    slug = await _made(bench, "x")
    await _set(bench, slug, "VERIFYING")
    assert "VERIFYING" in await bench.no(tool, task_id=slug, **more)
    await _set(bench, slug, before, error="it broke", attempts=2)
    await bench.ok(tool, task_id=slug, here=ALLOWED, **more)
    told = await bench.ok("get_task", task_id=slug)
    assert told["status"] == after
    assert told.get("feedback", "") == more.get("feedback", "")
    events = await bench.store.select(TaskEvent, order=[("created_at", "desc")], limit=1)
    assert (events[0].from_status, events[0].to_status) == (before, after)


@pytest.mark.parametrize(
    ("tool", "more"), [("restart_task", {}), ("reopen_with_feedback", {"feedback": "Add tests"})]
)
async def test_a_task_that_begins_again_stays_with_its_agent(
    bench: Bench, tool: str, more: dict[str, Any]
) -> None:
    slug = await _made(bench, "x")
    await _set(bench, slug, "COMPLETED", assignee="backend")
    await bench.ok(tool, task_id=slug, **more)
    assert (await bench.ok("get_task", task_id=slug))["assigned_agent"] == "backend"


async def test_a_state_is_overridden_by_hand_and_that_is_audited(bench: Bench) -> None:
    slug = await _made(bench, "x")
    told = await bench.twice("set_task_status", task_id=slug, status="FAILED")
    assert (told["old_status"], told["new_status"]) == ("READY", "FAILED")
    [audit] = await bench.store.select(Audit)
    assert (audit.person, audit.detail["to"]) == ("ada", "FAILED")


async def test_a_task_is_deleted_unless_it_is_in_progress(bench: Bench) -> None:
    first = await _made(bench, "first")
    second = await _made(bench, "second", depends_on=[first])
    await _set(bench, first, "IN_PROGRESS")
    assert "stop it first" in await bench.no("delete_task", task_id=first)
    await _set(bench, first, "BLOCKED")
    assert (await bench.ok("delete_task", task_id=first))["unblocked"] == [second]
    assert "no task" in await bench.no("delete_task", task_id=first)


async def test_finished_tasks_are_archived_and_restored(bench: Bench) -> None:
    done, failed, ready = [await _made(bench, title) for title in ("done", "failed", "ready")]
    await _set(bench, done, "COMPLETED")
    await _set(bench, failed, "FAILED")
    assert (await bench.twice("archive_tasks", project_id="default"))["archived"] == [done]
    assert (await bench.ok("archive_task", task_id=failed))["archived"] == [failed]
    assert "READY" in await bench.no("archive_tasks", task_id=ready)
    assert {row["id"] for row in (await bench.ok("list_archived"))["tasks"]} == {done, failed}
    assert (await bench.ok("restore_task", task_id=done))["restored"] == done
    assert "not archived" in await bench.no("restore_task", task_id=done)
    assert (await bench.ok("list_archived", project_id="default"))["total"] == 1


async def test_what_came_of_a_task_is_told_from_its_record_and_its_branch(bench: Bench) -> None:
    path = await bench.linked()
    slug = await _made(bench, "x", repo_id="shop")
    assert "no result yet" in await bench.no("get_task_result", task_id=slug)
    assert "no branch" in await bench.no("get_task_diff", task_id=slug)
    base = git(path, "rev-parse", "HEAD")
    git(path, "switch", "--quiet", "-c", "promptdock/x")
    write(path, {"app.py": "changed by the task\n"})
    commit(path, "work")
    git(path, "switch", "--quiet", "main")
    [task] = await bench.store.select(Task, {"slug": slug})
    await bench.store.insert(
        TaskResult(task_id=task.id, summary="changed it", files_changed=["app.py"], tokens_used=7, agent="backend",
                   error="429 Too Many Requests")
    )  # fmt: skip
    await _set(bench, slug, "FAILED", branch="promptdock/x", base_commit=base, attempts=3)
    told = await bench.ok("get_task_result", task_id=slug)
    assert (told["summary"], told["files_changed"], told["tokens_used"]) == ("changed it", ["app.py"], 7)
    assert "+changed by the task" in (await bench.ok("get_task_diff", task_id=slug))["diff"]
    told = await bench.ok("get_agent_error", task_id=slug)
    assert (told["error_type"], told["retries"], told["agent_summary"]) == (
        "rate_limit",
        "3 / 3",
        "changed it",
    )
    other = await _made(bench, "fine")
    assert (await bench.ok("get_agent_error", task_id=other))["error_type"] is None


async def test_a_task_that_failed_tells_its_error_without_being_one(bench: Bench) -> None:
    slug = await _made(bench, "x")
    await _set(bench, slug, "FAILED", error="the tests failed", ended_at=now())
    assert (await bench.ok("get_task", task_id=slug))["last_error"] == "the tests failed"


async def test_a_title_of_several_lines_is_one_line_and_allowed_like_any_other(bench: Bench) -> None:
    made = await bench.ok("create_task", title="line one\nline  two ")
    assert made["title"] == "line one line two"
    tool = catalog.registry().get("create_task")
    action = tool.detail({"title": "line one\nline two"})
    assert preset("standard").decide("create_task", "core", [action]).vote == "allow"


async def test_a_task_is_begun_again_in_the_repository_that_the_person_names(bench: Bench) -> None:
    await bench.linked("shop")
    await bench.linked("bank")
    slug = await _made(bench, "x")
    await _set(bench, slug, "BLOCKED", error="it is not clear which repository is meant")
    assert "no repository" in await bench.no("restart_task", task_id=slug, repo_id="attic")
    await bench.twice("restart_task", task_id=slug, repo_id="bank")
    told = await bench.ok("get_task", task_id=slug)
    assert (told["status"], told["repo"]) == ("READY", "bank")
    await _set(bench, slug, "FAILED", branch="promptdock/x")
    assert "discard_task" in await bench.no("restart_task", task_id=slug, repo_id="shop")
    await bench.ok("restart_task", task_id=slug, repo_id="bank")


CONSULTED = {"consulted": lambda: frozenset({"planner", "researcher"})}


@guarded("unplanned-task")
@pytest.mark.parametrize("answered", [frozenset(), frozenset({"planner"}), frozenset({"researcher"})])
async def test_a_task_that_nobody_planned_or_checked_does_not_begin_by_itself(
    bench: Bench, answered: frozenset[str]
) -> None:
    talks = {"talks": True, "consulted": lambda: answered}
    made = await bench.ok("create_task", title="x", here=talks)
    assert (await bench.ok("get_task", task_id=made["created"]))["status"] == "AWAITING_PLAN_APPROVAL"
    assert "Only the person" in made["warning"]


@pytest.mark.parametrize(
    "here",
    [{}, {"talks": True, "force": True}, {"talks": True, **CONSULTED}],
    ids=["no model", "forced", "planned"],
)
async def test_a_task_begins_where_it_was_planned_and_where_a_person_says_so(
    bench: Bench, here: dict[str, Any]
) -> None:
    made = await bench.ok("create_task", title="x", here=here)
    assert (await bench.ok("get_task", task_id=made["created"]))["status"] == "READY"


async def test_a_held_task_still_waits_for_others_once_its_person_lets_it(bench: Bench) -> None:
    first = (await bench.ok("create_task", title="first"))["created"]
    made = await bench.ok("create_task", title="second", depends_on=[first], here={"talks": True})
    slug = made["created"]
    assert made["status"] == "AWAITING_PLAN_APPROVAL" and made["depends_on"] == [first]
    assert (await bench.ok("approve_plan", task_id=slug, here=ALLOWED))["status"] == "DEFINED"
    await bench.ok("set_task_status", task_id=first, status="COMPLETED")
    assert (await bench.ok("get_task", task_id=slug))["status"] == "READY"


async def test_an_approved_plan_is_written_once_with_the_mark_of_who_planned(bench: Bench) -> None:
    await bench.linked()
    slug = await _made(bench, "Plan it", task_type="plan")
    piece = {"title": "A", "description": "do A", "agent": "backend", "acceptance": ["A works"]}
    plan = {
        "summary": "a",
        "tasks": [{"index": 0, **piece}, {"index": 1, **piece, "title": "B", "depends_on": [0]}],
    }
    await _set(bench, slug, "AWAITING_PLAN_APPROVAL", plan=plan, user_id="ada", session_id="talk")
    [task] = await bench.store.select(Task, {"slug": slug})
    read = {"by": "planner", "user": "ada", "session": "talk", "permissions": "", "foreign": "read_file"}
    await bench.store.insert(TaskResult(task_id=task.id, agent="planner", origin=read))
    told = await bench.twice("approve_plan", task_id=slug, here=ALLOWED)
    assert [one["status"] for one in told["written"]] == ["READY", "DEFINED"]
    pieces = await bench.store.select(Task, {"parent_id": task.id})
    assert sorted((one.title, one.user_id, one.origin["foreign"]) for one in pieces) == [
        ("A", "ada", "read_file"),
        ("B", "ada", "read_file"),
    ]
    assert await _status(bench, slug) == "COMPLETED"
    assert "cannot be plan written" in await bench.no("approve_plan", task_id=slug, here=ALLOWED)


async def test_a_plan_that_cannot_be_read_is_not_approved(bench: Bench) -> None:
    slug = await _made(bench, "Plan it", task_type="plan")
    await _set(bench, slug, "AWAITING_PLAN_APPROVAL", plan={"tasks": [{"title": "half"}]})
    assert f"tasks reject {slug}" in await bench.no("approve_plan", task_id=slug, here=ALLOWED)
    assert await _status(bench, slug) == "AWAITING_PLAN_APPROVAL"


@pytest.mark.parametrize(
    ("tool", "more"),
    [
        ("approve_task", {}),
        ("merge_task", {}),
        ("edit_task", {"status": "COMPLETED", "title": "other"}),
        ("set_task_status", {"status": "COMPLETED"}),
    ],
)
async def test_what_waits_for_a_review_is_decided_by_no_rule(
    bench: Bench, tool: str, more: dict[str, Any]
) -> None:
    slug = await _made(bench, "x", requires_approval=True)
    await _set(bench, slug, "AWAITING_APPROVAL")
    assert f"promptdock tasks approve {slug}" in await bench.no(tool, task_id=slug, **more)
    [task] = await bench.store.select(Task, {"slug": slug})
    assert (task.status, task.title) == ("AWAITING_APPROVAL", "x")


async def test_a_plan_is_approved_and_deleted_by_no_rule(bench: Bench) -> None:
    slug = await _made(bench, "x")
    await _set(bench, slug, "AWAITING_PLAN_APPROVAL")
    for tool in ("approve_plan", "delete_plan"):
        assert "waits for its person" in await bench.no(tool, task_id=slug)
    assert await _status(bench, slug) == "AWAITING_PLAN_APPROVAL"
    await bench.ok("approve_plan", task_id=slug, here={"agent": "person"})
