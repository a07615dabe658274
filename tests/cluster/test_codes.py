"""How `ask` ends tells a program what was wrong: its exit code is that of the error that ended the turn."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.support.processes import PATIENCE, Site, Worker

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
    command = [sys.executable, "-m", "gateways.cli", "ask", words, "--session", words]
    done = subprocess.run(
        [*command, "--json"], env=place.environment, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == code, done
    output = json.loads(done.stdout)
    assert output["schema"] == "promptdock.ask.v1"
    assert output.get("error", {}).get("code", 0) == code
    assert told.casefold() in output["content"].casefold()
