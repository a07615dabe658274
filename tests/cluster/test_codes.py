"""How `ask` ends tells a program what was wrong: its exit code is that of the error that ended the turn."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.processes import Site, Worker

RULES: list[dict[str, Any]] = [
    {"user": "key", "steps": [{"status": 401, "message": "invalid x-api-key"}] * 3},
    {"user": "model", "steps": [{"status": 404, "message": "model: claude-nope"}]},
    {"user": "money", "steps": [{"status": 400, "message": "Your credit balance is too low"}]},
    {"user": "wrong", "steps": [{"status": 400, "message": "it cannot be"}]},
]


@pytest.fixture(scope="module")
def chatter(place: Site) -> Worker:
    """Somebody answers."""
    return place.up("chatter")[0]


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ("key", 4, "promptdock key set"),
        ("model", 4, "PROMPTDOCK_MODEL"),
        ("money", 4, "Add credit"),
        ("wrong", 1, "it cannot be"),
        ("hello", 0, ""),
    ],
)
def test_ask_ends_with_the_code_of_what_was_wrong(
    place: Site, chatter: Worker, words: str, code: int, told: str
) -> None:
    done = place.run("ask", words, "--session", words, "--json")
    assert done.returncode == code, done
    output = json.loads(done.stdout)
    assert output["schema"] == "promptdock.ask.v1"
    assert output.get("error", {}).get("code", 0) == code
    assert told.casefold() in output["content"].casefold()
