"""`tasks stop|restart|skip|approve|reject`: a person's word on what a task does next."""

from __future__ import annotations

from typing import Annotated, NoReturn

import typer

from gateways.cli import complete, options, screen
from gateways.cli.calling import told
from gateways.cli.run import me, run
from shared.client import Client
from shared.client.views import tasks
from shared.settings import Settings

Id = options.Task
User = Annotated[str, typer.Option("--user", help="Who decides.", default_factory=me)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def add_to(tasks: typer.Typer) -> None:
    """Put these commands among the others of `tasks`."""
    for command in (stop, restart, skip, approve, reject):
        tasks.command(command.__name__)(command)


def stop(task: Id, user: User, as_json: Json = False) -> NoReturn:
    """Stop a task for good; what it made stays on its branch."""
    run(lambda settings: _stop(settings, task, user, as_json))


def restart(
    task: Id,
    user: User,
    repo: Annotated[
        str | None,
        typer.Option(help="Where it is to be done, if that was not clear.", autocompletion=complete.repos),
    ] = None,
    as_json: Json = False,
) -> NoReturn:
    """Begin a task again that failed, is blocked, or is done."""
    run(lambda settings: _restart(settings, task, repo, user, as_json))


def skip(task: Id, user: User, as_json: Json = False) -> NoReturn:
    """Count a failed or blocked task as done, so that what waits for it goes on."""
    run(lambda settings: _skip(settings, task, user, as_json))


def approve(task: Id, user: User, as_json: Json = False) -> NoReturn:
    """Approve what waits for you: a plan, so that its tasks begin; or a reviewed task, without merging it."""
    run(lambda settings: _approve(settings, task, user, as_json))


def reject(
    task: Id,
    feedback: Annotated[str, typer.Argument(help="What is to be different; its planner or worker reads it.")],
    user: User,
    as_json: Json = False,
) -> NoReturn:
    """Send a plan back to its planner, or a reviewed task back to its worker."""
    run(lambda settings: _reject(settings, task, feedback, user, as_json))


async def _status(settings: Settings, task: str) -> str:
    async with Client(settings) as visitor:
        return str((await tasks.task(visitor, task))["status"])


async def _approve(settings: Settings, task: str, user: str, as_json: bool) -> None:
    planned = await _status(settings, task) == "AWAITING_PLAN_APPROVAL"
    tool = "approve_plan" if planned else "approve_task"
    result = await told(settings, tool, "approve", user, as_json, task_id=task)
    if result is None:
        return
    screen.out(f"{result['approved']} is approved" + (f": it is {result['status']}" if planned else ""))
    for written in result.get("written", []):
        screen.out(f"  {written['task_id']}  {written['status']}")


async def _reject(settings: Settings, task: str, feedback: str, user: str, as_json: bool) -> None:
    planned = await _status(settings, task) == "AWAITING_PLAN_APPROVAL"
    tool = "reject_plan" if planned else "reopen_with_feedback"
    result = await told(settings, tool, "reject", user, as_json, task_id=task, feedback=feedback)
    if result is None:
        return
    who = "planner" if planned else "worker"
    screen.out(f"{task} goes back to its {who}, who reads this")


async def _stop(settings: Settings, task: str, user: str, as_json: bool) -> None:
    result = await told(settings, "stop_task", "stop", user, as_json, task_id=task)
    if result is None:
        return
    screen.out(f"{result['stopped']} is stopped")
    screen.talk(f"what it made stays on its branch; again with: promptdock tasks restart {task}")


async def _restart(settings: Settings, task: str, repo: str | None, user: str, as_json: bool) -> None:
    where = {"repo_id": repo} if repo else {}
    result = await told(settings, "restart_task", "restart", user, as_json, task_id=task, **where)
    if result is None:
        return
    screen.out(f"{result['restarted']} begins again{f' in {repo}' if repo else ''}")


async def _skip(settings: Settings, task: str, user: str, as_json: bool) -> None:
    result = await told(settings, "skip_task", "skip", user, as_json, task_id=task)
    if result is None:
        return
    screen.out(f"{result['skipped']} is skipped")
    if result["unblocked"]:
        screen.talk(f"now {', '.join(result['unblocked'])} can begin")
