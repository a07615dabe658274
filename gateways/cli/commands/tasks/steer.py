"""`tasks stop|restart|skip|approve|reject`: a person's word on what a task does next."""

from __future__ import annotations

from gateways.cli import screen
from gateways.cli.calling import result_for_people
from shared.client import Client
from shared.client.views.tasks import tasks
from shared.settings import Settings


async def _status(settings: Settings, task: str) -> str:
    async with Client(settings) as client:
        return str((await tasks.task(client, task))["status"])


async def approve(settings: Settings, task: str, user: str, as_json: bool) -> None:
    planned = await _status(settings, task) == "AWAITING_PLAN_APPROVAL"
    tool = "approve_plan" if planned else "approve_task"
    result = await result_for_people(settings, tool, "approve", user, as_json, task_id=task)
    if result is None:
        return
    screen.out(f"{result['approved']} is approved" + (f": it is {result['status']}" if planned else ""))
    for written in result.get("written", []):
        screen.out(f"  {written['task_id']}  {written['status']}")


async def reject(settings: Settings, task: str, feedback: str, user: str, as_json: bool) -> None:
    planned = await _status(settings, task) == "AWAITING_PLAN_APPROVAL"
    tool = "reject_plan" if planned else "reopen_with_feedback"
    result = await result_for_people(settings, tool, "reject", user, as_json, task_id=task, feedback=feedback)
    if result is None:
        return
    who = "planner" if planned else "worker"
    screen.out(f"{task} goes back to its {who}, who reads this")


async def stop(settings: Settings, task: str, user: str, as_json: bool) -> None:
    result = await result_for_people(settings, "stop_task", "stop", user, as_json, task_id=task)
    if result is None:
        return
    screen.out(f"{result['stopped']} is stopped")
    screen.talk(f"what it made stays on its branch; again with: promptdock tasks restart {task}")


async def restart(settings: Settings, task: str, repo: str | None, user: str, as_json: bool) -> None:
    where = {"repo_id": repo} if repo else {}
    result = await result_for_people(
        settings, "restart_task", "restart", user, as_json, task_id=task, **where
    )
    if result is None:
        return
    screen.out(f"{result['restarted']} begins again{f' in {repo}' if repo else ''}")


async def skip(settings: Settings, task: str, user: str, as_json: bool) -> None:
    result = await result_for_people(settings, "skip_task", "skip", user, as_json, task_id=task)
    if result is None:
        return
    screen.out(f"{result['skipped']} is skipped")
    if result["unblocked"]:
        screen.talk(f"now {', '.join(result['unblocked'])} can begin")
