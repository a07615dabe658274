"""Running a command: settings in, exit code out, an error in words instead of a traceback."""

from __future__ import annotations

import asyncio
import errno
import getpass
import os
import sys
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn

import typer

from gateways.cli import screen
from shared import log
from shared.errors import PromptDockError
from shared.settings import Settings, load
from shared.visitor import trusting

INTERRUPTED = 130
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
Work = Callable[[Settings], Coroutine[Any, Any, int | None]]


def run(work: Work) -> NoReturn:
    """Do it, and end the process with its exit code (docs/wire.md lists them)."""
    raise typer.Exit(_code(work))


def me() -> str:
    """Who speaks, where nobody is named."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container may run under a user id without a name
        return "person"


def _code(work: Work) -> int:
    try:
        trusting.ask()
        settings = load()
        for line in trusting.told(settings):
            print(f"promptdock: {line}", file=sys.stderr)
        log.setup("error", "console")
        code = asyncio.run(work(settings)) or 0
        sys.stdout.flush()
    except PromptDockError as error:
        screen.complain(error)
        return error.exit_code
    except BrokenPipeError:
        # Whoever read us has seen enough; Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        where = str(error.filename or "the disk of this home")
        fix = "make room there, and try again"
        screen.complain(PromptDockError("nothing can be written", f"{where}: {error.strerror}", fix))
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    return code
