"""The commands and their options; what each does is in the module of its name, imported when it runs."""

from __future__ import annotations

import os
import sys
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

import typer
from typer.core import TyperGroup

from gateways.cli import complete, ending, screen
from gateways.cli.options import (
    Agent,
    Json,
    Later,
    Letter,
    Project,
    Session,
    Task,
    User,
    Yes,
    finished,
    group,
)
from gateways.cli.run import me, run
from shared.errors import UsageError

if TYPE_CHECKING:
    from shared.settings import Settings

NAME = "promptdock"
Level = Literal["debug", "info", "warning", "error"]

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="A cluster of agents that build software together and answer to one person through one chat.",
)
repo, tasks, dead, key, config = group(), group(), group(), group(), group()


def _version(value: bool) -> None:
    if value:
        from shared.client.local.release import release

        print(f"PromptDock {release()}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", "-V", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """What stands before every command; its help is that of `app`."""


@app.command("help", context_settings={"ignore_unknown_options": True})
def help_(
    words: Annotated[list[str] | None, typer.Argument(metavar="COMMAND", help="Which one.")] = None,
) -> NoReturn:
    """Show what a command does and takes, or list all commands."""
    raise typer.Exit(commands().main([*(words or []), "--help"], prog_name=NAME, standalone_mode=False))


@app.command()
def up(
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Leave it running in the background.")
    ] = False,
    without: Annotated[
        list[str] | None,
        typer.Option(
            metavar="AGENT", help="Leave this agent to somebody else.", autocompletion=complete.agents
        ),
    ] = None,
    added: Annotated[
        list[str] | None, typer.Option("--with", metavar="AGENT", help="Start this agent too.")
    ] = None,
    scale: Annotated[
        list[str] | None, typer.Option(metavar="AGENT=N", help="Run so many workers of this agent.")
    ] = None,
) -> NoReturn:
    """Run the cluster here, with an embedded Redis where REDIS_URL is unset. Ctrl-C ends it, drained."""
    from gateways.cli.commands.cluster import up as work

    run(lambda settings: work.up(settings, work.change(without, added, scale), detach), always=True)


@app.command()
def restart(
    agent: Annotated[
        str | None, typer.Argument(help="One agent; all of them by default.", autocompletion=complete.agents)
    ] = None,
) -> NoReturn:
    """Start the workers anew, one after the other; each hands over what it does."""
    from gateways.cli.commands.cluster import restart as work

    run(lambda settings: work.restart(settings, agent))


@app.command()
def down() -> NoReturn:
    """End what `up` started here, after it has handed over."""
    from gateways.cli.commands.cluster import up as work

    run(work.down, lenient="list")  # of the settings it needs the data folder alone


@app.command()
def status(
    agent: Annotated[
        str | None,
        typer.Argument(
            help="Exit with 0 if this agent is present, else with 1.", autocompletion=complete.agents
        ),
    ] = None,
    as_json: Json = False,
) -> NoReturn:
    """Who is here, what waits, and on what the cluster stands."""
    from gateways.cli.commands.cluster import status as work

    run(lambda settings: work.status(settings, agent, as_json, me()), lenient="tell")


@app.command()
def chat(user: User, session: Session = None) -> NoReturn:
    """Talk with Chatter in the terminal."""
    from gateways.cli.commands import chat as work

    work.chat(user, session)


@app.command()
def ask(
    text: Annotated[str, typer.Argument(help="What to ask; - reads it from stdin.")],
    user: User,
    session: Session = None,
    timeout: Annotated[
        float, typer.Option(min=0, help="Seconds to wait for the answer; 0 only sends.")
    ] = 900.0,
    force: Annotated[
        bool, typer.Option("--force", help="Override the checks that come before a task is assigned.")
    ] = False,
    as_json: Json = False,
) -> NoReturn:
    """Ask one thing: progress goes to stderr, the answer to stdout."""
    from gateways.cli.commands import ask as work

    asking = work.Asking(text, user, session, timeout, force, as_json)
    run(lambda settings: work.ask(settings, asking))


@app.command()
def tail(
    channels: Annotated[
        list[str] | None, typer.Argument(help="Channels or patterns, e.g. 'events:*'.")
    ] = None,
    as_json: Json = False,
) -> NoReturn:
    """Print what passes on the channels: in words on a terminal, else one JSON object a line."""
    from gateways.cli import wire as work

    run(lambda settings: work.tail(settings, channels or [], as_json))


