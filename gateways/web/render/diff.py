"""A diff of git taken apart for a page: files, their hunks, and in each changed line the words that changed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Literal

from shared.client.text.safe import safe

_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
_ALIKE = 0.35  # below which two lines are not one line that changed
_WIDE = 1_000  # characters of a line beyond which words are not compared
_LONG = 300  # lines of a file beyond which it is shown folded
_MOST = 3_000  # lines of a file that are shown

Kind = Literal["same", "gone", "new", "note"]
Pieces = tuple[tuple[str, bool], ...]  # texts of a line, and whether each changed


@dataclass(frozen=True)
class Line:
    """One line; `old` and `new` are its numbers on either side, 0 where it is not there."""

    kind: Kind
    old: int
    new: int
    pieces: Pieces

    @property
    def text(self) -> str:
        return "".join(piece for piece, _changed in self.pieces)


@dataclass(frozen=True)
class Hunk:
    """Lines that stand together; `pairs` has them side by side."""

    about: str
    lines: tuple[Line, ...]

    @property
    def pairs(self) -> list[tuple[Line | None, Line | None]]:
        return list(_sides(self.lines))


@dataclass(frozen=True)
class FileDiff:
    """One file. `cut` lines more than are shown; `binary` ones show none."""

    path: str
    before: str
    how: Literal["new", "gone", "moved", "changed"]
    added: int
    removed: int
    hunks: tuple[Hunk, ...] = field(default=())
    binary: bool = False
    cut: int = 0

    @property
    def anchor(self) -> str:
        """Names it within a page."""
        return "f-" + re.sub(r"[^A-Za-z0-9]+", "-", self.path).strip("-").lower()

    @property
    def folded(self) -> bool:
        return sum(len(hunk.lines) for hunk in self.hunks) > _LONG


def files(text: str) -> list[FileDiff]:
    """The files of a diff; what is no diff has none."""
    from unidiff.errors import UnidiffParseError
    from unidiff.patch import PatchSet

    try:
        return [_file(patched) for patched in PatchSet(safe(text))]
    except UnidiffParseError:
        return []


def _file(patched: object) -> FileDiff:
    from unidiff.patch import PatchedFile

    assert isinstance(patched, PatchedFile)
    hunks, left = [], _MOST
    for hunk in patched:
        lines = tuple(_lines(hunk))[:left]
        left -= len(lines)
        hunks.append(Hunk(hunk.section_header or "", lines))
    shown = sum(len(hunk.lines) for hunk in hunks)
    whole = sum(len(hunk) for hunk in patched)
    moved = bool(patched.is_rename)
    how: Literal["new", "gone", "moved", "changed"] = (
        "new"
        if patched.is_added_file
        else "gone"
        if patched.is_removed_file
        else "moved"
        if moved
        else "changed"
    )
    before = str(patched.source_file or "").removeprefix("a/") if moved else ""
    return FileDiff(
        *(str(patched.path), before, how, patched.added, patched.removed, tuple(hunks)),
        binary=bool(patched.is_binary_file),
        cut=max(0, whole - shown),
    )


def _lines(hunk: Iterable[object]) -> Iterator[Line]:
    gone: list[tuple[int, str]] = []
    new: list[tuple[int, str]] = []
    for line in hunk:
        text = str(getattr(line, "value", "")).rstrip("\n")
        old_no, new_no = (
            getattr(line, "source_line_no", None) or 0,
            getattr(line, "target_line_no", None) or 0,
        )
        match getattr(line, "line_type", " "):
            case "-":
                if new:
                    yield from _changed(gone, new)
                    gone, new = [], []
                gone.append((old_no, text))
            case "+":
                new.append((new_no, text))
            case kind:
                yield from _changed(gone, new)
                gone, new = [], []
                yield Line("note" if kind == "\\" else "same", old_no, new_no, ((text, False),))
    yield from _changed(gone, new)


def _changed(gone: list[tuple[int, str]], new: list[tuple[int, str]]) -> Iterator[Line]:
    """Lines that went and lines that came in their place; where there are as many, word by word."""
    olds: list[Pieces] = [((text, False),) for _, text in gone]
    news: list[Pieces] = [((text, False),) for _, text in new]
    if len(gone) == len(new):
        for at, ((_, before), (_, after)) in enumerate(zip(gone, new, strict=True)):
            olds[at], news[at] = _compared(before, after)
    for (number, _), pieces in zip(gone, olds, strict=True):
        yield Line("gone", number, 0, pieces)
    for (number, _), pieces in zip(new, news, strict=True):
        yield Line("new", 0, number, pieces)


def _compared(before: str, after: str) -> tuple[Pieces, Pieces]:
    if max(len(before), len(after)) > _WIDE:
        return ((before, False),), ((after, False),)
    left, right = _WORDS.findall(before), _WORDS.findall(after)
    match = SequenceMatcher(None, left, right, autojunk=False)
    if match.ratio() < _ALIKE:
        return ((before, False),), ((after, False),)
    olds: list[tuple[str, bool]] = []
    news: list[tuple[str, bool]] = []
    for how, a, b, c, d in match.get_opcodes():
        for words, into in ((left[a:b], olds), (right[c:d], news)):
            if words:
                into.append(("".join(words), how != "equal"))
    return tuple(olds), tuple(news)


def _sides(lines: Iterable[Line]) -> Iterator[tuple[Line | None, Line | None]]:
    gone: list[Line] = []
    new: list[Line] = []
    for line in [*lines, None]:
        if line is not None and line.kind == "gone" and not new:
            gone.append(line)
        elif line is not None and line.kind == "new":
            new.append(line)
        else:
            for at in range(max(len(gone), len(new))):
                yield (gone[at] if at < len(gone) else None), (new[at] if at < len(new) else None)
            gone, new = [], []
            if line is not None and line.kind == "gone":
                gone.append(line)
            elif line is not None:
                yield line, line
