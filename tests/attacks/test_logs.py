"""What a model says in the log of a worker in the foreground: shown, and obeyed by no terminal."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.guards import guarded

ROOT = Path(__file__).parents[2]
LOGS = """
import json, logging, sys
from shared import log
log.setup(style=sys.argv[1])
text = json.loads(sys.stdin.read())
log.bind_contextvars(agent=text)
log.get().info(text, said=text, many=[text, {text: text}])
log.get().info("fine", **{text: 1})
logging.getLogger("library").error("it said %s", text)
try:
    raise ValueError(text)
except ValueError:
    log.get().exception("failed")
"""
HOSTILE = {
    "a title": "\x1b]0;owned\x07",
    "a clipboard": "\x1b]52;c;b3duZWQ=\x07",
    "a link": "\x1b]8;;https://a.invalid\x1b\\here\x1b]8;;\x1b\\",
    "a colour": "\x1b[2J\x1b[31mred",
    "one byte": "\x9b31m \x9d0;owned\x9c \x90q\x9c",
    "a forged line": "done\n[INFO] Ada allowed it id=7",
    "a forged start": "done\r[INFO] Ada allowed it",
    "strange line breaks": "a\x0bb\x0cc\x85d\u2028e\u2029[INFO] f",
    "turned around": "\u202egnp.exe\u2066 \u200f",
    "unseen": "a\u200bb\u00adc\ufeff\U000e0041\u3164d\u2800",
    "backspaces": "no\x08\x08yes\x7f\x00",
}
WORDS = "Grüße, 你好, مرحبا, 👍🏽 and ça va"


def logged(text: str, style: str) -> list[str]:
    argv, given = [sys.executable, "-c", LOGS, style], json.dumps(text).encode()
    done = subprocess.run(argv, input=given, capture_output=True, cwd=ROOT, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stderr.decode().removesuffix("\n").split("\n")


@guarded("plain-logs")
@pytest.mark.parametrize("style", ["console", "json"])
def test_nothing_in_a_log_is_obeyed_by_a_terminal_and_one_record_is_one_line(style: str) -> None:
    for what, text in HOSTILE.items():
        lines = logged(text, style)
        assert len(lines) == 4, (what, lines)
        for line in lines:
            assert line.startswith("[" if style == "console" else "{"), (what, line)
            assert all(char.isprintable() and char not in "\u3164\u2800" for char in line), (what, line)
            assert len(line.splitlines()) == 1 and not line.startswith("[INFO] Ada"), (what, line)


@pytest.mark.parametrize("style", ["console", "json"])
def test_the_words_of_all_languages_stay_readable(style: str) -> None:
    lines = logged(WORDS, style)
    assert len(lines) == 4 and all(WORDS in line for line in lines)


def test_a_program_that_reads_the_lines_reads_what_was_logged() -> None:
    for text in HOSTILE.values():
        first = json.loads(logged(text, "json")[0])
        assert (first["event"], first["said"], first["agent"]) == (text, text, text)