@app.command()
def publish(
    channel: Annotated[str, typer.Argument(help="human-input, agent:NAME, or any other channel.")],
    message: Annotated[str, typer.Argument(metavar="JSON", help="One JSON object; - reads it from stdin.")],
    as_json: Json = False,
) -> NoReturn:
    """Send one message; what has an inbox is stored before it is reported as sent."""
    from gateways.cli import wire as work

    run(lambda settings: work.publish(settings, channel, message, as_json))


@app.command()
def bridge(
    name: Annotated[str, typer.Option("--name", help="What the agent is called.")],
    command: Annotated[
        str, typer.Option("--exec", help="A command for a shell: stdin is the request, stdout the answer.")
    ],
    timeout: Annotated[float, typer.Option(min=1, help="Seconds that one request may take.")] = 600.0,
    about: Annotated[str, typer.Option(help="What the others are told about it.")] = "",
) -> NoReturn:
    """Make any command line an agent: it answers questions and tasks, one at a time."""
    from gateways.cli.commands.cluster import bridge as work
    from shared.client.bridge import Bridged

    run(lambda settings: work.serve(settings, Bridged(name, command, timeout, about)))


@app.command()
def logs(
    agent: Agent = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what comes.")] = False,
    count: Annotated[int, typer.Option("--lines", "-n", min=0, help="How many lines.")] = 50,
    since: Annotated[str | None, typer.Option(help="Not before: 10m, 2h or 3d ago, or 14:30.")] = None,
    level: Annotated[Level, typer.Option(help="Of this level and above.")] = "debug",
    as_json: Json = False,
) -> NoReturn:
    """What the workers logged."""
    from gateways.cli.commands.cluster import logs as work
    from shared.client.local.logs import Wanted
    from shared.client.text.times import back

    async def show(settings: Settings) -> None:
        wanted = Wanted(agent, count, level, back(since) if since else None)
        await work.logs(settings, wanted, follow, as_json)

    run(show, lenient="tell")


@repo.command("add")
def repo_add(
    place: Annotated[str, typer.Argument(metavar="PATH|URL")],
    user: User,
    kind: Annotated[str | None, typer.Option(help="frontend, backend or both; both for a new one.")] = None,
    name: Annotated[str | None, typer.Option(help="How it is called; the folder's name by default.")] = None,
    project: Annotated[
        str | None,
        typer.Option(
            help="The project that it belongs to; the active one.", autocompletion=complete.projects
        ),
    ] = None,
    push: Annotated[
        bool | None, typer.Option("--push/--no-push", help="Whether tasks may push their branches.")
    ] = None,
    as_json: Json = False,
) -> NoReturn:
    """Register a repository: a folder stays where it is, a URL is mirrored."""
    from gateways.cli.commands import repo as work

    adding = work.Adding(place, kind, name, project, push)
    run(lambda settings: work.add(settings, adding, user, as_json))


