"""Tasks; what each command does is in a module beside this one, imported when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NoReturn

import typer

from gateways.cli import complete
from gateways.cli.options import Json, Project, Task, User, Yes, group
from gateways.cli.run import me, run

app = group()
Decider = Annotated[str, typer.Option("--user", help="Who decides.", default_factory=me)]


@app.command("list")
def list_(
    user: User,
    statuses: Annotated[
        list[str] | None,
        typer.Option("--status", metavar="STATE", help="Only of this state; may be given again."),
    ] = None,
    project: Project = None,
    mine: Annotated[bool, typer.Option("--mine", help="Only those that were made for you.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many.")] = 50,
    everything: Annotated[bool, typer.Option("--all", help="Archived ones too.")] = False,
    as_json: Json = False,
) -> NoReturn:
    """The newest tasks first."""
    from gateways.cli.commands.tasks import show as work
    from shared.client.views.tasks.tasks import Filter

    wanted = Filter(tuple(statuses or ()), project, user if mine else None, everything, limit)
    run(lambda settings: work.show(settings, wanted, as_json))


@app.command()
def show(task: Task, as_json: Json = False) -> NoReturn:
    """One task: its history, and what was done as git and the commands recorded it."""
    from gateways.cli.commands.tasks import show as work

    run(lambda settings: work.one(settings, task, as_json))


@app.command()
def watch(task: Task, as_json: Json = False) -> NoReturn:
    """Follow a task to its end: each call of a tool, what its agent says, its checks and its receipt."""
    from gateways.cli.commands.tasks import watch as work

    run(lambda settings: work.watch(settings, task, as_json))


@app.command()
def diff(task: Task) -> NoReturn:
    """What a task changed, by git."""
    from gateways.cli.commands.tasks import show as work

    run(lambda settings: work.diff(settings, task))


@app.command()
def review(task: Task, user: User, as_json: Json = False) -> NoReturn:
    """What a task changed, file by file, and whether it can be merged as it is."""
    from gateways.cli.commands.tasks import review as work

    run(lambda settings: work.review(settings, task, user, as_json))


@app.command()
def merge(task: Task, user: User, as_json: Json = False) -> NoReturn:
    """Merge what a task made into the default branch."""
    from gateways.cli.commands.tasks import review as work

    run(lambda settings: work.merge(settings, task, user, as_json))


@app.command()
def changes(
    task: Task,
    text: Annotated[str, typer.Argument(help="What is to be changed.")],
    user: User,
    as_json: Json = False,
) -> NoReturn:
    """Ask for changes: the task is open again, and its agent goes on with its branch."""
    from gateways.cli.commands.tasks import review as work

    run(lambda settings: work.changes(settings, task, text, user, as_json))


@app.command()
def discard(task: Task, user: User, yes: Yes = False, as_json: Json = False) -> NoReturn:
    """Throw away what a task made: its branch and its worktree."""
    from gateways.cli.commands.tasks import review as work

    run(lambda settings: work.discard(settings, task, user, yes, as_json))


@app.command()
def answer(
    task: Task,
    user: User,
    text: Annotated[str, typer.Argument(help="Your answer, or the number of an option.")] = "",
    as_json: Json = False,
) -> NoReturn:
    """Answer the question of a task that waits for it; without an answer, show the question."""
    from gateways.cli.commands.tasks import review as work

    run(lambda settings: work.answer(settings, task, text, user, as_json))


@app.command()
def pause(
    task: Task,
    user: User,
    hours: Annotated[float, typer.Option("--hours", help="After which it goes on by itself.")] = 24.0,
    as_json: Json = False,
) -> NoReturn:
    """Let a task rest; what it made stays on its branch."""
    from gateways.cli.commands.tasks import review as work

    run(lambda settings: work.pause(settings, task, hours, user, as_json))


@app.command()
def resume(task: Task, user: User, as_json: Json = False) -> NoReturn:
    """Let a paused task go on."""
    from gateways.cli.commands.tasks import review as work

    run(lambda settings: work.resume(settings, task, user, as_json))


@app.command()
def stop(task: Task, user: Decider, as_json: Json = False) -> NoReturn:
    """Stop a task for good; what it made stays on its branch."""
    from gateways.cli.commands.tasks import steer as work

    run(lambda settings: work.stop(settings, task, user, as_json))


@app.command()
def restart(
    task: Task,
    user: Decider,
    repo: Annotated[
        str | None,
        typer.Option(help="Where it is to be done, if that was not clear.", autocompletion=complete.repos),
    ] = None,
    as_json: Json = False,
) -> NoReturn:
    """Begin a task again that failed, is blocked, or is done."""
    from gateways.cli.commands.tasks import steer as work

    run(lambda settings: work.restart(settings, task, repo, user, as_json))


@app.command()
def skip(task: Task, user: Decider, as_json: Json = False) -> NoReturn:
    """Count a failed or blocked task as done, so that what waits for it goes on."""
    from gateways.cli.commands.tasks import steer as work

    run(lambda settings: work.skip(settings, task, user, as_json))


@app.command()
def approve(task: Task, user: Decider, as_json: Json = False) -> NoReturn:
    """Approve what waits for you: a plan, so that its tasks begin; or a reviewed task, without merging it."""
    from gateways.cli.commands.tasks import steer as work

    run(lambda settings: work.approve(settings, task, user, as_json))


@app.command()
def reject(
    task: Task,
    feedback: Annotated[str, typer.Argument(help="What is to be different; its planner or worker reads it.")],
    user: Decider,
    as_json: Json = False,
) -> NoReturn:
    """Send a plan back to its planner, or a reviewed task back to its worker."""
    from gateways.cli.commands.tasks import steer as work

    run(lambda settings: work.reject(settings, task, feedback, user, as_json))


@app.command("try")
def try_(
    task: Task,
    folder: Annotated[Path | None, typer.Argument(help="A new folder; a temporary one by default.")] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Take the checkout away again.")] = False,
    as_json: Json = False,
) -> NoReturn:
    """Check out what a task made in a folder of its own, to look at it and to run it."""
    from gateways.cli.commands.tasks import after as work

    run(lambda settings: work.try_(settings, task, folder, remove, as_json))


@app.command()
def unmerge(task: Task, user: Decider, as_json: Json = False) -> NoReturn:
    """Undo the merge of a task; its branch stays."""
    from gateways.cli.commands.tasks import after as work

    run(lambda settings: work.unmerge(settings, task, user, as_json))


@app.command()
def prune(
    user: Decider,
    days: Annotated[
        float | None, typer.Option(min=0, help="Also tasks that ended more than so many days ago.")
    ] = None,
    project: Annotated[str | None, typer.Option(help="Of this project alone.")] = None,
    yes: Yes = False,
    as_json: Json = False,
) -> NoReturn:
    """Clear away branches and worktrees of merged and discarded tasks; says first what goes."""
    from gateways.cli.commands.tasks import after as work

    run(lambda settings: work.prune(settings, user, days, project, yes, as_json))
