"""Last parts of actions that say the very thing: the real path or url, the amount, the text's digest.

So that a rule can bound what is opened or spent, and a standing permission for one thing is none for another.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shared.guard.permissions.requests import fingerprint
from shared.guard.permissions.touching import TouchKind, When
from shared.tasks.worktree.mirrors import is_url


def place(given: Any) -> str:
    """Where a repository is: its url as it was given, or the real path of a folder of this machine."""
    text = str(given or "")
    return text if not text or is_url(text) or "\0" in text else os.path.realpath(Path(text).expanduser())


def digest(arguments: Mapping[str, Any]) -> str:
    """A short name for exactly these arguments."""
    return fingerprint(arguments)[:12]


def words(*parts: Any) -> str:
    """The parts that there are, with a blank between."""
    return " ".join(str(part) for part in parts if part not in (None, ""))


def dollars(value: Any) -> str:
    """An amount; `none` for no bound."""
    return "none" if value is None else f"{float(value):g}"


def _reached(given: Any) -> tuple[TouchKind, ...]:
    return ("address",) if is_url(str(given)) else ("root",)


# An argument that may name a folder of this machine, or a url.
PLACE = When(("root", "address"), _reached)
