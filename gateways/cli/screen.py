"""What the command line prints: data on stdout, talk on stderr, nothing that a terminal would obey."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from shared.errors import PromptDockError, UsageError
from shared.visitor.plain import encoded, line, safe
from shared.visitor.typed import runnable

Card = dict[str, Any]


def out(text: str = "") -> None:
    """Data for people."""
    print(safe(text), flush=True)


def talk(text: str) -> None:
    """Words beside the data; commands in them work as printed."""
    print(safe(runnable(text)), file=sys.stderr, flush=True)


def document(name: str, /, **fields: Any) -> None:
    """The one JSON document of a command."""
    print(encoded({"schema": f"promptdock.{name}.v1", **fields}), flush=True)


def record(value: Any) -> None:
    """One JSON line of a stream."""
    print(encoded(value), flush=True)


def table(rows: Sequence[Sequence[Any]], heads: Sequence[str]) -> None:
    """Columns as wide as what is in them; the last one takes what is left of the line."""
    cells = [[line("" if cell is None else str(cell), 200) for cell in row] for row in rows]
    widths = [max(len(row[at]) for row in [list(heads), *cells]) for at in range(len(heads))]
    room = max(20, shutil.get_terminal_size((160, 24)).columns - sum(widths[:-1]) - 2 * len(widths[:-1]))
    for row in [list(heads), *cells]:
        padded = [cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=False)]
        out("  ".join([*padded, line(row[-1], room)]).rstrip())


def complain(error: PromptDockError) -> None:
    """An error: what, why, what to do."""
    talk(f"promptdock: {error.what}")
    if error.why:
        talk(f"  why: {error.why}")
    if error.fix:
        talk(f"  do:  {error.fix}")


def typed(argument: str) -> str:
    """What a person gave: an argument, or what stands on stdin where it is `-`."""
    data = sys.stdin.buffer.read() if argument == "-" else argument.encode("utf-8", "surrogateescape")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        where = f"byte {error.start} is {error.object[error.start]:#04x}"
        raise UsageError("the text is not UTF-8", where, "convert it first, as iconv does") from None


def moment(iso: str) -> str:
    """A moment in the person's own time, to the minute."""
    try:
        return datetime.fromisoformat(iso).astimezone().strftime("%Y-%m-%d %H:%M %Z").rstrip()
    except ValueError:
        return iso


def ago(seconds: float) -> str:
    """A span of time in one word."""
    for size, name in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {name}"
    return f"{max(0.0, seconds):.0f} s"


def since(iso: str | None) -> str:
    """How long ago that was."""
    try:
        moment = datetime.fromisoformat(iso or "")
    except ValueError:
        return ""
    return ago((datetime.now(UTC) - moment).total_seconds())
