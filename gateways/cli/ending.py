"""How a command ends: with its exit code, and an error in words, or as JSON, instead of a traceback."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from gateways.cli import screen
from shared.errors import PromptDockError

INTERRUPTED = 130
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


def code(work: Callable[[], int | None]) -> int:
    """Do it; its exit code. What goes wrong is told; of each kind of error the code stands in shared/errors.py."""
    try:
        result = work() or 0
        sys.stdout.flush()
    except PromptDockError as error:
        result = _told(error)
    except BrokenPipeError:  # whoever read us has seen enough
        result = 0
    except KeyboardInterrupt:
        result = INTERRUPTED
    except OSError as error:
        result = _told(_no_room(error) if error.errno in _NO_ROOM else unforeseen(error))
    except Exception as error:
        result = _told(unforeseen(error))
    _let_go()
    return result


def _told(error: PromptDockError) -> int:
    with contextlib.suppress(OSError):  # where nobody can be told, the code says it
        screen.complain(error)
    return error.exit_code


def _let_go() -> None:
    """What cannot be written by now never can: Python would complain once more when it flushes at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _no_room(error: OSError) -> PromptDockError:
    where = str(error.filename or "where it was to be written")
    fix = "make room there, and try again"
    if error.errno == errno.EROFS:
        fix = "have it mounted to be written to, or set PROMPTDOCK_HOME to a folder elsewhere"
    return PromptDockError("nothing can be written", f"{where}: {error.strerror}", fix)


def unforeseen(error: BaseException) -> PromptDockError:
    """An error that nobody thought of: in one line; the rest stands in a log."""
    import traceback

    from shared import log

    what = log.redact(f"{type(error).__name__}: {error}".rstrip(": "))[:500]
    trace = log.redact("".join(traceback.format_exception(error)))
    if screen.manner.debug or os.environ.get("LOG_LEVEL", "").casefold() == "debug":
        screen.talk(trace.rstrip())
    file = _write_down(what, trace)
    fix = f"see {file}, and report it with what stands there" if file else "run it again with --debug"
    return PromptDockError("this went wrong in a way that nobody foresaw", what, fix)


def _write_down(what: str, trace: str) -> Path | None:
    """Among the logs of the data folder, where `promptdock logs` finds it, else in a new file."""
    from shared.settings import find_home

    now = datetime.now(UTC).isoformat()
    record = {"timestamp": now, "level": "error", "event": what, "command": _command(), "exception": trace}
    text = json.dumps(record) + "\n"
    with contextlib.suppress(OSError, RuntimeError):
        folder = Path(os.environ.get("PROMPTDOCK_HOME") or find_home()).expanduser().resolve() / "logs"
        if folder.is_dir():
            file = folder / "cli.log"
            with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "w") as out:
                out.write(text)
            return file
    with contextlib.suppress(OSError):
        import tempfile

        number, name = tempfile.mkstemp(prefix="promptdock-", suffix=".log")
        with os.fdopen(number, "w") as out:
            out.write(text)
        return Path(name)
    return None


def _command() -> str:
    """Which command it was; not what it was given, which may be secret."""
    return " ".join(word for word in sys.argv[1:3] if word.isalpha())
