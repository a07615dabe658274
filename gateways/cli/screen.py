"""What the command line prints: data on stdout, talk on stderr, nothing that a terminal would obey."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TextIO

import typer

from gateways.cli import pager, remedy
from shared.client.local.typed import called, runnable
from shared.client.text.blocks import TextBlock, blocks
from shared.client.text.safe import LONGEST, encoded, line, safe
from shared.client.text.times import ago, moment, since
from shared.errors import Interrupted, PromptDockError, UsageError

__all__ = [
    "Styled", "ago", "asking", "bad", "complain", "document", "faint", "good", "manner", "moment", "out", "paged",
    "record", "since", "state", "strong", "sure", "table", "talk", "typed", "warning",
]  # fmt: skip

Card = dict[str, Any]
_CELL = 200  # characters of a cell
_STATE = ("state", "status")  # columns that stay whole; so do those in colours
_ENDLESS = 100_000  # columns of what is no terminal
_NARROWEST = 40


@dataclass
class Manner:
    """How this process prints, as its options say (options.py)."""

    json: bool = False
    colour: bool = True
    pager: bool = True
    debug: bool = False
    whole: bool = False


manner = Manner()


def begin(words: Sequence[str]) -> None:
    """A command that was typed so. Whether it prints JSON counts also for an error in what was typed."""
    vars(manner).update(vars(Manner(json="--json" in words)))


@dataclass(frozen=True)
class Styled:
    """Text with a style, which only a terminal shows."""

    text: str
    style: str  # as rich names it

    def __str__(self) -> str:
        return self.text


Said = str | Styled


def good(text: object) -> Styled:
    """What is as it should be."""
    return Styled(str(text), "green")


def bad(text: object) -> Styled:
    """What failed."""
    return Styled(str(text), "bold red")


def warning(text: object) -> Styled:
    """What wants a look, or a person."""
    return Styled(str(text), "yellow")


def faint(text: object) -> Styled:
    """What stands beside."""
    return Styled(str(text), "bright_black")


def strong(text: object) -> Styled:
    """What is looked for first."""
    return Styled(str(text), "bold")


_STATES = {
    "green": "completed merged idle allowed passed verified taken ok on",
    "cyan": "in_progress working running started busy",
    "yellow": "waiting_input waiting awaiting_approval paused pending asking skipped unverified draining discarded",
    "bold red": "failed blocked offline stuck denied cancelled stopped dead off expired",
}
_STYLE = {word: style for style, words in _STATES.items() for word in words.split()}


def state(text: object) -> Said:
    """A state in its colour: `COMPLETED, merged`, `working`."""
    told = str("" if text is None else text)
    style = _STYLE.get(told.partition(",")[0].strip().casefold())
    return Styled(told, style) if style else told


# Printing -------------------------------------------------------------------------------------------

_CODES = {
    "bold": "1", "bold red": "1;31", "red": "31", "green": "32", "yellow": "33", "cyan": "36", "bright_black": "90",
}  # fmt: skip
_held: list[str] | None = None  # what is printed while it is kept for the pager
_later: list[str] = []


def colours(stream: TextIO) -> bool:
    """Whether what goes there is read on a terminal by somebody who wants colours (no-color.org)."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not manner.colour
    return not plain and stream.isatty()


def out(*said: Said) -> None:
    """Data for people."""
    coloured = colours(sys.stdout)
    _write("".join(_dressed(part, coloured) for part in said))


def draws() -> bool:
    """Whether stdout is a terminal that may be drawn on."""
    return colours(sys.stdout) and bool(os.environ.get("TERM"))


def write(written: Sequence[TextBlock], demo: bool) -> None:
    """Blocks of an answer, on a terminal; what is the demo's or ours has commands that work as printed."""
    from shared.client.text.drawn import draw

    ours = [replace(block, text=runnable(block.text)) for block in written] if demo else written
    print(draw(ours, shutil.get_terminal_size().columns), end="", flush=True)


def answer(text: str) -> None:
    """A whole answer: exact for a pipe, drawn on a terminal."""
    if draws():
        write(blocks(text), demo=False)
    else:
        out(text)


def talk(*said: Said) -> None:
    """Words beside the data; commands in them work as printed."""
    coloured = colours(sys.stderr)
    if len(said) == 1 and isinstance(said[0], str):
        said = (folded(said[0], indent="  "),)
    parts = (runnable(part) if isinstance(part, str) else part for part in said)
    told = "".join(_dressed(part, coloured) for part in parts)
    if _held is None:
        print(told, file=sys.stderr, flush=True)
    else:
        _later.append(told)


def _dressed(part: Said, coloured: bool) -> str:
    text = safe(str(part))
    if isinstance(part, str) or not coloured or not text:
        return text
    return f"\x1b[{_CODES[part.style]}m{text}\x1b[0m"


def _write(text: str) -> None:
    if _held is None:
        print(text, flush=True)
    else:
        _held.append(text)


@contextlib.contextmanager
def paged() -> Iterator[None]:
    """What is printed inside goes through the pager where it is longer than the terminal; talk comes behind it."""
    global _held
    if _held is not None or manner.json or not (manner.pager and sys.stdout.isatty() and sys.stdin.isatty()):
        yield
        return
    _held = []
    try:
        yield
    finally:
        text, _held = "".join(f"{part}\n" for part in _held), None
        if text and not (pager.wanted(text) and pager.shows(text)):
            print(text, end="", flush=True)
        for told in _later:
            print(told, file=sys.stderr, flush=True)
        _later.clear()


