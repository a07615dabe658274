"""Search in a root's files: ripgrep where it is, else a Python child; bounded in time and output either way.

Paths that go in and come out are relative to the root, with `/`. Links are never followed; `.git` and what
was installed or compiled is left out, by ripgrep also what the repository ignores.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from shared.errors import ToolError
from shared.guard import starts
from shared.guard.jail import Jail
from shared.guard.process import Finished, run
from shared.tools import scan
from shared.tools.roots import READ

SECONDS = 20.0
OUTPUT = 8 * 1024 * 1024  # bytes that one search may print
WIDTH = 400  # bytes of a line that are shown

Mode = Literal["lines", "count", "files"]
_CUT = re.compile(r" \[\.\.\. (?:omitted end of long line|\d+ more match(?:es)?)\]$")


@dataclass(frozen=True)
class Hit:
    """A line of a file (`number` from 1); in mode count `number` is how many lines match, in mode files 0."""

    path: str
    number: int = 0
    text: str = ""


@dataclass(frozen=True)
class Found:
    """What a search found, ordered by path and line; `truncated` where a bound was reached."""

    hits: tuple[Hit, ...]
    truncated: bool = False


@dataclass(frozen=True)
class Query:
    """What to look for; `pattern` is a regular expression (unused in mode files)."""

    pattern: str = ""
    mode: Mode = "lines"
    globs: Sequence[str] = ()
    ignore_case: bool = False
    per_file: int = 1000


async def search(root: Path, query: Query, under: str = "", limit: int = 1000) -> Found:
    """Search below `under` (a folder or a file of the root); ToolError for a bad pattern, glob or path."""
    _printable(query.pattern, *query.globs)
    if under and Jail(root).stat(under).kind == "file":
        return await _in_file(root, query, under, limit)
    under = under.strip("/")
    with _anchored(root, under) as where:
        finished = await run(_argv(query), cwd=where, timeout=SECONDS, limit=OUTPUT)
    _checked(finished)
    return _parse(finished, query, under, limit)


async def _in_file(root: Path, query: Query, path: str, limit: int) -> Found:
    """Search one file, which is handed over as text, so that no link can stand in for it meanwhile."""
    if query.mode == "files":
        return Found((Hit(path),))
    data = Jail(root).read(path, READ)
    finished = await run(_argv(query, stdin=True), cwd=root, timeout=SECONDS, limit=OUTPUT, stdin=data)
    _checked(finished)
    found = _parse(finished, query, "", limit)
    return Found(tuple(replace(hit, path=path) for hit in found.hits), found.truncated)


def _printable(*texts: str) -> None:
    for text in texts:
        if "\0" in text:
            raise ToolError("this pattern cannot be used", "it holds a NUL", "leave it out")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ToolError("this pattern cannot be used", "it is not valid Unicode text") from None


@contextmanager
def _anchored(root: Path, under: str) -> Iterator[Path]:
    """The folder as a path that keeps meaning the same folder, whatever is renamed or linked meanwhile."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in Path(under).parts:
            if part in ("..", "/"):
                raise ToolError(f"{under!r} leaves the repository", "", "give a path inside it")
            inner = os.open(part, flags, dir_fd=handle)
            os.close(handle)
            handle = inner
        proc = Path(f"/proc/self/fd/{handle}")
        yield proc if proc.exists() else root / under
    except OSError as error:
        raise ToolError(
            f"{under or '.'} is not a folder that can be searched", error.strerror or ""
        ) from None
    finally:
        os.close(handle)


def ripgrep() -> str | None:
    """The `rg` that was installed beside this Python, else the one on the path."""
    beside = Path(sys.executable).parent / "rg"
    return str(beside) if beside.is_file() else starts.program("rg")


def _argv(query: Query, *, stdin: bool = False) -> list[str]:
    rg = ripgrep()
    if rg is None:
        ignore = "1" if query.ignore_case else "0"
        globs = ["-"] if stdin else list(query.globs)
        # -I: neither the folder that is searched nor the user's site may lend modules to the child.
        program = [sys.executable, "-I", scan.__file__]
        return [*program, query.mode, query.pattern, ignore, str(query.per_file), *globs]
    shape = {
        "lines": ["--line-number", f"--max-count={query.per_file}", f"--max-columns={WIDTH}"],
        "count": ["--count"],
        "files": ["--files"],
    }[query.mode]
    argv = [rg, "--no-config", "--color=never", "--no-messages", "--null", "--hidden", "--sort=path", *shape]
    # What the repository ignores counts, not what a folder above it or this machine's user does.
    argv += ["--no-ignore-parent", "--no-ignore-global", "--no-require-git"]
    if query.mode != "files":
        argv += ["--with-filename", "--no-heading", "--max-columns-preview", "--max-filesize=4M"]
        argv += ["--ignore-case"] if query.ignore_case else []
        argv += [f"--regexp={query.pattern}"]
    argv += [f"--glob={glob}" for glob in query.globs if not stdin]
    argv += [f"--glob=!{name}" for name in scan.SKIPPED]
    return [*argv, "--", "-" if stdin else "./"]


def _checked(finished: Finished) -> None:
    if finished.timed_out:
        raise ToolError(
            "the search was stopped",
            f"it took longer than {SECONDS:.0f} s",
            "use a simpler pattern or a narrower path",
        )
    # 1 is "nothing found"; 2 without a message is a file that could not be read, the rest was searched.
    if finished.exit_code not in (0, 1) and finished.stderr.strip():
        raise ToolError(
            "the search could not be made", finished.stderr.strip()[:600], "correct the pattern or the glob"
        )


def _parse(finished: Finished, query: Query, under: str, limit: int) -> Found:
    # Where the output was cut in the middle, what stands behind the cut may begin in the middle of a path.
    output = finished.stdout.partition("\n[… ")[0] if finished.truncated else finished.stdout
    records = output.split("\0" if query.mode == "files" else "\n")
    hits: list[Hit] = []
    for record in records[:-1]:  # what follows the last separator is empty, or cut
        hit = Hit(record) if query.mode == "files" else _hit(record)
        if hit is None:
            continue
        if len(hits) == limit:
            return Found(tuple(hits), True)
        path = hit.path.removeprefix("./")
        hits.append(replace(hit, path=f"{under}/{path}" if under else path))
    return Found(tuple(hits), finished.truncated)


def _hit(record: str) -> Hit | None:
    """`path NUL line:text` or `path NUL count`; None for the middle of a line that the output limit cut."""
    path, nul, rest = record.partition("\0")
    number, _, text = rest.partition(":")
    if not nul or not number.isdigit():
        return None
    return Hit(path, int(number), _CUT.sub("", text).rstrip("\r"))
