"""Where the streams of a command lead nowhere, or its locale cannot write what it says."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.cli.person import PATIENCE, Person

ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def shell(person: Person, line: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """A line for a shell, in which `promptdock` is the command."""
    command = f'promptdock() {{ "{sys.executable}" -m gateways.cli "$@"; }}; {line}'
    return subprocess.run(
        ["bash", "--norc", "-c", command],
        cwd=person.folder,
        env=person.environment(**settings),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


@pytest.mark.parametrize(
    ("line", "code", "told"),
    [
        ("promptdock tools list >&-", 0, ""),
        ("promptdock status >&- 2>&-", 3, ""),
        ("promptdock config show <&-", 0, ""),
        ("promptdock tools list | true; exit ${PIPESTATUS[0]}", 0, ""),
        ("promptdock tools list > /dev/full", 1, "No space left"),
        ("promptdock status 2> /dev/full", 3, ""),
    ],
)
def test_a_stream_that_leads_nowhere_ends_no_command_with_a_traceback(
    person: Person, line: str, code: int, told: str
) -> None:
    done = shell(person, line)
    assert done.returncode == code, done
    assert told in done.stderr
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr


def test_what_the_locale_cannot_write_is_written_as_an_escape(person: Person) -> None:
    done = shell(person, "promptdock tasks show é…", **ASCII)
    assert done.returncode == 3 and "Traceback" not in done.stderr
    done = shell(person, "promptdock tools show nö --json", **ASCII)
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["what"] == "there is no tool 'nö'"


def test_a_file_of_settings_that_is_not_utf8_is_named(person: Person) -> None:
    person.home.mkdir()
    file = person.home / ".env"
    file.write_bytes("ANTHROPIC_API_KEY=x".encode("utf-16"))
    file.chmod(0o600)
    told = person.types("config", "show")
    assert told.returncode == 0 and f"{file} does not count in full: it is not UTF-8" in told.stderr
    found = [one["told"] for one in person.reads("doctor")["findings"]]
    assert f"{file}: it is not UTF-8" in found


def test_the_place_of_a_stream_that_was_closed_is_taken_by_nothing_else(person: Person) -> None:
    script = (
        "import os; from gateways.cli.__main__ import _open_streams; _open_streams(); "
        "print(os.open('/dev/null', 0) > 2)"
    )
    done = shell(person, f'"{sys.executable}" -c "{script}" 2>&- <&-')
    assert done.stdout == "True\n"
