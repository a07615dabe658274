"""`promptdock tools`, as a process: the list and a tool without a cluster, and what is wrong with a call."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from shared.tools import catalog
from tests.support.forked import Done, run
from tests.support.processes import ROOT

registry = catalog.registry()


def tools(home: Path, *arguments: str, stdin: str = "", **environment: str) -> Done:
    """Run `promptdock tools …` to its end."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    settings = {"PYTHONPATH": str(ROOT), "PROMPTDOCK_HOME": str(home), "COLUMNS": "120"}
    words = ["gateways.cli", "tools", *arguments]
    return run(words, home.parent, {**kept, **settings, **environment}, stdin)


def test_the_list_holds_every_tool_with_its_schema(tmp_path: Path) -> None:
    done = tools(tmp_path / "home", "list", "--json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["schema"]) == (0, "promptdock.tools.v1")
    assert [card["name"] for card in document["tools"]] == [tool.name for tool in registry]
    card = next(card for card in document["tools"] if card["name"] == "create_task")
    assert (card["category"], card["core"], card["effect"]) == ("core", True, "keyed")
    assert card["input_schema"] == registry.get("create_task").schema


def test_a_category_and_a_tool_are_shown_for_people(tmp_path: Path) -> None:
    listed = tools(tmp_path / "home", "list", "hooks")
    assert [line.split()[0] for line in listed.stdout.splitlines()] == [
        "name",
        *(tool.name for tool in registry.category("hooks")),
    ]
    shown = tools(tmp_path / "home", "show", "archive_task")
    assert "archive_tasks  (system, idempotent)" in shown.stdout
    assert "task_id                  string  (may be left out)" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["show", "make_coffee"], 2, "there is no tool 'make_coffee'"),
        (["call", "make_coffee", "[]"], 2, "no JSON object"),
        (["call", "list_tasks"], 3, "no cluster runs here"),
    ],
)
def test_what_is_wrong_with_a_call_is_said_with_the_exit_code_for_it(
    tmp_path: Path, arguments: list[str], code: int, words: str
) -> None:
    done = tools(tmp_path / "home", *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr
