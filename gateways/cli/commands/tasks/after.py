"""`tasks try|unmerge|prune`: look at a task's work by running it, undo its merge, clear away what is left."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from gateways.cli import options, screen
from gateways.cli.calling import call, told
from gateways.cli.run import me, run
from shared.errors import UsageError
from shared.settings import Settings

Id = options.Task
User = Annotated[str, typer.Option("--user", help="Who decides.", default_factory=me)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Yes = options.Yes
_SHOWN = 30  # names of tasks in a line


def add_to(tasks: typer.Typer) -> None:
    """Put these commands among the others of `tasks`."""
    tasks.command("try")(try_)
    tasks.command("unmerge")(unmerge)
    tasks.command("prune")(prune)


def try_(
    task: Id,
    folder: Annotated[Path | None, typer.Argument(help="A new folder; a temporary one by default.")] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Take the checkout away again.")] = False,
    as_json: Json = False,
) -> NoReturn:
    """Check out what a task made in a folder of its own, to look at it and to run it."""
    run(lambda settings: _try(settings, task, folder, remove, as_json))


def unmerge(task: Id, user: User, as_json: Json = False) -> NoReturn:
    """Undo the merge of a task; its branch stays."""
    run(lambda settings: _unmerge(settings, task, user, as_json))


def prune(
    user: User,
    days: Annotated[
        float | None, typer.Option(min=0, help="Also tasks that ended more than so many days ago.")
    ] = None,
    project: Annotated[str | None, typer.Option(help="Of this project alone.")] = None,
    yes: Yes = False,
    as_json: Json = False,
) -> NoReturn:
    """Clear away branches and worktrees of merged and discarded tasks; says first what goes."""
    run(lambda settings: _prune(settings, user, days, project, yes, as_json))


def sure(what: str, yes: bool, command: str) -> None:
    """Ask for a yes on a terminal; UsageError where nobody can be asked, or where it is not given."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(what, "nobody can be asked here", f"{command} --yes")
    if not typer.confirm(f"{what}. Go on?", err=True):
        raise UsageError("nothing was changed", "it was not confirmed", "")


async def _try(settings: Settings, task: str, folder: Path | None, remove: bool, as_json: bool) -> None:
    from shared.client import Client
    from shared.client.views import try_out

    async with Client(settings) as visitor:
        place = await (try_out.end(visitor, task) if remove else try_out.begin(visitor, task, folder))
    if as_json:
        screen.document("try", path=str(place), removed=remove)
        return
    if remove:
        screen.out(f"{place} is removed")
        return
    screen.out(str(place))
    screen.talk(
        f"what you change there is yours alone; take it away with: promptdock tasks try {task} --remove"
    )


async def _unmerge(settings: Settings, task: str, user: str, as_json: bool) -> None:
    result = await told(settings, "unmerge_task", "unmerge", user, as_json, task_id=task)
    if result is None:
        return
    how = f"by the commit {result['commit'][:10]}" if result["commit"] else "which is what it was before"
    screen.out(f"{result['branch']} is taken out of {result['from']}, {how}")
    if along := result.get("went_with_it"):
        screen.talk(f"with it went what it was built on: {', '.join(along)}")
    screen.talk(f"its branch stays; again with: promptdock tasks merge {task}")


async def _prune(
    settings: Settings, user: str, days: float | None, project: str | None, yes: bool, as_json: bool
) -> None:
    given: dict[str, Any] = {} if days is None else {"days": days}
    given |= {"project_id": project} if project else {}
    seen = await call(settings, "prune_tasks", user, {**given, "dry_run": True})
    lists = {name: seen[name] for name in ("branches", "worktrees", "tasks")}
    if any(lists.values()) and not as_json:
        for line in _gone(lists):
            screen.talk(line)
    if any(lists.values()):
        again = " ".join(["promptdock tasks prune", *([f"--days {days:g}"] if days is not None else [])])
        count = sum(map(len, lists.values()))
        sure(f"this removes {count} thing{'s' * (count != 1)} for good", yes, again)
        seen = await call(settings, "prune_tasks", user, {**given, "dry_run": False})
        lists = {name: seen[name] for name in lists}
    if as_json:
        screen.document("prune", **lists)
    elif any(lists.values()):
        screen.out(
            ", ".join(_counted(name, len(names)) for name, names in lists.items() if names) + " removed"
        )
    else:
        screen.out("nothing is left to clear away")


def _counted(name: str, count: int) -> str:
    one = {"branches": "branch", "worktrees": "worktree", "tasks": "task"}[name]
    return f"{count} {one if count == 1 else name}"


def _gone(lists: dict[str, list[str]]) -> list[str]:
    words = {
        "branches": "branches, merged: promptdock/…",
        "worktrees": "worktrees",
        "tasks": "tasks, with history and receipts",
    }
    return [
        f"{words[name]}: {', '.join(names[:_SHOWN])}{' …' if len(names) > _SHOWN else ''}"
        for name, names in lists.items()
        if names
    ]
