"""Projects and repositories from the command line, and in the chat."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cli.person import Person
from tests.tools.ground import repository


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository of a person's own."""
    return repository(tmp_path / "kiosk", {"README.md": "# Kiosk\n"}).path


def test_a_project_is_made_gone_to_and_shown(cluster: Person) -> None:
    made = cluster.types("project", "create", "Garden", "--use", "--user", "gil")
    assert (made.returncode, made.stdout) == (0, "garden is made\n")
    listed = json.loads(cluster.types("project", "list", "--user", "gil", "--json").stdout)
    assert listed["active"] == "garden" and {"default", "garden"} <= {p["id"] for p in listed["projects"]}
    assert (
        json.loads(cluster.types("project", "list", "--user", "ned", "--json").stdout)["active"] == "default"
    )
    assert "garden  Garden  active" in cluster.types("project", "show", "--user", "gil").stdout
    used = cluster.types("project", "use", "default", "--user", "gil")
    assert used.stdout == "user:gil works on default from now on\n"
    wrong = cluster.types("project", "use", "gardn", "--user", "gil")
    assert wrong.returncode == 2 and "garden" in wrong.stderr


def test_a_project_is_changed_put_away_taken_back_and_deleted(cluster: Person) -> None:
    cluster.does("project", "create", "Attic")
    changed = cluster.does("project", "edit", "attic", "--name", "Loft", "--description", "Old things")
    assert changed == "attic is changed: name, description\n"
    shown = cluster.does("project", "show", "attic")
    assert shown.startswith("attic  Loft  active\n  Old things\n")
    assert "no option was given" in cluster.is_refused(2, "project", "edit", "attic")
    assert "is paused" in cluster.does("project", "pause", "attic")
    assert cluster.reads("project", "resume", "attic")["resumed"] == "attic"
    assert "nothing of it is lost" in cluster.does("project", "archive", "attic")
    listed = cluster.types("project", "list")
    assert "attic" not in listed.stdout and "archived: 1 more" in listed.stderr
    assert "attic" in cluster.does("project", "list", "--all")
    assert cluster.does("project", "resume", "attic") == "attic goes on\n"
    refused = cluster.is_refused(2, "project", "delete", "attic")
    assert "with its 0 tasks" in refused and "project delete attic --yes" in refused
    assert cluster.does("project", "delete", "attic", "--yes") == "attic is deleted\n"
    assert "attic" not in cluster.does("project", "list", "--all")


def test_a_repository_is_added_once_and_taken_out_again(cluster: Person, shop: Path) -> None:
    cluster.types("project", "create", "Yard")
    added = cluster.types("repo", "add", str(shop), "--kind", "backend", "--project", "yard")
    assert added.stdout == f"kiosk  backend  main  {shop}\n" and "in project yard" in added.stderr
    again = cluster.types("repo", "add", str(shop), "--project", "yard")
    assert again.stdout == added.stdout and "registered already; changed: nothing" in again.stderr
    other = cluster.types("repo", "add", str(shop))
    assert other.returncode == 1 and "belongs to project 'yard' already" in other.stderr
    assert "repo remove kiosk --project yard" in other.stderr
    gone = json.loads(cluster.types("repo", "remove", str(shop), "--project", "yard", "--json").stdout)
    assert (gone["removed"], gone["files_kept"]) == ("kiosk", str(shop))
    assert (shop / "README.md").exists()
    assert "kiosk" not in cluster.types("repo", "list").stdout


def test_the_chat_lists_projects_and_goes_to_one(cluster: Person) -> None:
    cluster.types("project", "create", "Patio")
    said = cluster.types("chat", "--user", "pia", stdin="/project\n/project patio\n/project\n/quit\n")
    assert "* default" in said.stdout and "works on patio (no repository yet)" in said.stdout
    assert "* patio" in said.stdout.partition("works on patio")[2]


def test_what_a_list_holds_is_shown_of_a_tool(cluster: Person) -> None:
    told = cluster.does("tools", "show", "consult_researcher")
    assert re.search(r"repos +list of frontend\|backend\|both or string", told), told


def test_who_stands_in_a_repository_that_agents_do_not_know_is_told_how_to_add_it(
    cluster: Person, shop: Path
) -> None:
    def opened(folder: Path) -> str:
        done = Person(folder).types("chat", stdin="/quit\n", PROMPTDOCK_HOME=str(cluster.home))
        return done.stdout + done.stderr

    (shop / "src").mkdir()
    for folder in (shop, shop / "src"):
        assert f"repo add {shop}" in opened(folder)
    assert "repo add" not in opened(shop.parent), "it is no repository"
    cluster.does("repo", "add", str(shop))
    assert "repo add" not in opened(shop)
    cluster.does("repo", "remove", "kiosk")