@repo.command("remove")
def repo_remove(
    name: Annotated[str, typer.Argument(metavar="NAME|PATH|URL", autocompletion=complete.repos)],
    user: User,
    project: Annotated[
        str | None,
        typer.Option(
            help="The project that it belongs to; the active one.", autocompletion=complete.projects
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Also with commits that are nowhere else.")] = False,
    as_json: Json = False,
) -> NoReturn:
    """Take a repository out of its project: a folder stays as it is, a mirror goes."""
    from gateways.cli.commands import repo as work

    run(lambda settings: work.remove(settings, name, project, force, user, as_json))


@repo.command("list")
def repo_list(as_json: Json = False) -> NoReturn:
    """The registered repositories; works with the cluster down."""
    from gateways.cli.commands import repo as work

    run(lambda settings: work.show(settings, as_json))


@app.command("inbox")
def inbox_show(user: User, as_json: Json = False) -> NoReturn:
    """All that waits for you, in all conversations, each with the command that answers it."""
    from gateways.cli.commands import inbox as work

    run(lambda settings: work.show(settings, user, as_json))


@tasks.command("list")
def tasks_list(
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
    from shared.client.views.tasks import Filter

    wanted = Filter(tuple(statuses or ()), project, user if mine else None, everything, limit)
    run(lambda settings: work.show(settings, wanted, as_json))


@tasks.command("show")
def tasks_show(task: Task, as_json: Json = False) -> NoReturn:
    """One task: its history, and what was done as git and the commands recorded it."""
    from gateways.cli.commands.tasks import show as work

    run(lambda settings: work.one(settings, task, as_json))


@tasks.command("watch")
def tasks_watch(task: Task, as_json: Json = False) -> NoReturn:
    """Follow a task to its end: each call of a tool, what its agent says, its checks and its receipt."""
    from gateways.cli.commands.tasks import watch as work

    run(lambda settings: work.watch(settings, task, as_json))


@tasks.command("diff")
def tasks_diff(task: Task) -> NoReturn:
    """What a task changed, by git."""
    from gateways.cli.commands.tasks import show as work

    run(lambda settings: work.diff(settings, task))


@tasks.command("review")
def tasks_review(task: Task, user: User, as_json: Json = False) -> NoReturn:
    """What a task changed, file by file, and whether it can be merged as it is."""
    from gateways.cli.commands.tasks import review as work

    run(lambda settings: work.review(settings, task, user, as_json))


@tasks.command("merge")
def tasks_merge(task: Task, user: User, as_json: Json = False) -> NoReturn:
    """Merge what a task made into the default branch."""
    from gateways.cli.commands.tasks import review as work

    run(lambda settings: work.merge(settings, task, user, as_json))


@tasks.command("changes")
def tasks_changes(
    task: Task,
    text: Annotated[str, typer.Argument(help="What is to be changed.")],
    user: User,
    as_json: Json = False,
) -> NoReturn:
    """Ask for changes: the task is open again, and its agent goes on with its branch."""
    from gateways.cli.commands.tasks import review as work

    run(lambda settings: work.changes(settings, task, text, user, as_json))


@tasks.command("discard")
def tasks_discard(task: Task, user: User, yes: Yes = False, as_json: Json = False) -> NoReturn:
    """Throw away what a task made: its branch and its worktree."""
    from gateways.cli.commands.tasks import review as work

    run(lambda settings: work.discard(settings, task, user, yes, as_json))


@tasks.command("answer")
def tasks_answer(
    task: Task,
    user: User,
    text: Annotated[str, typer.Argument(help="Your answer, or the number of an option.")] = "",
    as_json: Json = False,
) -> NoReturn:
    """Answer the question of a task that waits for it; without an answer, show the question."""
    from gateways.cli.commands.tasks import review as work

    run(lambda settings: work.answer(settings, task, text, user, as_json))


@tasks.command("pause")
def tasks_pause(
    task: Task,
    user: User,
    hours: Annotated[float, typer.Option("--hours", help="After which it goes on by itself.")] = 24.0,
    as_json: Json = False,
) -> NoReturn:
    """Let a task rest; what it made stays on its branch."""
    from gateways.cli.commands.tasks import review as work

    run(lambda settings: work.pause(settings, task, hours, user, as_json))


@tasks.command("resume")
def tasks_resume(task: Task, user: User, as_json: Json = False) -> NoReturn:
    """Let a paused task go on."""
    from gateways.cli.commands.tasks import review as work

    run(lambda settings: work.resume(settings, task, user, as_json))


@app.command()
def pending(as_json: Json = False) -> NoReturn:
    """Accepted messages that have not ended, by agent."""
    from gateways.cli.commands import dead as work

    run(lambda settings: work.pending(settings, as_json))


@dead.command("list")
def dead_list(as_json: Json = False) -> NoReturn:
    """The dead letters, the newest first."""
    from gateways.cli.commands import dead as work

    run(lambda settings: work.show(settings, as_json))


@dead.command("show")
def dead_show(letter: Letter, as_json: Json = False) -> NoReturn:
    """One dead letter, whole."""
    from gateways.cli.commands import dead as work

    run(lambda settings: work.one(settings, letter, as_json))


@dead.command("replay")
def dead_replay(letter: Letter, as_json: Json = False) -> NoReturn:
    """Post it again, under a new id."""
    from gateways.cli.commands import dead as work

    run(lambda settings: work.replay(settings, letter, as_json))


@dead.command("drop")
def dead_drop(
    letter: Annotated[str | None, typer.Argument(metavar="KEY|ID", autocompletion=complete.dead)] = None,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    as_json: Json = False,
) -> NoReturn:
    """Throw a dead letter away."""
    from gateways.cli.commands import dead as work

    run(lambda settings: work.drop(settings, letter, everything, as_json))


@app.command()
def trust(folder: Annotated[Path, typer.Argument(help="The current one by default.")] = Path()) -> NoReturn:
    """Let a folder's .env and .promptdock count."""
    from gateways.cli.commands.cluster import config as work

    work.trust(folder)


@app.command()
def trace(
    user: User,
    turn: Annotated[
        str, typer.Argument(metavar="ID", help="A message, a turn or a task; your last turn by default.")
    ] = "",
    as_json: Json = False,
) -> NoReturn:
    """A turn after the fact: its steps and those of the agents that it asked, with time, tokens and cost."""
    from gateways.cli.commands import trace as work

    run(lambda settings: work.show(settings, turn, user, as_json))


@app.command()
def models(as_json: Json = False) -> NoReturn:
    """The models that the provider has, and which settings choose one."""
    from gateways.cli.commands.cluster import models as work

    run(lambda settings: work.show(settings, as_json))


@app.command()
def doctor(as_json: Json = False) -> NoReturn:
    """Look for what is wrong, with a remedy beside each finding; works with nothing running."""
    from gateways.cli.commands.cluster import doctor as work

    run(lambda settings: work.doctor(settings, settings.home / ".env", as_json), always=True, lenient="list")


@key.command("set")
def key_set() -> NoReturn:
    """Ask for a key (hidden), check it, write it to the data folder's .env."""
    from gateways.cli.commands.cluster import key as work

    run(lambda settings: work.put(settings, settings.home / ".env"))


@key.command("check")
def key_check(as_json: Json = False) -> NoReturn:
    """Ask the provider whether it takes the key."""
    from gateways.cli.commands.cluster import key as work

    run(lambda settings: work.check(settings, as_json))


@config.command("home")
def config_home(as_json: Json = False) -> NoReturn:
    """Print the data folder of this folder."""
    from gateways.cli.commands.cluster import config as work

    run(lambda settings: work.home(settings, as_json), lenient="list")


@config.command("show")
def config_show(as_json: Json = False) -> NoReturn:
    """The settings in force and where each comes from, without secrets."""
    from gateways.cli.commands.cluster import config as work

    run(lambda settings: work.show(settings, as_json), lenient="tell")


def commands() -> TyperGroup:
    """All of them, as they are run."""
    here = (Later(name, told, load) for name, told, load in _HERE)
    return finished(app, (*here, *(Later(name, told, partial(_module, name)) for name, told in _ELSEWHERE)))


def _module(name: str) -> typer.Typer:
    found = import_module(f"gateways.cli.commands.{name}").app
    assert isinstance(found, typer.Typer)
    return found


@cache
def _tasks() -> typer.Typer:
    from gateways.cli.commands.tasks import after, steer

    steer.add_to(tasks)
    after.add_to(tasks)
    return tasks


# The nouns and their lines in the help, in its order; first those whose commands stand above.
_HERE = (
    ("repo", "Repositories that agents may read and work on.", lambda: repo),
    ("tasks", "Tasks and their states; works with the cluster down.", _tasks),
    ("dead", "Messages that could not be answered, and another try.", lambda: dead),
    ("key", "The model provider's key.", lambda: key),
    ("config", "Settings.", lambda: config),
)
_ELSEWHERE = (
    ("tools", "The agents' tools, and calling one by hand."),
    ("approvals", "Calls that wait for permission."),
    ("budget", "What may be spent, in dollars; none takes a bound away."),
    ("permissions", "What agents may do."),
    ("hooks", "What runs by itself."),
    ("agents", "The agents that are known."),
    ("project", "Projects, and on which one a conversation works."),
    ("notes", "Notes of a project, which its agents read as well."),
)


def main() -> int:
    """The console script: does what was typed; its exit code."""
    # In a locale that is not UTF-8 Python has not decoded them so.
    words = [os.fsencode(word).decode("utf-8", "surrogateescape") for word in sys.argv[1:]]
    screen.begin(words)
    return ending.code(lambda: _typed(words))


def _typed(words: list[str]) -> int:
    alone = not screen.manner.json  # then it tells by itself what was typed wrongly
    try:
        return int(commands().main(words, prog_name=NAME, standalone_mode=alone) or 0)
    except SystemExit as leaving:
        return int(leaving.code or 0)
    except typer.TyperException as error:
        raise UsageError(error.format_message(), "", "promptdock --help lists the commands") from None
