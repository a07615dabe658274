"""A hook's prompt: its template, filled in with what the context steps found and with the event."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from shared.hooks.steps import text_of

MOST = 100_000  # characters of a prompt
_PLACE = re.compile(r"\{\{\s*(step_(\d+)|event)((?:\.[\w-]+)*)\s*\}\}")


def render(template: str, steps: Sequence[Mapping[str, Any]], event: Mapping[str, Any]) -> str:
    """`{{step_N}}`, `{{step_N.field}}` (steps count from 0), `{{event}}`, `{{event.field}}`.

    A place that nothing stands for stays as it is. What is filled in is not looked through again.
    """

    def fill(found: re.Match[str]) -> str:
        number, path = found[2], [part for part in found[3].split(".") if part]
        if number is not None and int(number) >= len(steps):
            return found[0]
        value: Any = event if number is None else steps[int(number)]
        if number is not None and not path:
            return text_of(value)
        for part in path:
            if not isinstance(value, Mapping) or part not in value:
                return found[0]
            value = value[part]
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)

    text = _PLACE.sub(fill, template)
    return text if len(text) <= MOST else f"{text[:MOST]} … ({len(text) - MOST} characters left out)"
