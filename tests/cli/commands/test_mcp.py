"""MCP servers from the command line: added, listed, tried and removed, with nothing running."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli.person import Person

SCRIPT = str(Path(__file__).parents[2] / "support" / "mcp_server.py")


def test_a_server_is_added_tried_listed_and_removed(person: Person) -> None:
    assert "No MCP server is configured" in person.types("mcp").stderr
    added = person.types("mcp", "add", "notes", "--", sys.executable, "-P", SCRIPT, "well")
    assert added.returncode == 0 and "mcp test notes" in added.stderr
    file = person.home / "mcp.json"
    assert json.loads(file.read_text())["mcpServers"]["notes"]["args"] == ["-P", SCRIPT, "well"]
    assert file.stat().st_mode & 0o777 == 0o600
    tried = person.reads("mcp", "test", "notes")
    assert (tried["called"], tried["resources"], tried["prompts"]) == ("tester 1", 1, 1)
    assert [tool["name"] for tool in tried["tools"]] == ["echo", "look", "slow", "die"]
    [listed] = person.reads("mcp", "list")["servers"]
    assert (listed["name"], listed["type"], listed["agents"]) == ("notes", "stdio", {})
    assert "already" in person.is_refused(2, "mcp", "add", "notes", "--url", "https://n.example/mcp")
    person.does("mcp", "add", "notes", "--url", "https://n.example/mcp", "--replace")
    person.does("mcp", "remove", "notes")
    assert person.reads("mcp")["servers"] == []


def test_a_server_that_cannot_begin_is_told_with_its_last_words(person: Person) -> None:
    person.does("mcp", "add", "broken", "--", sys.executable, "-P", SCRIPT, "dies")
    told = person.is_refused(1, "mcp", "test", "broken")
    assert "it ended with exit code 7: there is no such file" in told


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("add", "two words", "--", "x"), "no plain name"),
        (("add", "x"), "it needs a command, or a url"),
        (("add", "x", "--env", "TOKEN", "--", "y"), "write it as NAME=value"),
        (("add", "x", "--env", "A=${NOT_SET_ANYWHERE}", "--", "y"), "needs the variable NOT_SET_ANYWHERE"),
        (("remove", "x"), "there is no MCP server 'x'"),
        (("test", "x"), "there is no MCP server 'x'"),
    ],
)
def test_what_cannot_be_done_is_refused_in_words(person: Person, words: tuple[str, ...], why: str) -> None:
    assert why in person.is_refused(2, "mcp", *words)


def test_a_file_that_came_with_a_folder_is_named_and_starts_nothing(person: Person) -> None:
    (person.folder / "mcp.json").write_text(
        '{"mcpServers": {"theirs": {"command": "touch", "args": ["pwned"]}}}'
    )
    listed = person.reads("mcp")
    assert listed["servers"] == [] and "not trusted" in listed["problems"][0]
    person.is_refused(2, "mcp", "test", "theirs")
    assert not (person.folder / "pwned").exists()
    found = person.types("doctor", "--json").stdout
    assert "mcp.json: it does not count" in found
