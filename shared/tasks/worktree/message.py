"""What commits and merges of tasks say: a subject from the task's own words, what was asked, how it was checked."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable

SUBJECT, _WIDTH = 72, 72
_ASKED, _SAID = 1500, 2000  # characters of what was asked, and of what the agent says
_HEADING = re.compile(r"#{1,6}\s+(.*?)[\s#]*")
_LABEL = re.compile(r"(?i)(?:command file|task|goal|title|objective)\s*[:\u2013\u2014-]\s+(?=\S)")
# Headings that name a part of a command file, and not what is to be done.
_PARTS = frozenset(
    """
    a acceptance and background brief command context description details file goal goals instructions introduction
    motivation objective objectives overview plan problem purpose requirements scope spec specification
    summary task tasks the title what why work
    """.split()  # noqa: SIM905
)
_OURS = re.compile(
    r"(?m)^## (?:Done before|Read first|Feedback on what was done before|How attempt \d+ ended|It is done when)$"
)  # what the brief adds
_MARKS = ("#", "-", "*", ">", "|", "`", "+", "~")


def title(text: str, given: str = "") -> str:
    """What a task is called: as it was `given`, unless that only names a part of a text; else by its command file."""
    if (said := _named(given)) and not _is_part(said):
        return said
    for line in text.splitlines():
        plain = line.strip()
        heading = _HEADING.fullmatch(plain)
        told = _named(heading[1] if heading else plain)
        if told and not _is_part(told) and re.search(r"\w", told):
            return told if heading else _sentence(told)
    return said or "Work of a task"


def subject(text: str) -> str:
    """One line for a log, cut between words."""
    line = " ".join(text.split())
    return (
        line if len(line) <= SUBJECT else textwrap.shorten(line, SUBJECT, placeholder=" …") or line[:SUBJECT]
    )


def commit(head: str, said: str, asked: str, checks: Iterable[str] = ()) -> str:
    """The message of a commit of a task's work."""
    return _message(head, _cut(said, _SAID), _asked(head, asked), _checked(checks))


def merge(slug: str, head: str, asked: str, said: str, proof: str) -> str:
    """The message of the merge of a task's branch."""
    return _message(f"Merge {slug}: {head}", _cut(said, _SAID), _asked(head, asked), proof)


def _message(head: str, *parts: str) -> str:
    return "\n\n".join([subject(head), *(_wrapped(part) for part in parts if part.strip())]) + "\n"


def _asked(head: str, text: str) -> str:
    """What was asked, without what the subject says already and without what was added when it was sent."""
    text = _OURS.split(text.strip())[0].strip()
    first, _, rest = text.partition("\n")
    heading = _HEADING.fullmatch(first.strip())
    if heading and _named(heading[1]).casefold() in (head.casefold(), ""):
        text = rest.strip()
    return f"Asked for:\n\n{_cut(text, _ASKED)}" if text and text.casefold() != head.casefold() else ""


def _checked(commands: Iterable[str]) -> str:
    lines = [f"- {' '.join(command.split())}" for command in commands]
    return "\n".join(["Checked with:", "", *lines]) if lines else ""


def _named(text: str) -> str:
    return _LABEL.sub("", " ".join(text.strip("# \t").split()), count=1).strip("*_ ")


def _is_part(text: str) -> bool:
    words = re.findall(r"\w+", text.casefold())
    return bool(words) and _PARTS.issuperset(words)


def _sentence(text: str) -> str:
    """The first sentence of a paragraph; a list's mark before it goes."""
    plain = re.sub(r"^(?:[-*+]|\d+[.)])\s+", "", text)
    return re.split(r"(?<=[.!?])\s", plain, maxsplit=1)[0].rstrip(".")


def _cut(text: str, most: int) -> str:
    text = text.strip()
    return text if len(text) <= most else text[:most].rsplit(None, 1)[0] + " …"


def _wrapped(text: str) -> str:
    """Long lines of prose broken; lists, tables and code stay as they are."""
    lines, fenced = [], False
    for line in text.splitlines():
        fenced ^= line.lstrip().startswith(("```", "~~~"))
        prose = not fenced and line[:1].strip() and not line.startswith(_MARKS)
        lines += (
            textwrap.wrap(line, _WIDTH, break_long_words=False, break_on_hyphens=False) if prose else [line]
        )
    return "\n".join(lines)
