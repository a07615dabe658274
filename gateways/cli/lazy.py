"""Commands whose modules are imported when they are typed: until then a command is a name and a line of help."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from gateways.cli.options import finish

if TYPE_CHECKING:
    from typer._click.core import Command, Context


@dataclass(frozen=True)
class Entry:
    """Where a command is found: in the `app` of a module of `commands`, or, where it is a noun, as that app."""

    module: str
    help: str
    noun: bool = False

    def load(self, name: str) -> Command:
        """As it is run."""
        app = import_module(f"gateways.cli.commands.{self.module}").app
        assert isinstance(app, typer.Typer)
        found: Command = get_group(app)
        assert isinstance(found, TyperGroup)
        if not self.noun:
            found = found.commands[name]
        else:
            found.name, found.help = name, self.help
            for command in found.commands.values():
                finish(command)
        finish(found)
        return found


class Commands(MutableMapping[str, "Command"]):
    """By name, in their order; one that is looked up is loaded."""

    def __init__(self, known: Mapping[str, Command | Entry]) -> None:
        self._known = dict(known)

    def __getitem__(self, name: str) -> Command:
        found = self._known[name]
        if isinstance(found, Entry):
            found = self._known[name] = found.load(name)
        return found

    def __setitem__(self, name: str, command: Command) -> None:
        self._known[name] = command

    def __delitem__(self, name: str) -> None:
        del self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


class LazyGroup(TyperGroup):
    """The root: it lists its commands by their lines alone, and loads the one that is run."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._table: Mapping[str, Entry] = {}

    def add(self, table: Mapping[str, Entry]) -> None:
        """Put these behind the commands that it has."""
        self._table = table
        self.commands = Commands({**self.commands, **table})

    def list_commands(self, ctx: Context) -> list[str]:
        """Without loading them."""
        return list(self.commands)

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        """What stands in a list; `commands` has what is run."""
        if entry := self._table.get(cmd_name):
            return TyperCommand(cmd_name, short_help=entry.help, rich_markup_mode=None)
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        """What is run."""
        name, listed, rest = super().resolve_command(ctx, args)
        return name, self.commands[name] if listed and name else None, rest
