"""What of an answer is said and what is only thought, in whatever tags a model wraps that; also while it streams."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from shared.models.base import Block

Piece = tuple[str, str]  # "text" or "thinking", and its words

_NAMES = ("think", "thinking", "reasoning", "reflection")
_TAGS = (*(f"<{name}>" for name in _NAMES), "[think]")
_OPEN = re.compile(rf"`+|<({'|'.join(_NAMES)})>|\[think\]", re.IGNORECASE)
_CODE_ENDS = re.compile(r"`+|\n[ \t]*\n")
# Between two tags in the middle of a line: words about them, as in "between <think> and </think>".
_MENTIONED = re.compile(r"[ \t][^\n]*[ \t]|[.…]*")
_LONGEST = max(map(len, _TAGS)) + 1  # characters of a closing tag


def split(blocks: Iterable[Block], before: str = "") -> tuple[str, str]:
    """`(text, thinking)` of an answer's blocks, selected by their type.

    `before` is the text of the answers that this one goes on with: it was cut anywhere, also within a word.
    """
    texts, thoughts = [], []
    for block in blocks:
        if block.get("type") == "text":
            texts.append(str(block.get("text", "")))
        elif block.get("type") == "thinking":
            thoughts.append(str(block.get("thinking", "")))
    sieve = Sieve()
    pieces = [*sieve.add(before + "\n".join(texts)), *sieve.end()]
    thoughts.append("\n".join(words.strip() for kind, words in pieces if kind == "thinking"))
    spoken = "".join(words for kind, words in pieces if kind == "text")
    return spoken.strip(), "\n".join(part.strip() for part in thoughts if part.strip())


def spoken(answers: Iterable[tuple[Iterable[Block], bool]]) -> list[str]:
    """What was streamed as text of each of these answers of a turn; `cut`: it goes on in the next."""
    sieve, texts = Sieve(), []
    for blocks, cut in answers:
        words = "".join(str(block["text"]) for block in blocks if block.get("type") == "text")
        pieces = sieve.add(words) if cut else [*sieve.add(words), *sieve.end()]
        texts.append("".join(text for kind, text in pieces if kind == "text"))
        sieve = sieve if cut else Sieve()
    return texts


class Sieve:
    """Parts a text into what is said and what is thought, piece by piece as it comes.

    A tag without its end is thinking only where the answer begins with it; later, and in code, it is mentioned, and
    so is a pair of them in the middle of a line with a few words between.
    Until that is known, what follows a tag is held back.
    """

    def __init__(self) -> None:
        self._rest = ""
        self._begun = False  # something was said
        self._line = ""  # what was said last, since its line began
        self._code = ""  # the backticks that we are within
        self._ends: re.Pattern[str] | None = None  # the end of the thought that we are within
        self._looked = 0  # how far the end of a tag in the middle was looked for

    def add(self, words: str) -> list[Piece]:
        """What is known of the text with these words."""
        self._rest += words
        return list(self._pieces(last=False))

    def end(self) -> list[Piece]:
        """What was held back, now that nothing comes any more."""
        return list(self._pieces(last=True))

    def _pieces(self, last: bool) -> Iterator[Piece]:
        while self._rest:
            step = self._thought if self._ends else self._within if self._code else self._plain
            found = step(last)
            if found is None:
                return
            kind, words = found
            if kind == "text":
                self._begun = self._begun or bool(words.strip())
                self._line = (self._line + words).rpartition("\n")[2].lstrip()[:1]
            if words:
                yield kind, words

    def _take(self, kind: str, size: int) -> Piece:
        words, self._rest = self._rest[:size], self._rest[size:]
        return kind, words

    def _plain(self, last: bool) -> Piece | None:
        found = _OPEN.search(self._rest)
        if found is None or found.start():
            size = found.start() if found else len(self._rest) - (0 if last else _tail(self._rest))
            return self._take("text", size) if size else None
        if self._rest[0] == "`":
            if found.end() == len(self._rest) and not last:
                return None  # more of them may come
            self._code = found.group()
            return self._take("text", found.end())
        return self._tag(found.group(), last)

    def _tag(self, tag: str, last: bool) -> Piece | None:
        ends = re.compile(re.escape(f"{tag[0]}/{tag[1:]}"), re.IGNORECASE)
        if not self._begun:
            self._ends = ends
            return self._take("text", len(tag))[0], ""
        closed = ends.search(self._rest, max(len(tag), self._looked))
        if closed is None and not last:
            self._looked = max(0, len(self._rest) - _LONGEST)
            return None
        self._looked = 0
        if closed is None:
            return self._take("text", len(tag))
        thought = self._rest[len(tag) : closed.start()]
        if self._line and _MENTIONED.fullmatch(thought):
            return self._take("text", closed.end())
        self._rest = self._rest[closed.end() :]
        return "thinking", thought

    def _within(self, last: bool) -> Piece | None:
        """Code: to as many backticks as began it; a few of them reach no further than their paragraph."""
        for found in _CODE_ENDS.finditer(self._rest):
            whole = last or found.end() < len(self._rest)
            ends = found.group() == self._code or (found.group()[0] == "\n" and len(self._code) < 3)
            if ends and whole:
                self._code = ""
                return self._take("text", found.end())
        kept = 0 if last else len(self._rest) - len(self._rest.rstrip("` \t\n"))
        return self._take("text", len(self._rest) - kept) if kept < len(self._rest) else None

    def _thought(self, last: bool) -> Piece | None:
        assert self._ends is not None
        closed = self._ends.search(self._rest)
        if closed:
            thought, self._rest = self._rest[: closed.start()], self._rest[closed.end() :]
            self._ends = None
            return "thinking", thought
        kept = 0 if last else min(_LONGEST, len(self._rest))
        return self._take("thinking", len(self._rest) - kept) if kept < len(self._rest) else None


def _tail(text: str) -> int:
    """How many characters at the end may be the beginning of a tag."""
    at = max(text.rfind("<"), text.rfind("["))
    return len(text) - at if at >= 0 and any(tag.startswith(text[at:].lower()) for tag in _TAGS) else 0
