"""Bytes from anywhere, read into an object that is safe to look at; what it says, messages.py checks."""

from __future__ import annotations

import json
import re
from typing import Any

from shared.errors import BadMessage

MAX_BYTES = 256 * 1024
MAX_DEPTH = 64
_FORBIDDEN_KEYS = frozenset({"__proto__", "constructor", "prototype", "__class__"})
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


def read(data: bytes) -> dict[str, Any]:
    """A JSON object from bytes that anybody may have sent; BadMessage says what is wrong with it."""
    if len(data) > MAX_BYTES:
        raise BadMessage(
            f"the message is too large ({len(data)} bytes)",
            f"at most {MAX_BYTES} bytes are taken",
            "send larger things by reference",
        )
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadMessage("the message is not UTF-8", str(error.reason), "send JSON in UTF-8") from None
    if _too_deep(text):
        raise BadMessage("the message is nested too deeply", f"at most {MAX_DEPTH} levels are taken")
    try:
        value = json.loads(
            text, object_pairs_hook=_object, parse_constant=_no_constant, parse_float=_float, parse_int=_int
        )
    except (ValueError, RecursionError) as error:
        raise BadMessage(
            "the message is not JSON that can be used", str(error)[:200], "send one JSON object"
        ) from None
    if not isinstance(value, dict):
        raise BadMessage(
            "the message is not a JSON object", f"it is a {type(value).__name__}", "send one JSON object"
        )
    if "\\ud" in text.lower():
        _no_surrogates(value)
    return value


def _too_deep(text: str) -> bool:
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return False
    depth = 0
    for match in _BRACKETS.finditer(text):
        mark = match.group()
        if mark in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                return True
        elif mark in "]}":
            depth -= 1
    return False


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key stands twice in one object")
    if not _FORBIDDEN_KEYS.isdisjoint(made):
        raise ValueError("a key has a reserved name")
    return made


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number of JSON")


def _float(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError("a number is too large")
    return value


def _int(text: str) -> int:
    if len(text) > 20:
        raise ValueError("a number is too large")
    return int(text)


def _no_surrogates(value: dict[str, Any]) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise BadMessage("the message holds half a character", "a lone surrogate is no text") from None
