"""The settings in force, and where each comes from; secrets only as set or not."""

from __future__ import annotations

from typing import Any

from pydantic import AliasChoices, SecretStr

from shared import folders
from shared.client import connect
from shared.settings import Settings


def facts(settings: Settings) -> list[dict[str, Any]]:
    """`{name, value, source}` of every setting; source is environment, the file that has it, or default."""
    given = folders.sources(settings.home)
    found, unusable = [], {one.name for one in settings.wrong}
    for field, info in Settings.model_fields.items():
        alias = info.validation_alias
        names = [str(name) for name in (alias.choices if isinstance(alias, AliasChoices) else [alias])]
        source, name = _source(names, given)
        value = getattr(settings, field)
        if field == "model" and value is None:  # what is in force where nothing is set
            found_here = connect.providers(settings)
            newest = "the newest that is listed"
            value = (found_here[0].recommended or newest) if found_here else "demo"
        shown = "(cannot be used)" if name in unusable else _shown(value)
        found.append({"name": name, "value": shown, "source": source})
    return found


def _source(names: list[str], given: list[tuple[str, dict[str, str]]]) -> tuple[str, str]:
    for source, values in given:
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
