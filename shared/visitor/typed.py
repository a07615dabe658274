"""The command as it can be typed where the person stands: it is not on everybody's PATH."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from pathlib import Path

from shared.bus.messages import Output
from shared.visitor.plain import labelled

CALLED = "PROMPTDOCK_CALLED"  # set by a process of ours that becomes another one
_NAMED = re.compile(r"(?<![\w./-])promptdock (?=[a-z])")


def called() -> str:
    """How `promptdock` is called here."""
    if told := os.environ.get(CALLED):
        return told
    program = Path(sys.argv[0])
    if program.name != "promptdock":
        return f"{shlex.quote(_short(Path(sys.executable)))} -m gateways.cli"
    found = shutil.which("promptdock")
    if found and Path(found).resolve() == program.resolve():
        return "promptdock"
    return shlex.quote(_short(program))


def runnable(text: str) -> str:
    """A remedy in whose words `promptdock` is a command that works as printed."""
    return _NAMED.sub(lambda _: f"{called()} ", text)


def told(output: Output) -> str:
    """The text of an output; what a model wrote stays as it is, the cluster's own advice works as printed."""
    text = labelled(output.content, output.demo)
    return text if output.model and not output.demo else runnable(text)


def _short(path: Path) -> str:
    """Relative to where we are, if it lies below; a link stays a link, since a venv's Python is one."""
    where = Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow the link
    here = Path.cwd()
    return str(where.relative_to(here)) if where.is_relative_to(here) else str(where)
