"""Text that comes from models, programs and strangers, made safe for a terminal."""

from __future__ import annotations

import json
import re
from typing import Any

from shared.plain import LONGEST as LONGEST
from shared.plain import complaint as complaint
from shared.plain import dollars as dollars

# Whole escape sequences first (CSI, then OSC and its kin up to their end), so that no rest of them is shown.
_SEQUENCES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
)
# Controls but newline and tab, marks that turn the direction of writing, invisible tags, half characters.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\ud800-\udfff]"
)
_LINES = re.compile("\r\n?|[\u2028\u2029\x0b\x0c\x85]")


def safe(text: str) -> str:
    """The text without anything that a terminal would obey, or that would make it read as something else."""
    return _HIDDEN.sub("", _SEQUENCES.sub("", _LINES.sub("\n", text)))


def line(text: str, width: int = 120) -> str:
    """The text as one safe line, cut short."""
    flat = " ".join(safe(text).split())
    return flat if len(flat) <= width else flat[: max(0, width - 1)] + "…"


def encoded(value: Any) -> str:
    """JSON on one line, in which what a terminal would obey is escaped."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return _HIDDEN.sub(lambda found: json.dumps(found.group())[1:-1], text)


def labelled(text: str, demo: bool | None) -> str:
    """What the demo model said carries its label."""
    return f"[demo] {text}" if demo and not text.lstrip().lower().startswith("[demo]") else text
