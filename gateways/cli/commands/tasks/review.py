"""`tasks merge|discard|changes|answer|pause|resume|review`: what a person makes of a task and of its work."""

from __future__ import annotations

from gateways.cli import diffs, screen
from gateways.cli.calling import result_for_people
from gateways.cli.commands.tasks import show
from shared.client import Client
from shared.client.views.tasks import tasks
from shared.errors import UsageError
from shared.settings import Settings


async def merge(settings: Settings, task: str, user: str, as_json: bool) -> None:
    """Merge it."""
    result = await result_for_people(settings, "merge_task", "merge", user, as_json, task_id=task)
    if result is None:
        return
    if "commit" not in result:
        screen.out(f"{result['branch']} was merged into {result['into']} before: nothing is changed")
        return
    count = len(result["files"])
    screen.out(f"{result['branch']} is merged into {result['into']}: {count} file{'s' * (count != 1)}")
    if along := result.get("came_with_it"):
        screen.talk(f"with it came what it was built on: {', '.join(along)}")


async def discard(settings: Settings, task: str, user: str, yes: bool, as_json: bool) -> None:
    """Throw it away; asked first, where it is not in the default branch."""
    if not yes:
        async with Client(settings) as client:
            card = await tasks.task(client, task)
        if card["branch"] and card["work"] != "merged":
            what = f"{card['branch']} ({card['title']}) is not merged: its work is lost when it is discarded"
            screen.sure(what, yes, f"promptdock tasks discard {task}")
    result = await result_for_people(settings, "discard_task", "discard", user, as_json, task_id=task)
    if result is None:
        return
    screen.out(f"{result['branch']} is thrown away")
    screen.talk(f"the receipt stays: promptdock tasks show {task}")


async def changes(settings: Settings, task: str, text: str, user: str, as_json: bool) -> None:
    """Ask for changes."""
    result = await result_for_people(
        settings, "reopen_with_feedback", "changes", user, as_json, task_id=task, feedback=text
    )
    if result is None:
        return
    screen.out(f"{result['reopened']} is open again; its next worker goes on with its branch, and reads this")


async def answer(settings: Settings, task: str, text: str, user: str, as_json: bool) -> None:
    """Answer its question; without words, show it."""
    if not text.strip():
        await _asked(settings, task, as_json)
        return
    result = await result_for_people(
        settings, "answer_task", "answer", user, as_json, task_id=task, answer=text
    )
    if result is None:
        return
    screen.out(f"{result['answered']} has the answer to: {result['question']}")


async def _asked(settings: Settings, task: str, as_json: bool) -> None:
    async with Client(settings) as client:
        card = await tasks.task(client, task)
    if as_json:
        screen.document("question", id=task, status=card["status"], question=card["question"])
    elif card["question"]:
        show.question(task, card["question"])
    else:
        raise UsageError(
            f"the task {task} asks nothing", f"it is {card['status']}", f"promptdock tasks show {task}"
        )


async def pause(settings: Settings, task: str, hours: float, user: str, as_json: bool) -> None:
    """Let it rest."""
    result = await result_for_people(
        settings, "pause_task", "pause", user, as_json, task_id=task, hours=hours
    )
    if result is None:
        return
    screen.out(f"{result['paused']} is paused until {screen.moment(result['resumes'])}")
    screen.talk(f"sooner with: promptdock tasks resume {task}")


async def resume(settings: Settings, task: str, user: str, as_json: bool) -> None:
    """Let it go on."""
    result = await result_for_people(settings, "resume_task", "resume", user, as_json, task_id=task)
    if result is None:
        return
    screen.out(f"{result['resumed']} goes on")
    if result.get("warning"):
        screen.talk(str(result["warning"]))


async def review(settings: Settings, task: str, user: str, as_json: bool) -> None:
    """What it changed, by file."""
    result = await result_for_people(settings, "review_task", "review", user, as_json, task_id=task)
    if result is None:
        return
    with screen.paged():
        for file in result["files"]:
            screen.out(screen.strong(file["path"]), f"  +{file['added']} -{file['removed']}")
            diffs.show(file["diff"].rstrip())
    if result["merged"]:
        screen.talk(f"it is merged into {result['into']}; undo that with: promptdock tasks unmerge {task}")
    elif result["merges"]:
        screen.talk(f"{result['branch']} can be merged into {result['into']}: promptdock tasks merge {task}")
    else:
        screen.talk(
            f"it cannot be merged into {result['into']}: conflicts in {', '.join(result['conflicts'])}"
        )
