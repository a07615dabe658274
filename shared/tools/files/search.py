"""Search in a root's files: ripgrep where it is, else a Python child; bounded in time and output either way.

Paths that go in and come out are relative to the root, with `/`. Links are never followed; `.git` and what
was installed or compiled is left out, by ripgrep also what the repository ignores.

A search opens paths, and what a path leads to may change while it runs. So it runs in the sandbox, where there is
nothing to find but the roots. Without a sandbox each hit is read again beneath its root, and told only where it
stands there.
"""

from __future__ import annotations

import asyncio
import codecs
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Literal

from shared import failpoints
from shared.errors import ToolError
from shared.guard.files.jail import Jail
from shared.guard.git.batch import Batch, BatchCommand
from shared.guard.permissions.secret_files import is_secret
from shared.guard.processes import starts
from shared.guard.processes.process import Finished, run
from shared.guard.sandbox.sandbox import Sandbox
from shared.tools.files import scan
from shared.tools.paths import READ

SECONDS = 20.0
OUTPUT = 8 * 1024 * 1024  # bytes that one search may print
WIDTH = 400  # bytes of a line that are shown
_EVERY = 1_000_000  # lines of a file, where they are counted one by one
_NO_FOLDER = 9  # how the script below tells that there is no such folder

# Whoever is in a folder stays in it; and where that is, `pwd -P` says without a link on the way.
_IN = f'cd -- "$1" 2>/dev/null && [ "$(pwd -P)" = "$1" ] || exit {_NO_FOLDER}; shift; exec "$@"'

SearchMode = Literal["lines", "count", "files"]
_CUT = re.compile(r" \[\.\.\. (?:omitted end of long line|\d+ more match(?:es)?)\]$")


@dataclass(frozen=True)
class Hit:
    """A line of a file (`number` from 1); in mode count `number` is how many lines match, in mode files 0."""

    path: str
    number: int = 0
    text: str = ""


@dataclass(frozen=True)
class FileHits:
    """What a search found, ordered by path and line; `truncated` where a bound was reached."""

    hits: tuple[Hit, ...]
    truncated: bool = False


@dataclass(frozen=True)
class TextQuery:
    """What to look for; `pattern` is a regular expression (unused in mode files)."""

    pattern: str = ""
    mode: SearchMode = "lines"
    globs: Sequence[str] = ()
    ignore_case: bool = False
    per_file: int = 1000


@dataclass(frozen=True)
class SearchRoot:
    """Where to look: below `under`, a folder or a file of the root."""

    root: Path
    under: str = ""


async def search(
    places: Sequence[SearchRoot], query: TextQuery, limit: int, sandbox: Sandbox
) -> list[FileHits]:
    """What each place holds, at most `limit` hits; ToolError for a bad pattern, glob or path."""
    _printable(query.pattern, *query.globs)
    found: list[FileHits | None] = []
    for place in places:
        file = bool(place.under) and Jail(place.root).stat(place.under).kind == "file"
        found.append(await _in_file(place, query, limit) if file else None)
    folders = [
        replace(place, under=place.under.strip("/"))
        for place, one in zip(places, found, strict=True)
        if not one
    ]
    if folders:
        how = _confined if sandbox.confines and not failpoints.without("search-sandbox") else _confirmed
        rest = iter(await how(folders, query, limit, sandbox))
    return [one or next(rest) for one in found]


async def _in_file(place: SearchRoot, query: TextQuery, limit: int) -> FileHits:
    """Search one file, which is handed over as text, so that no link can stand in for it meanwhile."""
    if query.mode == "files":
        return FileHits((Hit(place.under),))
    data = Jail(place.root).read(place.under, READ, is_secret(place.under))
    finished = await run(_argv(query, stdin=True), cwd=place.root, timeout=SECONDS, limit=OUTPUT, stdin=data)
    _checked(finished)
    found = _kept(_hits(finished, query), limit, finished.truncated)
    return FileHits(tuple(replace(hit, path=place.under) for hit in found.hits), found.truncated)


def _printable(*texts: str) -> None:
    for text in texts:
        if "\0" in text:
            raise ToolError("this pattern cannot be used", "it holds a NUL", "leave it out")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise ToolError("this pattern cannot be used", "it is not valid Unicode text") from None


# In the sandbox -----------------------------------------------------------------------------------


async def _confined(
    places: Sequence[SearchRoot], query: TextQuery, limit: int, sandbox: Sandbox
) -> list[FileHits]:
    """In one sandbox for all places, as it takes longer to start than most searches run."""
    roots = [place.root.resolve() for place in places]
    command = BatchCommand(("PLACE", *_argv(query)))
    wanted = [
        replace(
            command, arguments=(str(root / place.under) if place.under else str(root), *command.arguments[1:])
        )
        for root, place in zip(roots, places, strict=True)
    ]
    batch = Batch.of(["/bin/sh", "-c", _IN, "sh"], wanted)
    with tempfile.TemporaryDirectory(prefix="promptdock-search-") as folder:
        argv = sandbox.wrap(
            batch.argv(folder),
            roots[0],
            writable=False,
            extra_read=[*_program(), *roots[1:]],
            protect=[],
            bounded=False,
        )
        done = await run(argv, cwd="/", timeout=SECONDS * len(places), limit=OUTPUT, env={})
    ran, broken = batch.parted(done)
    if done.truncated and len(places) > 1:  # the marks between them may be what was left out
        return [found for place in places for found in await _confined([place], query, limit, sandbox)]
    if done.timed_out or broken:
        _checked(broken or done)
        raise ToolError("the search could not be made", "it was ended", "try again")
    return [_told(place, one, query, limit) for place, one in zip(places, ran, strict=True)]


