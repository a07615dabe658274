"""A call that removes or stops something, made again after its worker died: it says what it said before."""

from __future__ import annotations

from typing import Any

import pytest

from shared.store.records import ProfileRow, Task, Workspace
from tests.tools.bench import Bench, Result

HOOK: dict[str, Any] = {
    "project_id": "default",
    "name": "nightly",
    "trigger": {"type": "cron", "cron": "0 3 * * *"},
    "prompt_template": "Look",
}


async def _ground(bench: Bench) -> dict[str, dict[str, Any]]:
    """One of everything that can be removed, and the call that removes it."""
    await bench.linked()
    await bench.ok("create_project", name="Old")
    await bench.ok("write_note", project_id="default", title="Ideas", content="x")
    await bench.ok("create_hook", **HOOK)
    await bench.ok("create_agent", name="smith")
    await bench.ok("create_profile", id="plain", name="Plain")
    made = await bench.ok("create_task", title="Old work")
    await bench.ok("add_workspace", project_id="default", source="clone", name="one")
    await bench.store.update(Workspace, {"agent": "smith"}, {"name": "one"})
    return {
        "delete_note": {"project_id": "default", "title": "Ideas"},
        "delete_hook": {"hook_id": "nightly"},
        "delete_agent": {"agent_id": "smith"},
        "remove_workspace": {"workspace_id": "one"},
        "delete_profile": {"profile_id": "plain"},
        "delete_task": {"task_id": made["created"]},
        "delete_project": {"project_id": "old"},
    }


async def test_a_removal_that_is_made_again_says_what_it_said(bench: Bench) -> None:
    for tool, arguments in (await _ground(bench)).items():
        first = await bench.run(tool, step=f"{tool}.1", **arguments)
        assert "error" not in first, first
        assert await bench.run(tool, step=f"{tool}.1", **arguments) == first
        assert "there is no" in await bench.no(tool, **arguments) or tool == "delete_agent"
        assert "error" in await bench.run(tool, **arguments), "another call finds nothing"


async def test_what_a_removal_said_is_no_answer_to_another_call(bench: Bench) -> None:
    """Neither where the row is still there, nor for another thing."""
    await bench.ok("create_profile", id="plain", name="Plain")
    said: Result = {}

    async def dies(does: Result) -> None:
        said.update(does)
        raise ConnectionError("the worker dies before the effect")

    await bench.run("delete_profile", step="s", here={"intend": dies}, profile_id="plain")
    assert said["told"]["deleted"] == "plain" and await bench.store.count(ProfileRow) == 1
    again = await bench.run("delete_profile", step="s", here={"intended": said}, profile_id="plain")
    assert again == said["told"] and await bench.store.count(ProfileRow) == 0


async def test_who_waited_for_a_deleted_task_is_freed_by_the_replay_too(bench: Bench) -> None:
    first = (await bench.ok("create_task", title="first"))["created"]
    second = (await bench.ok("create_task", title="second", depends_on=[first]))["created"]
    third = (await bench.ok("create_task", title="third", depends_on=[first]))["created"]
    told = await bench.run("delete_task", step="s", task_id=first)
    assert sorted(told["unblocked"]) == sorted([second, third])
    # As if the worker had died between the deletion and the second of those who waited.
    await bench.store.update(Task, {"status": "DEFINED"}, {"slug": third})
    again = await bench.run("delete_task", step="s", task_id=first)
    assert sorted(again["unblocked"]) == sorted([second, third])


@pytest.mark.parametrize("status", ["IN_PROGRESS", "READY"])
async def test_a_stop_that_is_made_again_says_that_it_was_stopped(bench: Bench, status: str) -> None:
    slug = (await bench.ok("create_task", title="x"))["created"]
    await bench.store.update(Task, {"status": status}, {"slug": slug})
    told = await bench.run("stop_task", step="s", task_id=slug)
    assert told == {"stopped": slug, "was": "waiting"}
    assert await bench.run("stop_task", step="s", task_id=slug) == told
    assert "does not run" in await bench.no("stop_task", task_id=slug)
    await bench.store.update(Task, {"status": "COMPLETED"}, {"slug": slug})
    ended = await bench.run("stop_task", step="s", task_id=slug)
    assert "COMPLETED" in ended["why"], "it came to its end meanwhile: it was not stopped"
