"""`tasks stop|restart|skip`: a person's word on what a task does next."""

from __future__ import annotations

from typing import Annotated, NoReturn

import typer

from gateways.cli import screen
from gateways.cli.calling import told
from gateways.cli.run import me, run
from shared.settings import Settings

Id = Annotated[str, typer.Argument(metavar="ID")]
User = Annotated[str, typer.Option("--user", help="Who decides.", default_factory=me)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def add_to(tasks: typer.Typer) -> None:
    """Put these commands among the others of `tasks`."""
    for command in (stop, restart, skip):
        tasks.command(command.__name__)(command)


def stop(task: Id, user: User, as_json: Json = False) -> NoReturn:
    """Stop a task for good; what it made stays on its branch."""
    run(lambda settings: _stop(settings, task, user, as_json))


def restart(
    task: Id,
    user: User,
    repo: Annotated[str | None, typer.Option(help="Where it is to be done, if that was not clear.")] = None,
    as_json: Json = False,
) -> NoReturn:
    """Begin a task again that failed, is blocked, or is done."""
    run(lambda settings: _restart(settings, task, repo, user, as_json))


def skip(task: Id, user: User, as_json: Json = False) -> NoReturn:
    """Count a failed or blocked task as done, so that what waits for it goes on."""
    run(lambda settings: _skip(settings, task, user, as_json))


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
