"""What a shell is offered when somebody presses Tab."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from gateways.cli import complete
from shared.client import Client
from tests.cli.person import PATIENCE, Person
from tests.house.tree import ROOT


def offered(person: Person, *words: str) -> list[str]:
    """What bash is told for the last of these words."""
    asked = {
        "_PROMPTDOCK_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(["promptdock", *words]),
        "COMP_CWORD": str(len(words)),
    }
    done = person.types(**asked)
    assert done.stderr == "", done
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "some"),
    [
        (["ta"], {"tail", "tasks"}),
        (["tasks", ""], {"list", "show", "merge"}),
        (["tasks", "list", "--st"], {"--status"}),
        (["tools", "show", "list_ta"], {"list_tasks"}),
        (["permissions", "show", "stand"], {"standard"}),
    ],
)
def test_commands_options_tools_and_profiles_are_offered(
    cluster: Person, monkeypatch: pytest.MonkeyPatch, words: Sequence[str], some: set[str]
) -> None:
    assert some <= set(_patient(cluster, words, some))


def test_names_that_the_cluster_knows_are_offered(cluster: Person) -> None:
    cluster.does("ask", "Build a shelf for the shop", "--session", "shelf")
    slug = str(cluster.reads("tasks")["tasks"][0]["id"])
    assert _patient(cluster, ["tasks", "show", slug[:3]], {slug})
    assert _patient(cluster, ["logs", "plan"], {"planner"}) == ["planner"]
    assert "shelf" in _patient(cluster, ["ask", "--session", "she"], {"shelf"})
    cluster.does("ask", "A secret", "--session", "shed-of-eve", "--user", "eve")
    assert "shed-of-eve" in _patient(cluster, ["ask", "--user", "eve", "--session", "she"], {"shed-of-eve"})
    assert "shed-of-eve" not in _patient(cluster, ["ask", "--session", "she"], {"shelf"})
    assert _patient(cluster, ["tasks", "--project", "def"], {"default"}) == ["default"]


def test_notes_of_the_project_that_is_named_are_offered(cluster: Person) -> None:
    cluster.does("project", "create", "Shed")
    cluster.does("notes", "add", "Paint it green", "--project", "shed")
    words = ["notes", "show", "--project", "shed", "pa"]
    assert _patient(cluster, words, {"paint-it-green"}) == ["paint-it-green"]


def _patient(person: Person, words: Sequence[str], some: set[str]) -> list[str]:
    """What is offered; a machine that is busy may answer too late, and is asked again."""
    ends = time.monotonic() + PATIENCE
    while not some <= set(found := offered(person, *words)):
        assert time.monotonic() < ends, found
    return found


def test_without_a_cluster_names_are_not_offered_and_nothing_is_said(person: Person) -> None:
    assert offered(person, "tasks", "show", "") == []
    assert offered(person, "logs", "") == []
    assert not person.home.exists()


def test_a_cluster_that_does_not_answer_holds_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PROMPTDOCK_HOME", str(tmp_path))

    async def silent(_client: Client) -> complete.Names:
        await asyncio.sleep(PATIENCE)
        return [("never", "")]

    began = time.monotonic()
    assert complete._offered(silent, "") == []
    assert time.monotonic() - began < PATIENCE / 2
    assert capsys.readouterr() == ("", "")


def test_bash_takes_the_script_and_what_it_says(cluster: Person) -> None:
    script = """
source <(promptdock --show-completion)
COMP_WORDS=(promptdock perm); COMP_CWORD=1
_promptdock_completion promptdock
echo "${COMPREPLY[@]}"
"""
    here = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        env=cluster.environment(PYTHONPATH=str(ROOT), PATH=here),
        cwd=cluster.folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.stdout.split() == ["permissions"], done
