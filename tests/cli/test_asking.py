"""A question of a command is ended by the first Ctrl-C, at a real terminal."""

from __future__ import annotations

import sys

import pytest

from tests.cli.commands.test_chat import Terminal
from tests.cli.person import PATIENCE, Person

_SURE = """
import sys
from gateways.cli import ending, screen
from gateways.cli.run import run
import typer

async def work(settings):
    screen.sure("this deletes it", False, "promptdock delete")
    print("deleted")

def command():
    try:
        run(work)
    except typer.Exit as left:
        return left.exit_code

sys.exit(command())
"""


@pytest.mark.parametrize(
    ("key", "code", "why"),
    [("\x03", 130, "it was interrupted"), ("\x04", 2, "it was not answered"), ("n\r", 2, "not confirmed")],
)
def test_one_key_ends_the_question_and_nothing_is_changed(
    key: str, code: int, why: str, person: Person
) -> None:
    terminal = Terminal(person, program=[sys.executable, "-c", _SURE])
    try:
        terminal.asks("Go on? [y/N]: ")
        terminal.types(key)
        assert terminal.process.wait(PATIENCE) == code
        told = terminal.rest()
    finally:
        terminal.close()
    assert "nothing was changed" in told and why in told
    assert "deleted" not in told and "Abort" not in told


def test_one_ctrl_c_ends_the_question_for_a_key(person: Person) -> None:
    terminal = Terminal(person, "key", "set")
    try:
        terminal.asks("API key (hidden): ")
        terminal.types("\x03")
        assert terminal.process.wait(PATIENCE) == 130
        told = terminal.rest()
    finally:
        terminal.close()
    assert "nothing was changed" in told
    assert not (person.home / ".env").exists()
