"""`tasks merge|discard|changes|answer|pause|resume|review`: what a person makes of a task and of its work."""

from __future__ import annotations

from typing import Any

from gateways.cli import remedy, screen
from shared.errors import Denied, PromptDockError, UsageError
from shared.settings import Settings
from shared.visitor import Visitor

_REFUSED = "not allowed"  # how the door begins
_UNKNOWN = "there is no task called"  # how a tool says that it does not know the task


async def call(settings: Settings, tool: str, user: str, **arguments: Any) -> dict[str, Any]:
    """Run a tool in the cluster; its refusals are raised."""
    async with Visitor(settings) as visitor:
        await visitor.reach()
        result = await visitor.command(tool, arguments, user, patience=300)
    if "error" in result:
        told = [str(result.get(part, "")) for part in ("error", "why", "fix")]
        if told[0].startswith(_UNKNOWN):
            raise UsageError(
                f"there is no task {arguments['task_id']!r}", "", "promptdock tasks list shows them"
            )
        kind = Denied if told[0].startswith(_REFUSED) else PromptDockError
        raise kind(told[0], told[1], remedy.typed(told[2], arguments))
    return result


async def merge(settings: Settings, task: str, user: str, as_json: bool) -> None:
    """Merge it."""
    result = await call(settings, "merge_task", user, task_id=task)
    if as_json:
        screen.document("merge", **result)
        return
    if "commit" not in result:
        screen.out(f"{result['branch']} was merged into {result['into']} before: nothing is changed")
        return
    count = len(result["files"])
    screen.out(f"{result['branch']} is merged into {result['into']}: {count} file{'s' * (count != 1)}")
    if along := result.get("came_with_it"):
        screen.talk(f"with it came what it was built on: {', '.join(along)}")


async def discard(settings: Settings, task: str, user: str, as_json: bool) -> None:
    """Throw it away."""
    result = await call(settings, "discard_task", user, task_id=task)
    if as_json:
        screen.document("discard", **result)
        return
    screen.out(f"{result['branch']} is thrown away")
    screen.talk(f"the receipt stays: promptdock tasks show {task}")


async def changes(settings: Settings, task: str, text: str, user: str, as_json: bool) -> None:
    """Ask for changes."""
    result = await call(settings, "reopen_with_feedback", user, task_id=task, feedback=text)
    if as_json:
        screen.document("changes", **result)
        return
    screen.out(f"{result['reopened']} is open again; its next worker goes on with its branch, and reads this")


async def answer(settings: Settings, task: str, text: str, user: str, as_json: bool) -> None:
    """Answer its question."""
    result = await call(settings, "answer_task", user, task_id=task, answer=text)
    if as_json:
        screen.document("answer", **result)
        return
    screen.out(f"{result['answered']} has the answer to: {result['question']}")


async def pause(settings: Settings, task: str, hours: float, user: str, as_json: bool) -> None:
    """Let it rest."""
    result = await call(settings, "pause_task", user, task_id=task, hours=hours)
    if as_json:
        screen.document("pause", **result)
        return
    screen.out(f"{result['paused']} is paused until {screen.moment(result['resumes'])}")
    screen.talk(f"sooner with: promptdock tasks resume {task}")


async def resume(settings: Settings, task: str, user: str, as_json: bool) -> None:
    """Let it go on."""
    result = await call(settings, "resume_task", user, task_id=task)
    if as_json:
        screen.document("resume", **result)
        return
    screen.out(f"{result['resumed']} goes on")
    if result.get("warning"):
        screen.talk(str(result["warning"]))


async def review(settings: Settings, task: str, user: str, as_json: bool) -> None:
    """What it changed, by file."""
    result = await call(settings, "review_task", user, task_id=task)
    if as_json:
        screen.document("review", **result)
        return
    for file in result["files"]:
        screen.out(f"{file['path']}  +{file['added']} -{file['removed']}")
        screen.out(file["diff"].rstrip())
    if result["merges"]:
        screen.talk(f"{result['branch']} can be merged into {result['into']}: promptdock tasks merge {task}")
    else:
        screen.talk(
            f"it cannot be merged into {result['into']}: conflicts in {', '.join(result['conflicts'])}"
        )
