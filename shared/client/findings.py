"""What `doctor` finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warn", "fail"]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: how it is, and what to do where it is not well."""

    name: str
    level: Level
    told: str
    fix: str = ""
