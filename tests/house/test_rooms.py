"""Rooms that one can hold in the head: none too full, and no word that names two types."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.house.tree import files, read

FULL = 20
MODULES = [name for name in files() if name.endswith(".py") and name.startswith(("shared/", "gateways/"))]


def types(source: str) -> Iterator[str]:
    """The names of the types that a module defines: its classes, and what it gives a type of others as a name."""
    tree = ast.parse(source)
    yield from (node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name[0].isupper() and not name.isupper():
                yield name


def test_no_room_has_more_modules_than_one_can_hold_in_the_head() -> None:
    full = Counter(name.rpartition("/")[0] for name in MODULES if not name.endswith("/__init__.py"))
    assert {room: count for room, count in full.items() if count > FULL} == {}


def test_no_name_stands_for_two_types() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for name in MODULES:
        if name.startswith("shared/"):
            for kind in types(read(name)):
                places[kind].append(name)
    assert {kind: found for kind, found in places.items() if len(found) > 1} == {}


def test_a_class_and_an_alias_are_both_types() -> None:
    assert list(types("class Row: ...\nCard = dict[str, int]\nLARGEST = 3\nlow = 1\n")) == ["Row", "Card"]
