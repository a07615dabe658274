"""How our own processes start: with our code alone, and never with what lies in a folder of people.

A folder in which people work may hold a `structlog.py` or a program `git`, written by anybody. So no own process
has it on its import path, looks for programs in it, or stays in it.
"""

from __future__ import annotations

import os
import shlex
import shutil
import site
import sys
from collections.abc import Mapping
from pathlib import Path

from shared import failpoints

WHERE = "/"  # where processes of ours stand that need no folder
_TREE = str(Path(__file__).resolve().parents[3])


def command(module: str, *arguments: str) -> list[str]:
    """The words that run a module of ours: without the folder that it starts in on the import path."""
    alone = [] if failpoints.without("safe-path") else ["-P"]
    return [sys.executable, *alone, "-m", module, *arguments]


def where() -> str | None:
    """The folder in which a process of ours starts."""
    return None if failpoints.without("safe-path") else WHERE


def surroundings(given: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process of ours: no search path in it means the folder in which somebody stands."""
    if failpoints.without("safe-path"):
        return dict(given)
    path = [place for place in given.get("PYTHONPATH", "").split(os.pathsep) if Path(place).is_absolute()]
    if _TREE in sys.path and _TREE not in (*path, *site.getsitepackages()):
        path.insert(0, _TREE)  # a checkout that is run without being installed
    cleaned = {**given, "PATH": absolute(given.get("PATH", os.defpath))}
    cleaned.pop("PYTHONPATH", None)
    return cleaned | ({"PYTHONPATH": os.pathsep.join(path)} if path else {})


def undone(given: Mapping[str, str]) -> dict[str, str]:
    """The environment for a person's program that a process of ours starts: without the way to our own code."""
    path = [place for place in given.get("PYTHONPATH", "").split(os.pathsep) if place not in ("", _TREE)]
    kept = {name: value for name, value in given.items() if name != "PYTHONPATH"}
    return kept | ({"PYTHONPATH": os.pathsep.join(path)} if path else {})


def absolute(path: str) -> str:
    """A search path without what means the current folder: empty and relative places."""
    if failpoints.without("safe-path"):
        return path
    return os.pathsep.join(place for place in path.split(os.pathsep) if Path(place).is_absolute())


def program(name: str) -> str | None:
    """Where a program lies; None where it is not installed."""
    return shutil.which(name, path=absolute(os.environ.get("PATH", os.defpath)))


def installing(extra: str) -> str:
    """The command that installs an extra of ours where this one runs: from the checkout, or as a package."""
    python, tree = shlex.quote(sys.executable), Path(_TREE)
    if not (tree / "pyproject.toml").is_file():
        return f"{python} -m pip install {shlex.quote(f'promptdock[{extra}]')}"
    pins = shlex.quote(str(tree / "constraints.txt"))
    return f"{python} -m pip install --constraint {pins} --editable {shlex.quote(f'{tree}[{extra}]')}"
