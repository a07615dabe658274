"""The tree as the tests of the house read it: its files, its settings, what its documents mention."""

from __future__ import annotations

import functools
import importlib.util
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import AliasChoices

from gateways.cli import app
from shared.settings import Settings

ROOT = Path(__file__).resolve().parents[2]


def read(path: str) -> str:
    """The text of a file, by its path in the tree."""
    return (ROOT / path).read_text(encoding="utf-8")


@functools.cache
def files() -> tuple[str, ...]:
    """Every file that is in the repository, or would be with the next commit."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is not a git checkout, so nobody knows which files belong to it")
    listed = subprocess.run(
        [
            "git",
            "-c",
            f"safe.directory={ROOT}",
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ],
        cwd=ROOT,
        capture_output=True,
        check=True,
        timeout=30,
        text=True,
    ).stdout
    return tuple(sorted(name for name in set(listed.split("\0")) if name and (ROOT / name).is_file()))


def documents() -> list[str]:
    """The documents for people."""
    return [
        name for name in files() if name.endswith(".md") and ("/" not in name or name.startswith("docs/"))
    ]


def project() -> dict[str, Any]:
    """pyproject.toml."""
    return tomllib.loads(read("pyproject.toml"))


def variables() -> dict[str, str]:
    """Each environment variable that the settings know, and the field that it fills."""
    found: dict[str, str] = {}
    for name, field in Settings.model_fields.items():
        alias = field.validation_alias
        for choice in alias.choices if isinstance(alias, AliasChoices) else [alias]:
            found[str(choice)] = name
    return found


def targets() -> set[str]:
    """What `make` can be asked for."""
    return set(re.findall(r"^([a-z]+):", read("Makefile"), re.MULTILINE))


@functools.cache
def commands() -> dict[str, Any]:
    """The command line as a tree: a name, and the commands below it."""
    return _below(app.commands())


def _below(command: Any) -> dict[str, Any]:
    return {name: _below(sub) for name, sub in cast(dict[str, Any], getattr(command, "commands", {})).items()}


def code(markdown: str) -> Iterator[str]:
    """The lines of a document that stand in code, in spans or blocks."""
    blocks = re.compile(r"^```.*?$(.*?)^```", re.MULTILINE | re.DOTALL)
    for block in blocks.findall(markdown):
        yield from block.splitlines()
    yield from re.findall(r"`([^`\n]+)`", blocks.sub("", markdown))


def runs(module: str) -> bool:
    """Whether `python -m module` has something to run."""
    try:
        spec = importlib.util.find_spec(module)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{module}.__main__")
    except ModuleNotFoundError:
        return False
    return spec is not None


def unknown(line: str) -> list[str]:
    """What a line asks for that does not exist: modules to run, commands of ours, make targets."""
    missing = [f"python -m {name}" for name in re.findall(r"python3? -m ([\w.]+)", line) if not runs(name)]
    missing += [
        f"make {name}" for name in re.findall(r"(?<![\w./-])make ([a-z]+)", line) if name not in targets()
    ]
    for first, second in re.findall(r"(?<![\w.-])promptdock +([a-z]+)(?: +([a-z]+))?", line):
        below = commands().get(first)
        if below is None:
            missing.append(f"promptdock {first}")
        elif below and second and second not in below:
            missing.append(f"promptdock {first} {second}")
    return missing
