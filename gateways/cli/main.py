"""The commands and their options; what each does is in the module of its name, imported when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from gateways.cli import approvals, budget, hooks, permissions, steer, tools
from gateways.cli.run import me, run

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="A cluster of agents that build software together and answer to one person through one chat.",
)


def _group(told: str, **options: Any) -> typer.Typer:
    return typer.Typer(rich_markup_mode=None, help=told, **options)


repo = _group("Repositories that agents may read and work on.", no_args_is_help=True)
tasks = _group("Tasks and their states; works with the cluster down.", invoke_without_command=True)
dead = _group("Messages that could not be answered, and another try.", no_args_is_help=True)
key = _group("The model provider's key.", no_args_is_help=True)
config = _group("Settings.", no_args_is_help=True)
for name, group in (("repo", repo), ("tasks", tasks), ("dead", dead), ("key", key), ("config", config)):
    app.add_typer(group, name=name)
steer.add_to(tasks)
app.add_typer(tools.app, name="tools")
app.add_typer(approvals.app, name="approvals")
app.add_typer(budget.app, name="budget")
app.add_typer(permissions.app, name="permissions")
app.add_typer(hooks.app, name="hooks")

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
User = Annotated[str, typer.Option("--user", help="Who speaks.", default_factory=me)]
Session = Annotated[str | None, typer.Option("--session", help="The conversation; yours by default.")]


@app.command()
def up(
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Leave it running in the background.")
    ] = False,
    without: Annotated[
        list[str] | None, typer.Option(metavar="AGENT", help="Leave this agent to somebody else.")
    ] = None,
) -> NoReturn:
    """Run the cluster here, with an embedded Redis where REDIS_URL is unset. Ctrl-C ends it, drained."""
    from gateways.cli import up as work

    run(lambda settings: work.up(settings, without or [], detach))


@app.command()
def down() -> NoReturn:
    """End what `up` started here, after it has handed over."""
    from gateways.cli import up as work

    run(work.down)


@app.command()
def status(
    agent: Annotated[
        str | None, typer.Argument(help="Exit with 0 if this agent is present, else with 1.")
    ] = None,
    as_json: Json = False,
) -> NoReturn:
    """Who is here, what waits, and on what the cluster stands."""
    from gateways.cli import status as work

    run(lambda settings: work.status(settings, agent, as_json))


@app.command()
def chat(user: User, session: Session = None) -> NoReturn:
    """Talk with Chatter in the terminal."""
    from gateways.cli import chat as work

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
    from gateways.cli import ask as work

    asking = work.Asking(text, user, session, timeout, force, as_json)
    run(lambda settings: work.ask(settings, asking))


@app.command()
def tail(
    channels: Annotated[
        list[str] | None, typer.Argument(help="Channels or patterns, e.g. 'events:*'.")
    ] = None,
) -> NoReturn:
    """Print what passes on the channels, one JSON object a line."""
    from gateways.cli import wire as work

    run(lambda settings: work.tail(settings, channels or []))


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
    from gateways.cli import bridge as work
    from shared.visitor.bridge import Bridged

    run(lambda settings: work.serve(settings, Bridged(name, command, timeout, about)))


@app.command()
def logs(
    agent: Annotated[str | None, typer.Argument()] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what comes.")] = False,
    count: Annotated[int, typer.Option("--lines", "-n", min=0, help="How many lines.")] = 50,
    as_json: Json = False,
) -> NoReturn:
    """What the workers logged."""
    from gateways.cli import logs as work

    run(lambda settings: work.logs(settings, agent, follow, count, as_json))


@repo.command("add")
def repo_add(
    place: Annotated[str, typer.Argument(metavar="PATH|URL")],
    user: User,
    kind: Annotated[str, typer.Option(help="frontend, backend or both.")] = "both",
    name: Annotated[str | None, typer.Option(help="How it is called; the folder's name by default.")] = None,
    project: Annotated[str | None, typer.Option(help="The project that it belongs to.")] = None,
    push: Annotated[bool, typer.Option("--push", help="Tasks may push their branches.")] = False,
    as_json: Json = False,
) -> NoReturn:
    """Register a repository: a folder stays where it is, a URL is mirrored."""
    from gateways.cli import repo as work

    adding = work.Adding(place, kind, name, project, push)
    run(lambda settings: work.add(settings, adding, user, as_json))


@repo.command("list")
def repo_list(as_json: Json = False) -> NoReturn:
    """The registered repositories; works with the cluster down."""
    from gateways.cli import repo as work

    run(lambda settings: work.show(settings, as_json))


@tasks.callback()
def tasks_default(
    context: typer.Context,
    everything: Annotated[bool, typer.Option("--all", help="Archived ones too.")] = False,
    as_json: Json = False,
) -> None:
    """Without a command: the list."""
    if context.invoked_subcommand is None:
        tasks_list(everything, as_json)
    if everything or as_json:
        raise typer.BadParameter(f"write it after {context.invoked_subcommand}")


@tasks.command("list")
def tasks_list(
    everything: Annotated[bool, typer.Option("--all", help="Archived ones too.")] = False,
    as_json: Json = False,
) -> NoReturn:
    """The newest tasks first."""
    from gateways.cli import tasks as work

    run(lambda settings: work.show(settings, everything, as_json))


@tasks.command("show")
def tasks_show(task: Annotated[str, typer.Argument(metavar="ID")], as_json: Json = False) -> NoReturn:
    """One task: its history, and what was done as git and the commands recorded it."""
    from gateways.cli import tasks as work

    run(lambda settings: work.one(settings, task, as_json))


@tasks.command("diff")
def tasks_diff(task: Annotated[str, typer.Argument(metavar="ID")]) -> NoReturn:
    """What a task changed, by git."""
    from gateways.cli import tasks as work

    run(lambda settings: work.diff(settings, task))


@tasks.command("review")
def tasks_review(
    task: Annotated[str, typer.Argument(metavar="ID")], user: User, as_json: Json = False
) -> NoReturn:
    """What a task changed, file by file, and whether it can be merged as it is."""
    from gateways.cli import review as work

    run(lambda settings: work.review(settings, task, user, as_json))


@tasks.command("merge")
def tasks_merge(
    task: Annotated[str, typer.Argument(metavar="ID")], user: User, as_json: Json = False
) -> NoReturn:
    """Merge what a task made into the default branch."""
    from gateways.cli import review as work

    run(lambda settings: work.merge(settings, task, user, as_json))


@tasks.command("changes")
def tasks_changes(
    task: Annotated[str, typer.Argument(metavar="ID")],
    text: Annotated[str, typer.Argument(help="What is to be changed.")],
    user: User,
    as_json: Json = False,
) -> NoReturn:
    """Ask for changes: the task is open again, and its agent goes on with its branch."""
    from gateways.cli import review as work

    run(lambda settings: work.changes(settings, task, text, user, as_json))


@tasks.command("discard")
def tasks_discard(
    task: Annotated[str, typer.Argument(metavar="ID")], user: User, as_json: Json = False
) -> NoReturn:
    """Throw away what a task made: its branch and its worktree."""
    from gateways.cli import review as work

    run(lambda settings: work.discard(settings, task, user, as_json))


@tasks.command("answer")
def tasks_answer(
    task: Annotated[str, typer.Argument(metavar="ID")],
    text: Annotated[str, typer.Argument(help="What the task asked for.")],
    user: User,
    as_json: Json = False,
) -> NoReturn:
    """Answer the question of a task that waits for it."""
    from gateways.cli import review as work

    run(lambda settings: work.answer(settings, task, text, user, as_json))


@tasks.command("pause")
def tasks_pause(
    task: Annotated[str, typer.Argument(metavar="ID")],
    user: User,
    hours: Annotated[float, typer.Option("--hours", help="After which it goes on by itself.")] = 24.0,
    as_json: Json = False,
) -> NoReturn:
    """Let a task rest; what it made stays on its branch."""
    from gateways.cli import review as work

    run(lambda settings: work.pause(settings, task, hours, user, as_json))


@tasks.command("resume")
def tasks_resume(
    task: Annotated[str, typer.Argument(metavar="ID")], user: User, as_json: Json = False
) -> NoReturn:
    """Let a paused task go on."""
    from gateways.cli import review as work

    run(lambda settings: work.resume(settings, task, user, as_json))


@app.command()
def pending(as_json: Json = False) -> NoReturn:
    """Accepted messages that have not ended, by agent."""
    from gateways.cli import dead as work

    run(lambda settings: work.pending(settings, as_json))


@dead.command("list")
def dead_list(as_json: Json = False) -> NoReturn:
    """The dead letters, the newest first."""
    from gateways.cli import dead as work

    run(lambda settings: work.show(settings, as_json))


@dead.command("show")
def dead_show(letter: Annotated[str, typer.Argument(metavar="KEY|ID")], as_json: Json = False) -> NoReturn:
    """One dead letter, whole."""
    from gateways.cli import dead as work

    run(lambda settings: work.one(settings, letter, as_json))


@dead.command("replay")
def dead_replay(letter: Annotated[str, typer.Argument(metavar="KEY|ID")], as_json: Json = False) -> NoReturn:
    """Post it again, under a new id."""
    from gateways.cli import dead as work

    run(lambda settings: work.replay(settings, letter, as_json))


@app.command()
def trust(folder: Annotated[Path, typer.Argument(help="The current one by default.")] = Path()) -> NoReturn:
    """Let a folder's .env and .promptdock count."""
    from gateways.cli import config as work

    work.trust(folder)


@app.command()
def doctor(as_json: Json = False) -> NoReturn:
    """Look for what is wrong, with a remedy beside each finding; works with nothing running."""
    from gateways.cli import doctor as work

    run(lambda settings: work.doctor(settings, settings.home / ".env", as_json))


@key.command("set")
def key_set() -> NoReturn:
    """Ask for a key (hidden), check it, write it to the data folder's .env."""
    from gateways.cli import key as work

    run(lambda settings: work.put(settings, settings.home / ".env"))


@key.command("check")
def key_check(as_json: Json = False) -> NoReturn:
    """Ask the provider whether it takes the key."""
    from gateways.cli import key as work

    run(lambda settings: work.check(settings, as_json))


@config.command("home")
def config_home() -> NoReturn:
    """Print the data folder of this folder."""
    from gateways.cli import config as work

    run(work.home)


@config.command("show")
def config_show(as_json: Json = False) -> NoReturn:
    """The settings in force and where each comes from, without secrets."""
    from gateways.cli import config as work

    run(lambda settings: work.show(settings, as_json))


def main() -> None:
    """The console script."""
    app(prog_name="promptdock")
