"""Text made plain: what would hide, turn around, imitate or be obeyed by a terminal is written out as code points."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable
from typing import Any

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


def dollars(value: float) -> str:
    """An amount to the cent; of less than ten cents as much as it takes to be seen: `$2.50`, `$0.0012`."""
    if value == 0 or abs(value) >= 0.1:
        return f"${value:.2f}"
    whole, _, rest = f"{value:.6f}".partition(".")
    return f"${whole}.{rest.rstrip('0'):0<2}"


def escaped(text: str) -> str:
    """JSON in which every such code point is a `\\u` escape: the same value to whoever reads it."""
    if _is_plain(text):
        return text
    return "".join(
        char if char.isprintable() and char not in _BLANK else json.dumps(char)[1:-1] for char in text
    )


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _escaped(text: str) -> str:
    if _is_plain(text):
        return text
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

# What pydantic says in words of its own or of Python's.
_MUST = {
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "dataclass_type": "must be an object",
    "dict_type": "must be an object",
    "list_type": "must be a list",
    "string_type": "must be text",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a smaller number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a number that ends",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "string_unicode": "must be text in UTF-8",
}


def complaints(items: Iterable[Any]) -> list[str]:
    """What a model of pydantic found wrong (its `errors()`), in words: the place, and what must be there."""
    return [f"{'.'.join(map(str, item['loc'])) or 'all of it'}: {complaint(item)}" for item in items]


def complaint(item: Any) -> str:
    """One of them, without its place: no pattern, and nothing of what was given."""
    kind, told = str(item["type"]), str(item["msg"])
    if kind == "missing":
        return "is missing"
    if kind == "extra_forbidden":
        return "is no field that there is"
    if kind == "string_pattern_mismatch":
        return "holds a character that it may not hold"
    if kind in _MUST:
        return _MUST[kind]
    if kind == "json_invalid":
        said = str((item.get("ctx") or {}).get("error") or "")
        return f"is no JSON: {said[:1].lower()}{said[1:]}" if said else "is no JSON"
    if kind == "too_short" and "characters" not in told:
        return f"must have at least {item['ctx']['min_length']} characters"
    told = told.removeprefix("Value error, ")
    for start in ("Input should", "String should", "List should", "Dictionary should"):
        if told.startswith(start):
            return f"must{told.removeprefix(start)}"
    return told
