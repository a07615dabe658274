"""Settings, .env.example and docs/configuration.md name the same variables with the same defaults."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from shared.settings import Settings, load
from tests.house.tree import files, read, variables

ROW = re.compile(r"^\| `([A-Z_]+)` \|([^|]*)\|", re.MULTILINE)
LINE = re.compile(r"^#?([A-Z_]+)=(.*)$", re.MULTILINE)


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty folder, and an environment without any variable of ours."""
    for name in variables():
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _shown(default: object) -> str:
    return "" if default is None or default in (frozenset(), {}) else str(default)


def test_the_page_describes_every_variable_once() -> None:
    assert sorted(name for name, _ in ROW.findall(read("docs/configuration.md"))) == sorted(variables())


def test_the_example_lists_every_variable_once() -> None:
    assert sorted(name for name, _ in LINE.findall(read(".env.example"))) == sorted(variables())


def test_the_page_shows_the_defaults_of_the_settings() -> None:
    known = variables()
    shown = {name: default.strip().strip("`") for name, default in ROW.findall(read("docs/configuration.md"))}
    del shown["PROMPTDOCK_HOME"]  # found at run time, and told in words
    defaults = {name: _shown(Settings.model_fields[known[name]].default) for name in shown}
    assert shown == defaults


def test_the_example_taken_as_it_is_with_all_lines_active_changes_nothing(bare: Path) -> None:
    active = re.sub(r"^#(?=[A-Z_]+=)", "", read(".env.example"), flags=re.MULTILINE)
    (bare / "all.env").write_text(active)
    (bare / "none.env").write_text("")
    assert load(bare / "all.env") == load(bare / "none.env")


def _fields(reserved: bool) -> set[str]:
    page = read("docs/configuration.md")
    before, _, after = page.partition("## Reserved")
    known = variables()
    return {known[name] for name, _ in ROW.findall(after if reserved else before)}


def _used() -> set[str]:
    """The fields that some module reads, or that the settings' own methods hand out."""
    rooms = [
        read(name)
        for name in files()
        if name.startswith(("agents/", "gateways/", "shared/"))
        and name.endswith(".py")
        and name != "shared/settings.py"
    ]
    text = "\n".join(rooms)
    handed_out = {
        f"{agent}_model" for agent in ("chatter", "planner", "researcher", "frontend", "backend")
    } | {"model"}
    read_by_name = {name for name in Settings.model_fields if re.search(rf"settings\.{name}\b", text)}
    registry = read("shared/models/factory.py")  # whose providers name their settings
    read_by_name |= {name for name in Settings.model_fields if f'"{name}"' in registry}
    return read_by_name | (handed_out if "model_for(" in text else set())


def test_what_is_called_reserved_is_used_by_nothing() -> None:
    assert _fields(reserved=True) & _used() == set(), (
        "used now: move it out of Reserved in docs/configuration.md"
    )


def test_what_is_described_as_working_is_used() -> None:
    assert _fields(reserved=False) - _used() == set(), (
        "used by nothing: move it to Reserved in docs/configuration.md"
    )
