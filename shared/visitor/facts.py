"""The settings in force, and where each comes from; secrets only as set or not."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pydantic import AliasChoices, SecretStr

from shared.settings import Settings


def facts(settings: Settings, env_file: Path) -> list[dict[str, Any]]:
    """`{name, value, source}` of every setting; source is environment, .env or default."""
    written = _written(env_file)
    found = []
    for field, info in Settings.model_fields.items():
        alias = info.validation_alias
        names = [str(name) for name in (alias.choices if isinstance(alias, AliasChoices) else [alias])]
        source, name = _source(names, written)
        found.append({"name": name, "value": _shown(getattr(settings, field)), "source": source})
    return found


def _written(file: Path) -> dict[str, str | None]:
    from dotenv import dotenv_values

    return dotenv_values(file) if file.is_file() else {}


def _source(names: list[str], written: dict[str, str | None]) -> tuple[str, str]:
    for source, values in (("environment", os.environ), (".env", written)):
        for name in names:
            if values.get(name):
                return source, name
    return "default", names[0]


def _shown(value: object) -> Any:
    if isinstance(value, SecretStr):
        return "(set, hidden)"
    if isinstance(value, frozenset):
        return sorted(value)
    return value if isinstance(value, int | float | str | None) else str(value)
