"""How finished text looks: Markdown on a terminal that may be drawn on, plain lines elsewhere.

Nothing that came from a model or a stranger reaches the terminal unless `safe` has seen it.
"""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from shared.bus.messages import Output
from shared.client.local.typed import runnable, text_of
from shared.client.text.blocks import TextBlock, blocks
from shared.client.text.safe import safe
from shared.client.views import questions
from shared.client.views.permissions import approvals

_NUMBER = re.compile(r" *\d+\. ")
_LEAD = re.compile(r"· | *(?:\d+\. )?")
_ASKING = ("awaiting_input", "awaiting_approval")


class Screen(Protocol):
    """Prints what is finished, once."""

    streams: bool  # whether an answer is shown block by block while it comes

    def answer(self, output: Output) -> None:
        """What Chatter said."""

    def write(self, written: Sequence[TextBlock], demo: bool) -> None:
        """Blocks of an answer that is being written."""

    def options(self, output: Output) -> None:
        """What a question can be answered with, below it."""

    def note(self, text: str) -> None:
        """A quiet line beside the conversation."""

    def block(self, text: str) -> None:
        """What a command of the person shows."""

    def error(self, text: str) -> None:
        """What went wrong."""

    def person(self, text: str) -> None:
        """What the person typed."""


def options(output: Output) -> str:
    """A question's options by number, and how they are answered."""
    if output.status == "awaiting_approval":
        always = "  2. always\n" if approvals.lasts(output.approval) else ""
        return f"  1. allow once\n{always}  3. deny\n(answer with a number; /deny WHY gives a reason)"
    told = questions.numbered(output.options or [])
    how = "answer with a number, or in words" if told else "your next message answers this"
    return "\n".join([*told, f"({how})"])


def words(output: Output) -> str:
    """An output's text as it is shown, with the demo model's label."""
    text = text_of(output)
    if question := questions.unsaid(output):
        text = f"{text}\n{question}"
    return safe(text)


def hanging(text: str, width: int) -> str:
    """The text with long lines broken between words, each rest below where its line began."""
    return "\n".join(_hung(row, width) for row in text.split("\n"))


def _hung(row: str, width: int) -> str:
    found = _LEAD.match(row)
    began = found.end() if found else 0
    further = 2 if row.startswith("  ") and not _NUMBER.match(row) else 0
    rest = " " * min(began + further, width // 2)
    return textwrap.fill(row, width, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False)


class Plain:
    """For pipes, NO_COLOR and dumb terminals."""

    streams = False

    def answer(self, output: Output) -> None:
        print(words(output), flush=True)
        self.options(output)

    def write(self, written: Sequence[TextBlock], demo: bool) -> None:
        """An answer is printed as it is, and whole."""

    def options(self, output: Output) -> None:
        if output.status in _ASKING:
            print(safe(options(output)), flush=True)

    def note(self, text: str) -> None:
        print(f"… {safe(text)}", file=sys.stderr, flush=True)

    def block(self, text: str) -> None:
        print(safe(text), flush=True)

    def error(self, text: str) -> None:
        print(f"error: {safe(text)}", file=sys.stderr, flush=True)

    def person(self, text: str) -> None:
        """Stands in the terminal already, or came from a pipe."""


class Rich:
    """For terminals; everything goes to the scrollback above the live area."""

    streams = True

    def answer(self, output: Output) -> None:
        if output.status == "complete":
            self.write(blocks(words(output)), demo=False)
        else:
            self._text(words(output))
        self.options(output)

    def write(self, written: Sequence[TextBlock], demo: bool) -> None:
        from shared.client.text.drawn import draw

        ours = [replace(block, text=runnable(block.text)) for block in written] if demo else written
        self._draw(draw(ours, _columns()))

    def options(self, output: Output) -> None:
        if output.status in _ASKING:
            self._text(options(output), "cyan")

    def note(self, text: str) -> None:
        self._text(f"· {text}", "dim")

    def block(self, text: str) -> None:
        from rich.text import Text

        self._print(Text(safe(text)), whole=True)

    def error(self, text: str) -> None:
        self._text(text, "red")

    def person(self, text: str) -> None:
        self._text(f"\n> {text}", "bold")

    def _text(self, text: str, style: str = "") -> None:
        from rich.text import Text

        self._print(Text(hanging(safe(text), _columns()), style=style))

    def _print(self, thing: Any, whole: bool = False) -> None:
        from shared.client.text.drawn import ansi

        self._draw(ansi(thing, _columns(), whole))

    def _draw(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()


def _columns() -> int:
    return shutil.get_terminal_size().columns
