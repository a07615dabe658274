"""What a command loads before it does anything: a person waits for that each time."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.cli.person import PATIENCE, Person

HEAVY = {"aiosqlite", "anthropic", "httpx", "psutil", "re2", "redis", "supabase", "tree_sitter"}
CLUSTER = {"asyncio", "pydantic", "rich", "structlog", "shared.settings", "shared.store.records"}
WORKER = {"shared.loop", "shared.tools", "shared.worker", "shared.models.anthropic", "shared.models.demo"}


def loaded(person: Person, *words: str) -> set[str]:
    """Every module that a command has loaded once it is through."""
    program = (
        "import json, os, sys\n"
        "from gateways.cli.__main__ import main\n"
        "sys.argv[0] = 'promptdock'\n"
        "code = main()\n"
        "print('\\n' + json.dumps([code, *sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        env=person.environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    code, *names = json.loads(done.stdout.splitlines()[-1])
    assert code in (0, 3), done.stderr
    return set(names)


@pytest.mark.parametrize("words", [["--version"], ["--help"]])
def test_what_only_prints_waits_for_no_library_of_the_cluster(person: Person, words: list[str]) -> None:
    names = loaded(person, *words)
    assert "gateways.cli.app" in names
    assert sorted((HEAVY | CLUSTER | WORKER) & names) == []


def _commands(names: set[str]) -> list[str]:
    return sorted(name for name in names if name.startswith("gateways.cli.commands."))


@pytest.mark.parametrize("words", [["--version"], ["--help"]])
def test_help_of_all_loads_no_command(person: Person, words: list[str]) -> None:
    assert _commands(loaded(person, *words)) == []


@pytest.mark.parametrize(("noun", "module"), [("tools", "tools"), ("tasks", "tasks"), ("key", "key")])
def test_help_of_a_noun_loads_its_commands_alone(person: Person, noun: str, module: str) -> None:
    found = {name.split(".")[3] for name in _commands(loaded(person, noun, "--help"))}
    assert found == {module}


@pytest.mark.parametrize("words", ["tasks", "ask", "up", "repo", "dead", "key", "config"])
def test_help_of_a_command_waits_for_no_cluster(person: Person, words: str) -> None:
    names = loaded(person, words, "--help")
    assert sorted({"asyncio", "shared.settings", "shared.client.client"} & names) == []


@pytest.mark.parametrize("words", [["status"], ["ask", "Hello", "--timeout", "1"]])
def test_what_asks_the_cluster_loads_nothing_that_only_a_worker_needs(
    person: Person, words: list[str]
) -> None:
    names = loaded(person, *words)
    assert "shared.client.client" in names
    assert sorted((HEAVY | WORKER) & names) == []
