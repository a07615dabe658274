"""The root of the command line: its options, and the table of its commands, whose modules are imported late."""

from __future__ import annotations

import os
import sys
from typing import Annotated, NoReturn

import typer
from typer.core import TyperGroup
from typer.main import get_command

from gateways.cli import ending, screen
from gateways.cli.lazy import Entry, LazyGroup
from gateways.cli.mistyped import worded
from gateways.cli.options import finish

NAME = "promptdock"

# In the order of the help; a line is the first one of its command, which a test compares.
_TABLE = {
    "up": Entry(
        "cluster.app",
        "Run the cluster here, with an embedded Redis where REDIS_URL is unset. Ctrl-C ends it, drained.",
    ),
    "restart": Entry(
        "cluster.app", "Start the workers anew, one after the other; each hands over what it does."
    ),
    "down": Entry("cluster.app", "End what `up` started here, after it has handed over."),
    "status": Entry("cluster.app", "Who is here, what waits, and on what the cluster stands."),
    "chat": Entry("messages.app", "Talk with Chatter in the terminal."),
    "ask": Entry("messages.app", "Ask one thing: progress goes to stderr, the answer to stdout."),
    "tail": Entry(
        "messages.app",
        "Print what passes on the channels: in words on a terminal, else one JSON object a line.",
    ),
    "publish": Entry(
        "messages.app", "Send one message; what has an inbox is stored before it is reported as sent."
    ),
    "bridge": Entry(
        "cluster.app", "Make any command line an agent: it answers questions and tasks, one at a time."
    ),
    "logs": Entry("cluster.app", "What the workers logged."),
    "inbox": Entry(
        "messages.app", "All that waits for you, in all conversations, each with the command that answers it."
    ),
    "pending": Entry("messages.app", "Accepted messages that have not ended, by agent."),
    "trust": Entry("cluster.app", "Let a folder's .env, .promptdock and mcp.json count."),
    "trace": Entry(
        "messages.app",
        "A turn after the fact: its steps and those of the agents that it asked, with time, tokens and cost.",
    ),
    "models": Entry("cluster.app", "The models that the providers have, and which settings choose one."),
    "doctor": Entry(
        "cluster.app",
        "Look for what is wrong, with a remedy beside each finding; works with nothing running.",
    ),
    "repo": Entry("repo", "Repositories that agents may read and work on.", noun=True),
    "tasks": Entry("tasks.app", "Tasks and their states; works with the cluster down.", noun=True),
    "dead": Entry("dead", "Messages that could not be answered, and another try.", noun=True),
    "web": Entry("web", "The page: where it is, and who may sign in.", noun=True),
    "key": Entry("key", "The model provider's key.", noun=True),
    "config": Entry("config", "Settings.", noun=True),
    "tools": Entry("tools", "The agents' tools, and calling one by hand.", noun=True),
    "mcp": Entry("mcp", "MCP servers, whose tools agents use.", noun=True),
    "approvals": Entry("approvals", "Calls that wait for permission.", noun=True),
    "budget": Entry("budget", "What may be spent, in dollars; none takes a bound away.", noun=True),
    "permissions": Entry("permissions", "What agents may do.", noun=True),
    "hooks": Entry("hooks", "What runs by itself.", noun=True),
    "webhook": Entry("webhook", "Programs that are told by HTTP of what happens.", noun=True),
    "notify": Entry("notify", "Notifications of people about what needs them.", noun=True),
    "agents": Entry("agents", "The agents that are known.", noun=True),
    "project": Entry("project", "Projects, and on which one a conversation works.", noun=True),
    "sessions": Entry(
        "sessions", "Your conversations: find, name, fork, clear, save them, and go on from them.", noun=True
    ),
    "thread": Entry(
        "thread", "Threads of channels: which there are, what they do, and ending one.", noun=True
    ),
    "notes": Entry("notes", "Notes of a project, which its agents read as well.", noun=True),
    "memory": Entry("memory", "What is remembered of you, and for an answer.", noun=True),
}

app = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="A cluster of agents that build software together and answer to one person through one chat.",
)


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


def commands() -> TyperGroup:
    """All of them, as they are run."""
    root = get_command(app)
    assert isinstance(root, LazyGroup)
    for command in (root, *root.commands.values()):
        finish(command)
    root.add(_TABLE)
    return root


def main() -> int:
    """The console script: does what was typed; its exit code."""
    # In a locale that is not UTF-8 Python has not decoded them so.
    words = [os.fsencode(word).decode("utf-8", "surrogateescape") for word in sys.argv[1:]]
    screen.begin(words)
    return ending.code(lambda: _typed(words))


def _typed(words: list[str]) -> int:
    try:
        return int(commands().main(words, prog_name=NAME, standalone_mode=False) or 0)
    except SystemExit as leaving:
        return int(leaving.code or 0)
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        if context is not None and not screen.manner.json:
            if type(error).__name__ == "NoArgsIsHelpError":
                print(context.get_help(), file=sys.stderr)
                return 2
            print(context.get_usage(), file=sys.stderr)
        raise worded(error) from None
