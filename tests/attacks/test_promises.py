"""SECURITY.md promises what the tests attack, and nothing else."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from shared.failpoints import Guard

ROOT = Path(__file__).parents[2]
GUARDS = frozenset(get_args(Guard))
PROMISING = ("What is promised", "Fail closed")  # the sections of which each line is a promise
_MARK = re.compile(r"<!-- guard: ([a-z0-9-]+) -->")
_ITEM = re.compile(r"^[-*] ", re.M)


def sections() -> dict[str, str]:
    """The page's sections by their titles."""
    parts = (ROOT / "SECURITY.md").read_text("utf-8").split("\n## ")[1:]
    return {title: text for title, _, text in (part.partition("\n") for part in parts)}


def promises() -> Iterator[str]:
    """Each line of the sections that promise something."""
    for title in PROMISING:
        for item in _ITEM.split(sections()[title])[1:]:
            yield item.partition("\n\n")[0].partition("\n#")[0].strip()


def attacked() -> Counter[str]:
    """The names that a `@guarded` above a test says, in all the tests."""
    found: Counter[str] = Counter()
    for file in (ROOT / "tests").rglob("test_*.py"):
        text = file.read_text("utf-8")
        if "@guarded" in text:
            found.update(_guarded(ast.parse(text)))
    return found


def _guarded(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if not (isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")):
            continue
        for mark in node.decorator_list:
            if isinstance(mark, ast.Call) and isinstance(mark.func, ast.Name) and mark.func.id == "guarded":
                yield from (str(name.value) for name in mark.args if isinstance(name, ast.Constant))


def test_each_guard_is_promised_and_each_promise_has_its_guard() -> None:
    named = {name for item in promises() for name in _MARK.findall(item)}
    assert named == GUARDS, f"without a promise: {GUARDS - named}; no guards: {named - GUARDS}"


def test_each_guard_has_an_attack_that_succeeds_without_it() -> None:
    names = attacked().keys()
    assert names == GUARDS, f"nobody attacks {GUARDS - names}; no guards: {names - GUARDS}"


@pytest.mark.parametrize("item", list(promises()), ids=lambda item: item[:40])
def test_a_line_of_the_page_has_a_guard_behind_it(item: str) -> None:
    """Whatever stands behind the last guard would be promised without one."""
    *sentences, rest = _MARK.split(item)[::2]
    assert sentences and not rest.strip(), item
    assert all(text.strip().endswith(".") for text in sentences), item


def test_a_guard_is_named_where_the_page_promises_something() -> None:
    elsewhere = [title for title, text in sections().items() if title not in PROMISING and _MARK.search(text)]
    assert elsewhere == []
