"""Names of folders and branches that are made from what people and other programs call things."""

from __future__ import annotations

import hashlib
import re

_LENGTH = 48


def slug(text: str) -> str:
    """`text` in small letters, digits and hyphens; if that changed it, with a mark that keeps it unique."""
    plain = re.sub(r"[^a-z0-9]+", "-", text.casefold()).strip("-")[:_LENGTH].strip("-")
    if plain and plain == text:
        return plain
    mark = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{plain}-{mark}" if plain else mark
