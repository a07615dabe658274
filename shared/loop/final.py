"""The final text of an answer: its text blocks without thinking, in whatever tags a model wraps that."""

from __future__ import annotations

import re
from collections.abc import Iterable

from shared.models.base import Block

_NAMES = "think|thinking|reasoning|reflection"
_TAGGED = re.compile(
    rf"<({_NAMES})>(.*?)(?:</\1>|\Z)|\[(think)\](.*?)(?:\[/think\]|\Z)", re.DOTALL | re.IGNORECASE
)


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
    text = before + "\n".join(texts)
    thoughts.extend(found.group(2) or found.group(4) or "" for found in _TAGGED.finditer(text))
    return _TAGGED.sub("", text).strip(), "\n".join(part.strip() for part in thoughts if part.strip())
