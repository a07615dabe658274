"""What every command takes, and types of arguments that several take, with what their shell completion offers."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from gateways.cli import complete, screen
from gateways.cli.run import me

if TYPE_CHECKING:
    from typer._click.core import Command, Parameter

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
User = Annotated[
    str, typer.Option("--user", help="Who speaks or decides; you by default.", default_factory=me)
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]
Session = Annotated[
    str | None,
    typer.Option("--session", help="The conversation; yours by default.", autocompletion=complete.sessions),
]
Task = Annotated[
    str, typer.Argument(metavar="ID", help="Its id, or a part of it.", autocompletion=complete.tasks)
]
Agent = Annotated[str | None, typer.Argument(help="Only of this agent.", autocompletion=complete.agents)]
Letter = Annotated[
    str, typer.Argument(metavar="KEY|ID", help="A key or id, or a part of it.", autocompletion=complete.dead)
]
Project = Annotated[str | None, typer.Option(help="Only this project.", autocompletion=complete.projects)]


class Group(TyperGroup):
    """Commands of one noun; without a command it lists what there is."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """An option in place of a command is one of the list."""
        usual = next((name for name in ("list", "show") if name in self.commands), None)
        helps = set(ctx.help_option_names)
        ours = helps.union(*(option.opts for option in self.params))
        first = next((word for word in args if word not in ours), "-")
        completing = ctx.resilient_parsing and not args
        if usual and first.startswith("-") and not helps & set(args) and not completing:
            args = [usual, *args]
        return super().parse_args(ctx, args)


def group() -> typer.Typer:
    """The commands of a noun; its line in the help stands where the nouns are listed."""
    return typer.Typer(rich_markup_mode=None, cls=Group, no_args_is_help=True)


def plain() -> typer.Typer:
    """Commands that stand below no noun."""
    return typer.Typer(rich_markup_mode=None)


def finish(command: Command) -> None:
    """Give a command the options that all take; no line of help is cut."""
    command.params.extend(_shared())
    command.short_help = (command.help or "").partition("\n\n")[0].replace("\n", " ")


@cache
def _shared() -> list[Parameter]:
    return get_command(_carrier).params


_carrier = typer.Typer(rich_markup_mode=None, add_completion=False)


def _no_colour(value: bool) -> None:
    screen.manner.colour = screen.manner.colour and not value


def _no_pager(value: bool) -> None:
    screen.manner.pager = screen.manner.pager and not value


def _whole(value: bool) -> None:
    screen.manner.whole = screen.manner.whole or value


def _debug(value: bool) -> None:
    screen.manner.debug = screen.manner.debug or value


@_carrier.command()
def _take(
    no_colour: Annotated[
        bool,
        typer.Option(
            "--no-color",
            help="No colours; NO_COLOR says so, too.",
            callback=_no_colour,
            is_eager=True,
            expose_value=False,
        ),
    ] = False,
    no_pager: Annotated[
        bool,
        typer.Option(
            "--no-pager",
            help="Print long text in one go; else $PAGER shows it.",
            callback=_no_pager,
            is_eager=True,
            expose_value=False,
        ),
    ] = False,
    whole: Annotated[
        bool,
        typer.Option(
            "--verbose",
            "-v",
            help="Cut nothing in a table: long cells go on in more lines.",
            callback=_whole,
            is_eager=True,
            expose_value=False,
        ),
    ] = False,
    debug: Annotated[
        bool,
        typer.Option(
            "--debug",
            help="Show the traceback of an error that nobody foresaw.",
            callback=_debug,
            is_eager=True,
            expose_value=False,
        ),
    ] = False,
) -> None:
    """Carries the options; never run."""
