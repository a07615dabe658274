"""Text for a person who decides on it: what would hide, turn around or imitate is written out as code points."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from shared import faults

LONGEST = 4000  # characters of one text that are shown
_MARKS = 4  # combining marks in a row that a real script may need
_HIDING = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Blank or ignorable, though Unicode files them under letters and marks.
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\u2800") | {
    chr(c) for c in (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))
}


def plain(text: str, longest: int = LONGEST) -> str:
    """`text` with every code point that is not plainly visible as `\\u{202E}`; line breaks and tabs too."""
    if len(text) > longest:
        head, tail = text[: longest * 3 // 4], text[-longest // 4 :]
        left_out = len(text) - len(head) - len(tail)
        return f"{_escaped(head)}[… {left_out} characters left out …]{_escaped(tail)}"
    return _escaped(text)


def _escaped(text: str) -> str:
    shown: list[str] = []
    marks = 0
    for char in text:
        category = unicodedata.category(char)
        if category.startswith("M") and char not in _BLANK:
            marks += 1
            if marks > _MARKS:
                continue
        else:
            shown.append(_left_out(marks))
            marks = 0
        strange_space = category == "Zs" and char != " "
        if category in _HIDING or char in _BLANK or strange_space:
            shown.append(_NAMES.get(char) or f"\\u{{{ord(char):04X}}}")
        else:
            shown.append(char)
    return "".join([*shown, _left_out(marks)])


def _left_out(marks: int) -> str:
    return f"[{marks - _MARKS} marks left out]" if marks > _MARKS else ""


_NAMES = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


# Letters that no font draws and every model reads; and variants of letters where they can be none, since one letter
# has one, and those of the second kind are of Chinese characters alone.
_TAGS = re.compile(
    "[\U000e0000-\U000e007f]"
    "|(?<=[\ufe00-\ufe0f\U000e0100-\U000e01ef])[\ufe00-\ufe0f\U000e0100-\U000e01ef]"
    "|(?<![\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])[\U000e0100-\U000e01ef]"
)


def tagless(text: str) -> str:
    """`text` in which hidden letters are written out, so that they are no words to a model."""
    if faults.without("hidden-letters"):
        return text
    return _TAGS.sub(lambda found: f"[U+{ord(found.group()):04X}]", text)


def plainly(value: Any, longest: int = LONGEST) -> Any:
    """A JSON value with all its texts as `plain` shows them, keys too."""
    if isinstance(value, str):
        return plain(value, longest)
    if isinstance(value, dict):
        return {plain(str(key), 200): plainly(item, longest) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plainly(item, longest) for item in value]
    return value if isinstance(value, int | float | bool | None) else plain(str(value), longest)