def _told(place: SearchRoot, done: Finished, query: TextQuery, limit: int) -> FileHits:
    if done.exit_code == _NO_FOLDER:
        raise _no_folder(place.under)
    _checked(done)
    return _found(_below(place.under, _hits(done, query)), limit, done.truncated)


def _no_folder(under: str, why: str = "it is none, or a link leads to it") -> ToolError:
    return ToolError(f"{under or '.'} is not a folder that can be searched", why)


# Without a sandbox --------------------------------------------------------------------------------


async def _confirmed(
    places: Sequence[SearchRoot], query: TextQuery, limit: int, _sandbox: Sandbox
) -> list[FileHits]:
    return [await _confirmed_at(place, query, limit) for place in places]


async def _confirmed_at(place: SearchRoot, query: TextQuery, limit: int) -> FileHits:
    """Search where links may lead out meanwhile, and tell what the jail reads at the same place."""
    # Counts cannot be looked at again: the lines are, and then counted.
    lines = replace(query, mode="lines", per_file=_EVERY) if query.mode == "count" else query
    with _anchored(place.root, place.under) as where:
        done = await run(_argv(lines), cwd=where, timeout=SECONDS, limit=OUTPUT)
    _checked(done)
    hits: Iterable[Hit] = _below(place.under, _hits(done, lines))
    if not failpoints.without("search-sandbox"):
        hits = _standing(Jail(place.root), hits)
    if query.mode == "count":
        counts = await asyncio.to_thread(lambda: Counter(hit.path for hit in hits))
        hits = (Hit(path, count) for path, count in counts.items())
    return await asyncio.to_thread(_found, hits, limit, done.truncated)


def _standing(jail: Jail, hits: Iterable[Hit]) -> Iterator[Hit]:
    """The hits that are there when the file is opened beneath the root: no link leads that out."""
    path, lines = "", list[str]()
    for hit in hits:
        if not hit.number:
            if _is_file(jail, hit.path):
                yield hit
            continue
        if hit.path != path:
            path, lines = hit.path, _lines(jail, hit.path)
        if hit.number <= len(lines) and lines[hit.number - 1].startswith(hit.text):
            yield hit


def _is_file(jail: Jail, path: str) -> bool:
    try:
        return jail.stat(path).kind == "file"
    except ToolError:
        return False


def _lines(jail: Jail, path: str) -> list[str]:
    """The lines as a search sees them; none of a file that cannot be read here."""
    try:
        data = jail.read(path, READ)
    except ToolError:
        return []
    wide = any(data.startswith(mark) for mark in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return data.decode("utf-16" if wide else "utf-8-sig", "replace").split("\n")


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
        raise _no_folder(under, error.strerror or "") from None
    finally:
        os.close(handle)


# The program --------------------------------------------------------------------------------------


def ripgrep() -> str | None:
    """The `rg` that was installed beside this Python, else the one on the path."""
    beside = Path(sys.executable).parent / "rg"
    return str(beside) if beside.is_file() else starts.program("rg")


def _program() -> list[str]:
    """What the child consists of: all that the sandbox must show it beside the roots."""
    rg = ripgrep()
    return [rg] if rg else [os.path.realpath(sys.executable), scan.__file__]


def _argv(query: TextQuery, *, stdin: bool = False) -> list[str]:
    rg = ripgrep()
    if rg is None:
        ignore = "1" if query.ignore_case else "0"
        globs = ["-"] if stdin else list(query.globs)
        # -I: neither the folder that is searched nor the user's site may lend modules to the child.
        return [
            *_program()[:1],
            "-I",
            scan.__file__,
            query.mode,
            query.pattern,
            ignore,
            str(query.per_file),
            *globs,
        ]
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


def _hits(finished: Finished, query: TextQuery) -> Iterator[Hit]:
    # Where the output was cut in the middle, what stands behind the cut may begin in the middle of a path.
    output = finished.stdout.partition("\n[… ")[0] if finished.truncated else finished.stdout
    records = output.split("\0" if query.mode == "files" else "\n")
    for record in records[:-1]:  # what follows the last separator is empty, or cut
        hit = Hit(record) if query.mode == "files" else _hit(record)
        if hit is not None:
            yield replace(hit, path=hit.path.removeprefix("./"))


def _below(under: str, hits: Iterable[Hit]) -> Iterator[Hit]:
    return (replace(hit, path=f"{under}/{hit.path}") for hit in hits) if under else iter(hits)


def _found(hits: Iterable[Hit], limit: int, truncated: bool) -> FileHits:
    """What may be told: names of files, and lines of those that hold no secrets."""
    return _kept((hit for hit in hits if not hit.number or not is_secret(hit.path)), limit, truncated)


def _kept(hits: Iterable[Hit], limit: int, truncated: bool) -> FileHits:
    kept = list(islice(hits, limit + 1))
    return FileHits(tuple(kept[:limit]), truncated or len(kept) > limit)


def _hit(record: str) -> Hit | None:
    """`path NUL line:text` or `path NUL count`; None for the middle of a line that the output limit cut."""
    path, nul, rest = record.partition("\0")
    number, _, text = rest.partition(":")
    if not nul or not number.isdigit():
        return None
    return Hit(path, int(number), _CUT.sub("", text).rstrip("\r"))
