"""Markdown in blocks, as it comes: paragraphs, headings, items of lists and code, each as soon as it is finished."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t]*([^`\s]*)[^`]*$")
_ITEM = re.compile(r"([ \t]*)(?:[-*+]|\d{1,9}[.)])[ \t]+(?=\S)")
_HEADING = re.compile(r" {0,3}#{1,6}(?:\s|$)")
_RULE = re.compile(r" {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$")


@dataclass(frozen=True)
class TextBlock:
    """`raw` is its part of the source: those of all blocks make up the text; `text` is without its indent."""

    raw: str
    text: str
    kind: str = "text"  # or "item", "heading", "code"
    indent: int = 0
    language: str = ""
    apart: bool = False  # an empty line stands before it


@dataclass
class Splitter:
    """Takes a text in pieces."""

    _kept: str = ""  # of the block that is open
    _line: str = ""  # the line that is not finished
    _kind: str = ""  # of the open block
    _fence: str = ""  # that ends the code that we are in
    _within: int = 0  # columns by which what belongs to the item before is indented
    _last: str = ""  # the kind of the block before

    def add(self, words: str) -> list[TextBlock]:
        """The blocks that are finished with these words."""
        *lines, self._line = (self._line + words).split("\n")
        return [block for line in lines for block in self._take(f"{line}\n")]

    def end(self) -> list[TextBlock]:
        """What is left, now that nothing comes any more."""
        line, self._line = self._line, ""
        return [*(self._take(line) if line else ()), *self._close()]

    @property
    def rest(self) -> str:
        """All that is not finished, with the line that is being written."""
        return self._kept + self._line

    def _take(self, line: str) -> Iterator[TextBlock]:
        if self._fence:
            self._kept += line
            bare = line.strip()
            if bare.startswith(self._fence) and not bare.strip(self._fence[0]):
                yield from self._close()
            return
        fence = _FENCE.match(line.rstrip("\n"))
        if not line.strip():
            yield from self._close()
            self._kept += line
        elif fence:
            yield from self._close()
            self._kept, self._kind, self._fence = self._kept + line, "code", fence[1]
        elif _HEADING.match(line) or (_RULE.match(line.rstrip()) and not self._kind):
            yield from self._close()
            self._kept, self._kind, self._within = self._kept + line, "heading", 0
            yield from self._close()
        elif (item := _ITEM.match(line)) and not _RULE.match(line.rstrip()):
            yield from self._close()
            self._kept, self._kind, self._within = self._kept + line, "item", len(item.group())
        else:
            if not self._kind:
                self._begin(line)
            self._kept += line

    def _begin(self, line: str) -> None:
        """A paragraph: of the item before it, where it is indented, else of its own."""
        self._kind = "text"
        if not line.startswith((" ", "\t")):
            self._within = 0

    def _close(self) -> Iterator[TextBlock]:
        raw, kind = self._kept, self._kind
        if not kind:  # nothing but empty lines, which belong to what follows
            return
        self._kept, self._kind, self._fence = "", "", ""
        body = raw.lstrip("\n")
        indent = len(body) - len(body.lstrip(" \t"))
        parted = kind in ("heading", "code") or self._last in ("heading", "code") or raw != body
        apart, self._last = bool(self._last) and parted, kind
        if kind == "code":
            yield _code(raw, apart)
        elif kind == "text" and indent >= 4 and not self._within:
            yield TextBlock(raw, _outdented(body, 4).rstrip(), "code", apart=apart)
        else:
            yield TextBlock(raw, _outdented(body, indent).rstrip(), kind, min(indent, 12), apart=apart)


def _code(raw: str, apart: bool) -> TextBlock:
    lines = raw.strip("\n").split("\n")
    fence = _FENCE.match(lines[0])
    assert fence is not None
    ends = len(lines) > 1 and lines[-1].strip().startswith(fence[1])
    indent = len(lines[0]) - len(lines[0].lstrip(" \t"))
    body = "\n".join(lines[1 : -1 if ends else None])
    return TextBlock(raw, _outdented(body, indent), "code", language=fence[2], apart=apart)


def _outdented(text: str, indent: int) -> str:
    """Without so many columns at the beginning of each line that has them."""
    return "\n".join(line[min(indent, len(line) - len(line.lstrip(" \t"))) :] for line in text.split("\n"))


def blocks(text: str) -> list[TextBlock]:
    """A whole text in blocks."""
    splitter = Splitter()
    return [*splitter.add(text), *splitter.end()]


def _same(one: TextBlock, other: TextBlock) -> bool:
    return one.raw.strip() == other.raw.strip()


def _after(shown: list[TextBlock], text: list[TextBlock]) -> list[TextBlock]:
    """What of a text is not shown yet, where what is shown is its beginning."""
    same = 0
    while same < min(len(shown), len(text)) and _same(shown[same], text[same]):
        same += 1
    return text[same:]


@dataclass
class Writing:
    """The answer of a turn while it is written: every block once, also where a worker began it anew.

    What is shown stays: of an answer that is repeated, only what differs is shown.
    """

    _splitter: Splitter = field(default_factory=Splitter)
    _shown: list[TextBlock] = field(default_factory=list)  # since the last call of a tool
    _again: list[TextBlock] = field(default_factory=list)  # of them, those that may be repeated
    _before: list[TextBlock] = field(default_factory=list)  # shown before that call
    differed: bool = False  # what was begun anew is another text than what is shown

    @property
    def open(self) -> str:
        """The block that is being written; nothing while what is shown is repeated."""
        return "" if self._again else self._splitter.rest

    @property
    def begun(self) -> bool:
        """Whether some of it was shown."""
        return bool(self._shown or self._before)

    def begin(self, fresh: bool) -> None:
        """A turn begins; or one that did begins anew, by another worker or another try."""
        self._splitter = Splitter()
        if fresh:
            self._shown, self._before = [], []
        self._again = list(self._shown)

    def add(self, words: str) -> list[TextBlock]:
        """What can be shown now."""
        return self._fresh(self._splitter.add(words))

    def pause(self) -> list[TextBlock]:
        """A tool is called: what was said until now stays."""
        found = self._fresh(self._splitter.end())
        self._splitter, self._again = Splitter(), []
        if self._shown:
            self._before, self._shown = self._shown, []
        return found

    def end(self, content: str) -> list[TextBlock]:
        """What is left to be shown of the answer, now that it is whole."""
        shown = self._shown or self._before
        whole = blocks(content)
        said = "".join(block.raw for block in shown).strip()
        left = blocks(content.strip()[len(said) :]) if said and content.strip().startswith(said) else None
        self.begin(fresh=True)
        return _after(shown, whole) if left is None else left

    def _fresh(self, closed: Iterable[TextBlock]) -> list[TextBlock]:
        found = []
        for block in closed:
            if self._again and _same(block, self._again[0]):
                self._again.pop(0)
                continue
            if self._again:
                self.differed = True
                del self._shown[-len(self._again) :]
                self._again = []
            found.append(block)
        self._shown += found
        return found
