"""Notes from the command line."""

from __future__ import annotations

import pytest

from gateways.cli.commands.notes import _titled
from tests.cli.person import Person


def test_a_note_is_made_added_to_found_shown_and_deleted(cluster: Person) -> None:
    cluster.does("project", "create", "Orchard")
    of = ("--project", "orchard")
    assert "notes add TEXT --project orchard" in cluster.types("notes", "list", *of).stderr
    made = cluster.does("notes", "add", "-", *of, stdin="# Colours\n\nblue and green\n")
    assert made == "colours is made, in project orchard\n"
    assert cluster.does("notes", "add", "no red", "--title", "Colours", *of) == (
        "colours is longer now, in project orchard\n"
    )
    cluster.does("notes", "add", "We", "deploy", "on", "Fridays", *of)
    listed = cluster.reads("notes", *of)
    assert [note["name"] for note in listed["notes"]] == ["colours", "we-deploy-on-fridays"]
    assert "we-deploy-on-fridays  We deploy on Fridays" in cluster.does("notes", *of)
    assert cluster.does("notes", "show", "Colours", *of) == "# Colours\n\nblue and green\n\nno red\n"
    [hit] = cluster.reads("notes", "search", "what", "is", "green", *of)["notes"]
    assert (hit["name"], hit["line"]) == ("colours", "blue and green")
    assert "holds a word of it" in cluster.types("notes", "search", "zebra", *of).stderr
    assert "colours --project orchard --yes" in cluster.is_refused(2, "notes", "delete", "colo", *of)
    assert cluster.does("notes", "delete", "colo", "--yes", *of) == "colours is deleted\n"
    assert [note["name"] for note in cluster.reads("notes", *of)["notes"]] == ["we-deploy-on-fridays"]


def test_notes_are_those_of_the_active_project(cluster: Person) -> None:
    cluster.does("project", "create", "Meadow", "--use", "--user", "mia")
    assert "in project meadow" in cluster.does("notes", "add", "Mow in June", "--user", "mia")
    assert [n["name"] for n in cluster.reads("notes", "--user", "mia")["notes"]] == ["mow-in-june"]
    assert cluster.reads("notes", "--user", "tom")["project"] == "default"


def test_a_note_that_there_is_not_is_a_wrong_argument_and_nothing_is_no_note(cluster: Person) -> None:
    told = cluster.is_refused(2, "notes", "show", "nowhere")
    assert "there is no note 'nowhere'" in told and "notes list --project default" in told
    assert "nothing to note" in cluster.is_refused(2, "notes", "add", " ")


@pytest.mark.parametrize(
    ("text", "title", "content"),
    [
        ("# The API\n\nuse REST", "The API", "use REST"),
        ("Deploy on Fridays", "Deploy on Fridays", "Deploy on Fridays"),
        (f"{'word ' * 30}\nmore", f"{('word ' * 20).strip()}…", f"{'word ' * 30}\nmore"),
    ],
)
def test_the_first_line_of_a_text_is_its_title(text: str, title: str, content: str) -> None:
    assert _titled(text) == (title, content)
