"""An agent that is a command line: its name, what is run for each request, and whether that can be."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

from shared import folders
from shared.bus.keys import is_agent
from shared.bus.messages import RESERVED
from shared.bus.presence import Presence
from shared.errors import UsageError
from shared.guard.processes import starts
from shared.guard.processes.plan import AGENTS

# What a shell does by itself, or reads as part of its grammar: no program of that name need exist.
_SHELL = re.compile(
    r"[({!]|[A-Za-z_]\w*=|(?:if|for|while|until|case|cd|exec|eval|set|export|read|printf|echo|test|\[|:|\.|true|false"
    r"|trap|umask|ulimit|unset|shift|wait|command|type|alias|exit)(?:\s|$)"
)


@dataclass(frozen=True)
class Bridged:
    """What is bridged: a name on the bus, a command for a shell, and how long it may take."""

    name: str
    command: str
    seconds: float = 600.0
    about: str = ""

    def check(self) -> None:
        """UsageError where no agent can have this name, or the command starts a program that there is not."""
        if not is_agent(self.name):
            raise UsageError(f"{self.name!r} is no name for an agent", "", "use small letters, digits, _ . -")
        if self.name in RESERVED:
            raise UsageError(
                f"no agent can be called {self.name}", "the name is reserved: a sender or a channel has it",
                "choose another",
            )  # fmt: skip
        _check(self.command)

    async def check_free(self, presence: Presence) -> None:
        """UsageError where an agent of ours has this name and is here."""
        if self.name in AGENTS and await presence.here(self.name):
            raise UsageError(
                f"{self.name} is running already", "two would share its requests",
                f"leave it out: promptdock up -d --without {self.name}",
            )  # fmt: skip


def _check(command: str) -> None:
    """What only a shell can tell is let be."""
    try:
        first = shlex.split(command, comments=True)[:1]
    except ValueError as error:
        raise UsageError("the command cannot be read", str(error), "close its quotes") from None
    if not first:
        raise UsageError("there is no command", "", 'give one with --exec "…"')
    if _SHELL.match(command.strip()) or set(first[0]) & set("$`*?~<>|&;"):
        return
    program = first[0]
    place = folders.here() / program if "/" in program else program
    if shutil.which(place, path=starts.absolute(os.environ.get("PATH", os.defpath))) is None:
        there = Path(folders.here(), program).exists()
        raise UsageError(
            f"there is no program {program!r} to run",
            "the file cannot be executed" if there else "no such file, and no program of that name on PATH",
            f"chmod +x {program}" if there else "install it, or give its full path with --exec",
        )