def document(name: str, /, **fields: Any) -> None:
    """The one JSON document of a command."""
    record({"schema": f"promptdock.{name}.v1", **fields})


def record(value: Any) -> None:
    """One JSON line of a stream."""
    text = encoded(value)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(value, default=str)
    print(text, flush=True)


def table(
    rows: Sequence[Sequence[object]], heads: Sequence[str], empty: str = "There is nothing to list."
) -> None:
    """Columns that fit the line, texts cut before states, or with -v on more lines; `empty` where there are none."""
    if not rows:
        talk(empty)
        return
    from rich.console import Console  # 60 ms, which only lists pay for
    from rich.table import Table
    from rich.text import Text

    from shared.client.text.columns import widths

    told = [[_cell(value) for value in row] for row in rows]
    columns = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    overflow: Literal["fold", "ellipsis"] = "fold" if manner.whole else "ellipsis"
    states = {at for at, head in enumerate(heads) if head in _STATE or any(row[at].style for row in told)} - (
        set(range(len(heads))) if manner.whole else set()
    )  # then they go on in more lines
    wide = widths([[cell.text for cell in row] for row in told], heads, _width(), states)
    for head, width in zip(heads, wide, strict=True):
        columns.add_column(head, width=width, no_wrap=True, overflow=overflow)
    for row in told:
        cells = (Text(cell.text, cell.style, no_wrap=not manner.whole, overflow=overflow) for cell in row)
        columns.add_row(*cells)
    coloured = colours(sys.stdout)
    console = Console(
        file=io.StringIO(),
        width=_width(),
        force_terminal=coloured,
        no_color=not coloured,
        color_system="standard" if coloured else None,
        legacy_windows=False,
    )
    with console.capture() as captured:
        console.print(columns)
    _write("\n".join(text.rstrip() for text in captured.get().rstrip("\n").split("\n")))


def _cell(value: object) -> Styled:
    text = line("" if value is None else str(value), LONGEST if manner.whole else _CELL)
    return Styled(text, value.style if isinstance(value, Styled) else "")


def _width() -> int:
    """The columns of a line; of what is no terminal as many as are needed."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS"):
        return max(_NARROWEST, shutil.get_terminal_size().columns)
    return _ENDLESS


# Asking and failing ---------------------------------------------------------------------------------


def fitted(text: str, taken: int = 0) -> str:
    """A text on one line of this terminal, of which so many columns are taken."""
    return line(text, max(20, shutil.get_terminal_size((160, 24)).columns - taken))


def complain(error: PromptDockError) -> None:
    """An error: what, why, what to do; with `--json` as the one document."""
    fix = remedy.routed(error.fix)
    if manner.json:
        document("error", error=card(error.what, error.why, fix, error.exit_code))
        return
    talk(bad("promptdock:"), folded(f" {error.what}", len("promptdock:"), "  "))
    if error.why:
        talk(folded(f"  why: {error.why}"))
    if fix:
        talk(folded(f"  do:  {fix}"))


def folded(text: str, taken: int = 0, indent: str = "       ") -> str:
    """On a terminal in lines that end between words; a line with a command stays whole, so that it can be copied."""
    text = runnable(text)
    if not sys.stderr.isatty():
        return text
    width = max(_NARROWEST, shutil.get_terminal_size().columns)
    rows = ("x" * taken + text).split("\n")
    return "\n".join(_folded(row, width, indent) for row in rows)[taken:]


def _folded(row: str, width: int, indent: str) -> str:
    if len(row) <= width or called() in row:
        return row
    import textwrap

    return textwrap.fill(row, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def card(what: str, why: str = "", fix: str = "", code: int = 1) -> Card:
    """An error as programs read it; `code` is the exit code."""
    return {"what": what, "why": why, "do": runnable(fix), "code": code}


def typed(argument: str) -> str:
    """What a person gave: an argument, or what stands on stdin where it is `-`."""
    data = sys.stdin.buffer.read() if argument == "-" else argument.encode("utf-8", "surrogateescape")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        where = f"byte {error.start} is {error.object[error.start]:#04x}"
        raise UsageError("the text is not UTF-8", where, "convert it first, as iconv does") from None


def sure(what: str, yes: bool, command: str) -> None:
    """Ask for a yes on a terminal; UsageError where nobody can be asked, or where it is not given."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(what, "nobody can be asked here", f"{command} --yes")
    # The end stays on one line; typer adds the choice itself.
    asked = folded(f"{what}. Go\N{NO-BREAK SPACE}on?\N{NO-BREAK SPACE}[y/N]:", indent="")
    asked = asked.replace("\N{NO-BREAK SPACE}", " ").removesuffix(" [y/N]:")
    with asking():
        confirmed = typer.confirm(asked, err=True)
    if not confirmed:
        raise UsageError("nothing was changed", "it was not confirmed", "")


@contextlib.contextmanager
def asking() -> Iterator[None]:
    """While a person is asked and all else waits: the first Ctrl-C, and Ctrl-D, end the question.

    Below asyncio the first Ctrl-C only cancels the task, which a blocking read never notices.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    except (KeyboardInterrupt, EOFError, typer.Abort) as error:
        print(file=sys.stderr)
        read = error.__context__ if isinstance(error, typer.Abort) else error
        if isinstance(read, EOFError):
            raise UsageError("nothing was changed", "it was not answered", "") from None
        raise Interrupted("nothing was changed", "it was interrupted", "") from None
    finally:
        signal.signal(signal.SIGINT, before)
