"""The Lua files: each says what it is given, and all of them are used."""

from __future__ import annotations

import re
from importlib import resources

import pytest

from shared.bus.base import Script
from shared.turns import scripts

FILES = resources.files("shared.turns.scripts")
LOADED = {one.name: one for one in vars(scripts).values() if isinstance(one, Script)}


def _files(*folder: str) -> dict[str, str]:
    found = FILES.joinpath(*folder).iterdir()
    return {
        one.name.removesuffix(".lua"): one.read_text("utf-8") for one in found if one.name.endswith(".lua")
    }


def _included() -> set[str]:
    lines = re.findall(r"^-- include: (.+)$", "\n".join(_files().values()), re.MULTILINE)
    return {name for line in lines for name in line.split()}


def test_every_file_is_a_script_and_every_part_belongs_to_one() -> None:
    assert set(LOADED) == set(_files())
    assert _included() | {"no_fence"} == set(_files("parts"))


@pytest.mark.parametrize("name", sorted(_files()))
def test_the_header_of_a_script_names_its_keys_and_arguments_in_their_order(name: str) -> None:
    text = _files()[name]
    header, body = text.split("\n\n", 1)
    assert header.startswith("#!lua")
    assert re.search(r"^-- KEYS  1 \w", header, re.MULTILINE)
    used = {int(number) for number in re.findall(r"ARGV\[(\d+)\]", body)}
    named = [
        int(number)
        for number in re.findall(
            r"(?:  | )(\d+) [a-z]", header.partition("-- ARGV")[2].partition("-- Returns")[0]
        )
    ]
    assert named == list(range(1, max(used, default=0) + 1))


def test_what_a_script_includes_stands_in_it_in_that_order() -> None:
    parts = _files("parts")
    assert LOADED["claim"].source.index(parts["load"]) < LOADED["claim"].source.index(parts["aside"])
    assert not any("-- include:" in script.source for script in LOADED.values())
