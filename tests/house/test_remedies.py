"""What the code tells people to type can be typed: each command exists, and takes the options that stand there."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from typing import Any

import pytest

from gateways.cli import app
from tests.house.tree import files, read, runs, unknown

_COMMAND = re.compile(r"(?<![\w./-])promptdock ([a-z]+)(?: ([a-z]+))?((?: (?:--?[a-z][a-z-]*|[A-Z]+|<>))*)")
SOURCES = [
    name for name in files() if name.startswith(("agents/", "gateways/", "shared/")) and name.endswith(".py")
]


def told(source: str) -> Iterator[str]:
    """The texts of a module but for its docstrings; what is filled in stands there as `<>`."""
    tree = ast.parse(source)
    silent = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    inner: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            inner |= {id(part) for part in node.values}
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "<>" for part in node.values)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in silent | inner:
            yield node.value


@functools.cache
def _options() -> dict[tuple[str, ...], set[str]]:
    """The options of each command, by its words."""
    found: dict[tuple[str, ...], set[str]] = {}

    def look(command: Any, words: tuple[str, ...]) -> None:
        found[words] = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
        for name, below in getattr(command, "commands", {}).items():
            look(below, (*words, name))

    look(app.commands(), ())
    return found


def wrong(text: str) -> list[str]:
    """What a text tells to type and that would not work."""
    found = unknown(re.sub(r"\bmake [a-z]+", "", text).replace("python -m agents.<>", ""))
    found += [f"python -m agents.{name}" for name in re.findall(r"python -m agents\.(<>)", text)]
    for first, second, rest in _COMMAND.findall(text):
        words = (first, second) if (first, second) in _options() else (first,)
        given = set(re.findall(r" (--?[a-z][a-z-]*)", rest))
        found += [f"promptdock {first} … {option}" for option in given - _options().get(words, set())]
    return found


@pytest.mark.parametrize("name", SOURCES)
def test_every_command_that_the_code_tells_of_exists(name: str) -> None:
    assert [one for text in told(read(name)) for one in wrong(text)] == []


def test_what_would_not_work_is_noticed() -> None:
    source = (
        'def f(x):\n    """promptdock said"""\n    print("promptdock nonsense", f"promptdock up --now {x}")\n'
    )
    assert sorted(one for text in told(source) for one in wrong(text)) == [
        "promptdock nonsense",
        "promptdock up … --now",
    ]
    assert wrong("start it: python -m agents.<>") and not runs("agents.reviewer")
    assert wrong("promptdock up -d --with <>; promptdock dead list shows them") == []
