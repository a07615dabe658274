"""Text for a person who decides on it: what would hide, turn around or imitate is written out as code points."""

from __future__ import annotations

import re
from typing import Any

from shared import failpoints
from shared.plain import LONGEST, plain

__all__ = ["plain", "plainly", "tagless"]

# Letters that no font draws and every model reads; and variants of letters where they can be none, since one letter
# has one, and those of the second kind are of Chinese characters alone.
_TAGS = re.compile(
    "[\U000e0000-\U000e007f]"
    "|(?<=[\ufe00-\ufe0f\U000e0100-\U000e01ef])[\ufe00-\ufe0f\U000e0100-\U000e01ef]"
    "|(?<![\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])[\U000e0100-\U000e01ef]"
)


def tagless(text: str) -> str:
    """`text` in which hidden letters are written out, so that they are no words to a model."""
    if failpoints.without("hidden-letters"):
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
