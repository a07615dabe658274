"""What the command line says of itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from gateways.cli.app import commands
from shared.client.views.status import release
from tests.cli.person import Person


def nouns(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words of each command that has others below it."""
    below = getattr(command, "commands", {})
    if below:
        yield words
    for name, sub in below.items():
        yield from nouns(sub, (*words, name))


NOUNS = list(nouns(commands()))


def test_each_noun_lists_its_commands_in_whole_lines(person: Person) -> None:
    for words in NOUNS:
        told = person.does(*words, "--help")
        assert "..." not in told.replace("[ARGS]...", ""), told


def test_every_noun_that_can_list_does_so_by_itself(person: Person) -> None:
    """Whether it works or needs a cluster: it is no wrong usage."""
    listing = [words for words in NOUNS if words and {"list"} & set(_below(words))]
    assert len(listing) > 5
    for words in listing:
        assert person.types(*words).returncode in (0, 3), words


def test_the_list_of_all_says_of_each_command_what_its_own_help_begins_with() -> None:
    root = commands()
    with root.make_context("promptdock", [], resilient_parsing=True) as context:
        listed: dict[str, Any] = {
            name: root.get_command(context, name) for name in root.list_commands(context)
        }
    assert list(listed) == list(root.commands)
    for name, command in root.commands.items():
        assert listed[name].get_short_help_str() == command.get_short_help_str() != "", name


def _below(words: tuple[str, ...]) -> dict[str, Any]:
    command: Any = commands()
    for word in words:
        command = command.commands[word]
    return dict(command.commands)


def test_the_version_is_that_of_the_release(person: Person) -> None:
    assert person.does("--version") == f"PromptDock {release()}\n"


@pytest.mark.parametrize("words", [["-h"], ["help"]])
def test_help_is_asked_for_in_all_the_usual_ways(person: Person, words: list[str]) -> None:
    assert person.does(*words).splitlines()[1:] == person.does("--help").splitlines()[1:]


def test_help_of_a_command_is_that_of_the_command(person: Person) -> None:
    told = person.does("help", "tasks", "list")
    assert told == person.does("tasks", "list", "-h")
    assert "--status" in told and "--no-pager" in told


@pytest.mark.parametrize("words", ["--no-color tasks list", "tasks --no-color list", "tasks list --no-color"])
def test_options_of_all_commands_stand_anywhere(person: Person, words: str) -> None:
    assert "there is nothing stored yet" in person.is_refused(3, *words.split())
