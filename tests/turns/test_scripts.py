"""The Lua files: each says what it is given, and all of them are used."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

import pytest

import shared
from shared.turns import scripts

LEDGER = "shared.worker.budgets.scripts"
FOLDERS = {name: resources.files(name) for name in ("shared.turns.scripts", "shared.bus.scripts", LEDGER)}
SHARED = Path(shared.__file__).parent


def _files(*folder: str, package: str = "shared.turns.scripts") -> dict[str, str]:
    found = FOLDERS[package].joinpath(*folder).iterdir()
    return {
        one.name.removesuffix(".lua"): one.read_text("utf-8") for one in found if one.name.endswith(".lua")
    }


LOADED = {name: getattr(scripts, name.upper()) for name in _files()}
TEXTS = {name for name, value in vars(scripts).items() if isinstance(value, str)}
ALL = {f"{package}.{name}": text for package in FOLDERS for name, text in _files(package=package).items()}


def _included() -> set[str]:
    lines = re.findall(r"^-- include: (.+)$", "\n".join(_files().values()), re.MULTILINE)
    return {name for line in lines for name in line.split()}


def test_every_file_is_a_script_that_is_used_and_every_part_belongs_to_one() -> None:
    code = "\n".join(file.read_text("utf-8") for file in SHARED.rglob("*.py"))
    used = set(re.findall(r"\bscripts\.([A-Z_]+)\b", code)) - TEXTS
    assert used == {name.rpartition(".")[2].upper() for name in ALL}
    with pytest.raises(AttributeError):
        getattr(scripts, "NOTHING")  # noqa: B009 - mypy takes it for a script
    assert _included() | {"no_fence"} == set(_files("parts"))


def test_a_script_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert scripts.POST is LOADED["post"]

    def anew(name: str) -> None:
        raise AssertionError(f"{name} is looked for anew")

    monkeypatch.setattr(scripts, "__getattr__", anew)
    assert scripts.POST is LOADED["post"]


@pytest.mark.parametrize("name", sorted(ALL))
def test_the_header_of_a_script_names_its_keys_and_arguments_in_their_order(name: str) -> None:
    text = ALL[name]
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
