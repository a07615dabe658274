"""`tasks try|unmerge|prune`: look at a task's work by running it, undo its merge, clear away what is left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gateways.cli import screen
from gateways.cli.calling import call, result_for_people
from shared.client import Client
from shared.client.views.tasks import try_out
from shared.settings import Settings

_SHOWN = 30  # names of tasks in a line


async def try_(settings: Settings, task: str, folder: Path | None, remove: bool, as_json: bool) -> None:
    async with Client(settings) as client:
        place = await (try_out.end(client, task) if remove else try_out.begin(client, task, folder))
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


async def unmerge(settings: Settings, task: str, user: str, as_json: bool) -> None:
    result = await result_for_people(settings, "unmerge_task", "unmerge", user, as_json, task_id=task)
    if result is None:
        return
    how = f"by the commit {result['commit'][:10]}" if result["commit"] else "which is what it was before"
    screen.out(f"{result['branch'] or task} is taken out of {result['from']}, {how}")
    if along := result.get("went_with_it"):
        screen.talk(f"with it went what it was built on: {', '.join(along)}")
    if result["branch"]:
        screen.talk(f"its branch stays; again with: promptdock tasks merge {task}")


async def prune(
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
        screen.sure(f"this removes {count} thing{'s' * (count != 1)} for good", yes, again)
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
        "branches": "merged branches (promptdock/…)",
        "worktrees": "worktrees",
        "tasks": "tasks, with history and receipts",
    }
    return [
        f"{words[name]}: {', '.join(names[:_SHOWN])}{' …' if len(names) > _SHOWN else ''}"
        for name, names in lists.items()
        if names
    ]
