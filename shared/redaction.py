"""Values that nobody may be shown, taken out of text: also encoded, apart by what is not seen, or cut by a stream."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from shared import failpoints, shapes
from shared.shapes import HIDDEN

_LEAST = 6  # characters: what is shorter stands in too many words
_TELLING = 12  # characters: of so many it can be told that something was put between them
_TORN = 4  # characters at a cut that are the beginning or the end of a value
# What can stand between letters without being seen: white space, colours, letters without width; also as JSON.
_BETWEEN = (
    r"(?:\s|\\[nrtbf]|(?:\x1b|\\u001b|\\x1b)\[[0-9;]*[A-Za-z]|[\u00ad\u200b-\u200f\u2060-\u2064\ufeff])"
)
_UNSEEN = re.compile(f"{_BETWEEN}+")
# As `html.escape` has it, without the table of two thousand names that comes with that module.
_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})
_hidden: list[str] = []  # the longest first: one may be a part of another
_starts: set[str] = set()
_ends: set[str] = set()


def hide(*secrets: str | None) -> None:
    """From now on take these values out of what is logged, sent or shown, also where they are encoded."""
    for secret in secrets:
        if secret and len(secret) >= _LEAST and secret not in _hidden:
            found = _spellings(secret).difference(_hidden)
            _hidden.extend(found)
            _starts.update(text[:end] for text in found for end in range(1, len(text)))
            _ends.update(text[start:] for text in found for start in range(1, len(text)))
    _hidden.sort(key=len, reverse=True)


def _spellings(secret: str) -> set[str]:
    """The value, and how it looks in JSON, HTML, a URL, hex, capitals, backwards, base32, and base64 at each offset."""
    data = secret.encode("utf-8", "replace")
    found = {secret, secret[::-1], data.hex(), data.hex().upper(), secret.translate(_HTML)}
    found |= {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    address = quote(data, safe="")
    found |= {address, re.sub("%..", lambda part: part[0].lower(), address)}
    found |= {"".join(f"%{byte:02x}" for byte in data), "".join(f"%{byte:02X}" for byte in data)}
    if len(secret) >= _TELLING:
        found |= {secret.upper(), secret.lower(), base64.b32encode(data).decode().rstrip("=")[:-1]}
    for offset in range(3 if len(data) >= _TELLING else 0):
        # What stands before and behind it changes the letters at both ends, which are left out.
        text = base64.b64encode(b"\0" * offset + data).decode().rstrip("=")
        inner = text[4 if offset else 0 : len(text) - 2]
        found |= {inner, inner.replace("+", "-").replace("/", "_")}
    return {spelling for spelling in found if len(spelling) >= _LEAST}


def conceal(text: str) -> str:
    """`text` without the values, whatever that is not seen stands between their letters."""
    if failpoints.without("veil"):
        return text
    for secret in _hidden:
        if secret in text:
            text = text.replace(secret, HIDDEN)
    if not _hidden or len(text) < _TELLING:
        return text
    dense = "".join(text.split())
    if "\\" in dense or "\x1b" in dense or not dense.isascii():
        dense = _UNSEEN.sub("", dense)
    for secret in _hidden:
        if len(secret) >= _TELLING and secret in dense:
            text = _apart(secret).sub(HIDDEN, text)
    return text


def concealed(value: Any) -> Any:
    """The same for what becomes JSON; where there is nothing to take out it is the very value."""
    if not _hidden or failpoints.without("veil"):
        return value
    whole = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    if (text := conceal(whole)) == whole:
        return value
    return text if isinstance(value, str) else _within(json.loads(whole), conceal)


def redact(text: str) -> str:
    """`text` without the values, and without what has the shape of a secret: for people and files, not models."""
    return shapes.hide(conceal(text))


def redacted(value: Any) -> Any:
    """The same for what becomes JSON; where there is nothing to take out it is the very value."""
    if isinstance(value, str):
        return redact(value)
    value = concealed(value)
    whole = json.dumps(value, ensure_ascii=False, default=str)
    return _within(json.loads(whole), shapes.hide) if shapes.hide(whole) != whole else value


def _within(value: Any, clean: Callable[[str], str]) -> Any:
    """Text by text: in JSON the `n` of a line break would pass for the first letter of a value."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(key): _within(item, clean) for key, item in value.items()}
    return [_within(item, clean) for item in value] if isinstance(value, list) else value


@lru_cache(maxsize=64)
def _apart(secret: str) -> re.Pattern[str]:
    return re.compile(f"{_BETWEEN}*".join(map(re.escape, secret)))


def cut(head: str, tail: str) -> tuple[str, str]:
    """The two sides of a cut, without what may have been left of a value there."""
    if (begun := _begun(head)) >= _TORN:
        head = head[:-begun] + HIDDEN
    longest = min(len(_hidden[0]) - 1, len(tail)) if _hidden else 0
    ended = next((size for size in range(longest, 0, -1) if tail[:size] in _ends), 0)
    return head, HIDDEN + tail[ended:] if ended >= _TORN else tail


def _begun(text: str) -> int:
    """How many letters at the end of `text` may be the beginning of a value."""
    longest = min(len(_hidden[0]) - 1, len(text)) if _hidden else 0
    return next((size for size in range(longest, 0, -1) if text[-size:] in _starts), 0)


class StreamRedactor:
    """Redacts a text that comes in pieces: what may begin a secret waits for the next piece."""

    def __init__(self) -> None:
        self._held = ""

    def add(self, piece: str) -> str:
        """What can be shown once `piece` has come."""
        text = conceal(self._held + piece)
        begun = max(_begun(text), shapes.begun(text))
        self._held = text[len(text) - begun :]
        return shapes.hide(text[: len(text) - begun])

    def end(self) -> str:
        """The rest, when nothing more comes."""
        text, self._held = self._held, ""
        begun = _begun(text)
        rest = text[len(text) - begun :]
        return shapes.hide(text[: len(text) - begun]) + (HIDDEN if begun >= _TELLING else rest)
