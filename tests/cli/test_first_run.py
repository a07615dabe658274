"""What everybody sees first: nothing registered, no key, one sentence; and in the end a merged change."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.commands.test_chat import Terminal
from tests.cli.person import PATIENCE, Person
from tests.tools.ground import git


@pytest.fixture
def newcomer(tmp_path: Path) -> Iterator[Person]:
    """Somebody who has just brought a cluster up, and nothing else."""
    person = Person(tmp_path)
    up = person.types("up", "--detach")
    try:
        assert up.returncode == 0, up.stdout + up.stderr
        yield person
    finally:
        person.types("down")


def test_the_demo_goes_from_a_sentence_over_plan_workers_and_checks_to_a_merge_that_is_allowed(
    newcomer: Person,
) -> None:
    told = newcomer.does("ask", "Build a guest book with an API")
    names = re.findall(r"^\d\. ([\w-]+): ", told, re.MULTILINE)
    assert len(names) == 3, told
    assert f"{names[2]}: Put together a guest book with an API (backend, after 1 and 2)" in told
    ends = time.monotonic() + PATIENCE
    while {row["status"] for row in newcomer.reads("tasks")["tasks"]} != {"COMPLETED"}:
        assert time.monotonic() < ends, newcomer.does("tasks")
    page = newcomer.reads("tasks", "show", names[1])["results"]
    assert [len(page), len(page[0]["commits"]), page[0]["verified"]] == [1, 2, "verified"], "it was corrected"
    before = git(newcomer.home / "scratch", "rev-parse", "main")
    merging = Terminal(newcomer, "ask", "Merge it")
    try:
        for name in names:
            merging.shows(f"While you were away: Task {name}")
        merging.shows("Chatter asks for permission: merge promptdock/")
        merging.shows("yes, always or no?")
        assert git(newcomer.home / "scratch", "rev-parse", "main") == before
        merging.types("perhaps\r")
        merging.shows("yes, always or no?")
        merging.types("yes\r")
        merging.shows("is merged into main")
        assert merging.process.wait(PATIENCE) == 0
    finally:
        merging.close()
    made = {path.name for path in (newcomer.home / "scratch" / "demo" / "guest-book").iterdir()}
    assert made == {"data.json", "index.html", "README.md"}
    subjects = git(newcomer.home / "scratch", "log", "--format=%s", "main").splitlines()
    assert sum(subject.startswith("Merge ") for subject in subjects) == 1
    assert "I know of nothing" in newcomer.does("ask", "Merge it")
