"""Where a row comes from that will act later: who made it, at whose request, and what that turn had read.

A hook, a task, a note, a profile, a prompt, a memory are stored words. What is made of them has at most the permission
of who made them, and knows whether they were written in a turn that had read foreign text. This is kept in the row's
`origin`, and only a person takes the mark off.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol

PERSON = "person"  # who makes what a person's own command makes; no agent has that name
# Of a row that says nothing about it: a release before this one, or another program wrote it.
BEFORE = "what nobody noted: it is older than these notes"
MADE = "made_after_reading"  # the field by which the result of a tool tells the mark of what it holds
_LONGEST = 300  # characters of what was read


@dataclass(frozen=True)
class Origin:
    """Who made something, and what they had read then."""

    by: str = ""  # the agent, or PERSON; "" where nobody noted it
    user: str = ""  # the person at whose request
    session: str = ""
    permissions: str = ""  # the name of the rules under which it was made
    foreign: str = ""  # what was read that others wrote; "" where nothing

    @classmethod
    def of(cls, kept: Any) -> Origin:
        """As a row or a request holds it; what holds none is marked, since nobody knows better."""
        if not isinstance(kept, Mapping) or not kept:
            return cls(foreign=BEFORE)
        texts = {name: kept.get(name) for name in cls.__dataclass_fields__}
        return cls(**{name: text[:_LONGEST] for name, text in texts.items() if isinstance(text, str)})

    def kept(self) -> dict[str, Any]:
        """As a row holds it."""
        return asdict(replace(self, foreign=self.foreign[:_LONGEST]))

    def over(self, before: Any) -> Origin:
        """Of a row that is changed: who changed it last made it, and a mark that is on it stays."""
        return replace(self, foreign=Origin.of(before).foreign or self.foreign)

    def trusted(self) -> Origin:
        """Without its mark: for a person alone to say."""
        return replace(self, foreign="")

    @property
    def told(self) -> str:
        """The mark in words; "" for none."""
        return f"made after reading {self.foreign}" if self.foreign else ""


class Made(Protocol):
    """A row that has an origin."""

    @property
    def origin(self) -> dict[str, Any]: ...


def mark(*rows: Made | None) -> str:
    """The first mark among rows."""
    return next((found for row in rows if row is not None and (found := Origin.of(row.origin).foreign)), "")


def marked(rows: Iterable[Made | None]) -> dict[str, Any]:
    """What the result of a tool that shows these rows says of their marks."""
    found = mark(*rows)
    return {MADE: found} if found else {}
