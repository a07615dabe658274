"""Running a command: settings in, exit code out, an error in words instead of a traceback."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from gateways.cli import ending

if TYPE_CHECKING:
    from shared.settings import Settings

INTERRUPTED = ending.INTERRUPTED
Work = Callable[["Settings"], Coroutine[Any, Any, int | None]]


def run(work: Work, always: bool = False) -> NoReturn:
    """Do it, and end the process with its exit code (docs/wire.md lists them).

    What a folder brings and does not count is said once, by some commands `always`.
    """
    raise typer.Exit(ending.code(lambda: _done(work, always)))


def me() -> str:
    """Who speaks, where nobody is named."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container may run under a user id without a name
        return "person"


def _done(work: Work, always: bool) -> int:
    import asyncio  # what only a command needs that does something; --version and --help do not

    from shared import log
    from shared.settings import load
    from shared.visitor import trusting

    trusting.ask(always)
    settings = load()
    for line in trusting.told(settings, always):
        print(f"promptdock: {line}", file=sys.stderr)
    log.setup("error", "console")
    return asyncio.run(work(settings)) or 0
