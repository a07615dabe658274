"""The command as it can be typed where the person stands: it is not on everybody's PATH."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from shared.client.text.safe import labelled
from shared.folders import find_home

if TYPE_CHECKING:
    from shared.bus.messages import Output

HOME = "PROMPTDOCK_HOME"
CALLED = "PROMPTDOCK_CALLED"  # set by a process of ours that becomes another one
_PYTHON = re.compile(r"(?<![\w./-])python (?=-m (?:agents|gateways)\b)")
_HOMED = re.compile(rf"{HOME}=('[^']*'|[^\s'=]+) $")  # another data folder is named before the command
_NAMED = re.compile(r"(?<![\w./-])promptdock (?=[a-z])")


def called() -> str:
    """How `promptdock` is called here."""
    return os.environ.get(CALLED) or f"{_home()}{_program()}"


def _program() -> str:
    program = Path(sys.argv[0])
    if program.name != "promptdock":
        return f"{shlex.quote(_short(Path(sys.executable)))} -m gateways.cli"
    found = shutil.which("promptdock")
    if found and Path(found).resolve() == program.resolve():
        return "promptdock"
    return shlex.quote(_short(program))


def _home() -> str:
    """What leads to the same cluster where the data folder was named: it may have been for one command alone."""
    given = os.environ.get(HOME)
    if not given or (named := Path(given).expanduser().resolve()) == find_home():
        return ""
    return f"{HOME}={shlex.quote(str(named))} "


def runnable(text: str) -> str:
    """A remedy in whose words `promptdock`, and a module of ours, is a command that works as printed."""
    text = _PYTHON.sub(lambda _: f"{shlex.quote(_short(Path(sys.executable)))} ", text)
    command = called()
    bare = re.sub(rf"^{HOME}=('[^']*'|[^\s'=]+) ", "", command)

    def typed(found: re.Match[str]) -> str:
        return f"{bare if _HOMED.search(text[: found.start()]) else command} "

    return _NAMED.sub(typed, text)


def text_of(output: Output) -> str:
    """The text of an output; what a model wrote stays as it is, the cluster's own advice works as printed."""
    text = labelled(output.content, output.demo)
    if output.unsigned:
        return f"[unsigned] {text}"
    return text if output.model and not output.demo else runnable(text)


def _short(path: Path) -> str:
    """Relative to where we are, if it lies below; a link stays a link, since a venv's Python is one."""
    where = Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow the link
    here = Path.cwd()
    return str(where.relative_to(here)) if where.is_relative_to(here) else str(where)
