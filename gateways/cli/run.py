"""Running a command: settings in, exit code out, an error in words instead of a traceback."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import typer

from gateways.cli import ending

if TYPE_CHECKING:
    from shared.settings import Settings

INTERRUPTED = ending.INTERRUPTED
Work = Callable[["Settings"], Coroutine[Any, Any, int | None]]


Lenient = Literal["", "tell", "list"]


def run(work: Work, always: bool = False, lenient: Lenient = "") -> NoReturn:
    """Do it, and end the process with its exit code (docs/wire.md lists them).

    What a folder brings and does not count is said once, by some commands `always`. Settings that cannot be used
    are refused, unless `lenient`: then it does without them, and they are told first, or listed by the command.
    """
    raise typer.Exit(ending.code(lambda: _done(work, always, lenient)))


def me() -> str:
    """Who speaks, where nobody is named."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container may run under a user id without a name
        return "person"


def _done(work: Work, always: bool, lenient: Lenient) -> int:
    import asyncio  # what only a command needs that does something; --version and --help do not

    from shared import log
    from shared.client.local import trust
    from shared.settings import load

    trust.ask(always)
    settings = load(lenient=bool(lenient))
    if lenient == "tell":
        for one in settings.wrong:
            print(f"promptdock: {one.told}\n  do:  {one.fix}", file=sys.stderr)
    for line in trust.told(settings, always):
        print(f"promptdock: {line}", file=sys.stderr)
    log.setup("error", "console")
    return asyncio.run(work(settings)) or 0
