"""A task's work, checked out beside the repository so that a person can look at it and run it."""

from __future__ import annotations

import contextlib
import shlex
import tempfile
from pathlib import Path

from shared.client.client import Client
from shared.client.views.tasks import tasks
from shared.errors import PromptDockError, ToolError, UsageError
from shared.store.records import Task


async def begin(client: Client, name: str, folder: Path | None) -> Path:
    """Check out the newest commit of the task's branch, without the branch itself: its agent may go on with it."""
    task = await tasks.find(client, name)
    if (there := _noted(client, task)) is not None:
        raise UsageError(
            f"{task.slug} is checked out already", str(there), f"promptdock tasks try {task.slug} --remove"
        )
    if not task.branch:
        raise UsageError(f"the task {task.slug} has no branch", f"it is {task.status}", "")
    for git in await tasks.gits(client, task):
        if commit := await git.commit_of(f"refs/heads/{task.branch}"):
            break
    else:
        raise UsageError(
            f"the branch {task.branch} is not here", "it was made on another machine, or removed", ""
        )
    place = _place(task, folder)
    try:
        await git.worktree_detach(place, commit)
    except ToolError as error:
        raise PromptDockError(f"{task.slug} cannot be checked out", str(error)) from error
    note = _note(client, task)
    note.parent.mkdir(parents=True, exist_ok=True)
    note.write_text(str(place))
    return place


def _place(task: Task, folder: Path | None) -> Path:
    """Where it is checked out: nothing is there yet."""
    place = Path(folder or tempfile.mkdtemp(prefix=f"promptdock-{task.slug}-")).absolute()
    try:
        if place.exists():
            place.rmdir()  # where it is empty
    except OSError:
        raise UsageError(
            f"{folder} cannot be used", "it is there already, and no empty folder", "name another one"
        ) from None
    return place


async def end(client: Client, name: str) -> Path:
    """Remove the checkout; refused where there are changes in it that are not committed."""
    task = await tasks.find(client, name)
    place = _noted(client, task)
    if place is None:
        raise UsageError(f"{task.slug} is not checked out", "", f"promptdock tasks try {task.slug}")
    why = "its repository is not here"
    for git in await tasks.gits(client, task):
        try:
            await git.worktree_remove(place)
        except ToolError as error:
            why = error.why or str(error)
            continue
        with contextlib.suppress(OSError):
            _note(client, task).unlink()
        return place
    there = f"git -C {shlex.quote(str(place))}"
    raise PromptDockError(
        f"{place} is not removed",
        why,
        f"{there} stash -u keeps them; {there} reset --hard && {there} clean -fd drops them",
    )


def _note(client: Client, task: Task) -> Path:
    return client.settings.home / "tries" / task.slug


def _noted(client: Client, task: Task) -> Path | None:
    """Where it is checked out; None where it is not, also where the folder was removed by hand."""
    try:
        place = Path(_note(client, task).read_text())
    except OSError:
        return None
    return place if place.is_dir() else None
