"""Blocks of Markdown as a terminal shows them: prose is wrapped between words, code stays as it can be copied."""

from __future__ import annotations

import re
from collections.abc import Iterable
from io import StringIO
from typing import TYPE_CHECKING

from shared.client.text.blocks import TextBlock
from shared.client.text.safe import safe

if TYPE_CHECKING:
    from rich.console import RenderableType

_WIDEST = 100  # columns; longer lines of prose are hard to read
_BARE = re.compile(r"\x1b\[[0-9;]*m")


def draw(blocks: Iterable[TextBlock], width: int) -> str:
    """With the colours of a terminal; nothing in it that came from a model commands the terminal."""
    return "".join(f"{chr(10) * block.apart}{_one(block, width)}" for block in blocks)


def _one(block: TextBlock, width: int) -> str:
    from rich.markdown import Markdown
    from rich.padding import Padding

    if block.kind == "code":
        return ansi(_code(block), width, whole=True)
    # Without links of the terminal's own: a link must show where it leads.
    prose = Padding(Markdown(safe(block.text), hyperlinks=False), (0, 0, 0, block.indent))
    lines = [line.rstrip() for line in ansi(prose, min(_WIDEST, width)).split("\n")]
    while lines and not _BARE.sub("", lines[0]).strip():
        lines.pop(0)
    while lines and not _BARE.sub("", lines[-1]).strip():
        lines.pop()
    return "\n".join([*lines, ""])


def _code(block: TextBlock) -> RenderableType:
    """No background, no margin and no line broken by us: what is selected is the code."""
    from rich.syntax import Syntax

    language = block.language if re.fullmatch(r"[A-Za-z0-9+#._-]{1,20}", block.language) else "text"
    code = Syntax("", language, theme="ansi_dark", background_color="default").highlight(safe(block.text))
    code.rstrip()
    return code


def ansi(thing: RenderableType, width: int, whole: bool = False) -> str:
    """What a terminal of this width draws; `whole` leaves the breaking of lines to it."""
    from rich.console import Console

    drawn = StringIO()
    Console(file=drawn, force_terminal=True, width=width, highlight=False).print(thing, soft_wrap=whole)
    return drawn.getvalue()
