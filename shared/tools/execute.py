"""The one way in which all tools run, whoever calls.

It never raises for what a tool does: an unknown name, a wrong argument, any exception is a result
with an `error` key. Success is the absence of `error`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from shared import log
from shared.errors import Fenced, Missing, PromptDockError, ToolError
from shared.guard.permissions.display import tagless
from shared.redaction import concealed
from shared.tools.context import Context
from shared.tools.registry import BoundCall, Registry, Result

MAX_RESULT = 64 * 1024  # characters of JSON that go to the model


class ToolExecutor:
    """Runs tools of a registry by name."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry

    async def execute(self, name: str, arguments: Any, context: Context, step_id: str = "") -> Result:
        """Bind a call and run it."""
        try:
            bound = self.registry.bind(name, arguments)
        except Exception as error:
            return _failed(name, error)
        return await self.run(bound, context, step_id)

    async def run(self, bound: BoundCall | ToolError, context: Context, step_id: str = "") -> Result:
        """Run one call; losing the turn's lease is the only thing that is raised."""
        if isinstance(bound, ToolError):
            return _bounded(bound.as_dict())
        try:
            here = replace(context, step_id=step_id or context.step_id, registry=self.registry)
            result = await bound.tool.function(here, **bound.arguments)
        except Fenced:
            raise
        except Missing as error:
            # Removed by this very call, before its worker died: it says what it would have said then.
            told = (context.intended or {}).get("told")
            return dict(told) if told else _bounded(error.as_dict())
        except PromptDockError as error:
            return _bounded(error.as_dict())
        except Exception as error:
            return _failed(bound.name, error)
        return _bounded(result)


def _failed(name: str, error: Exception) -> Result:
    log.get().exception("A tool failed", tool=name)
    return {"error": f"{name} failed", "why": log.redact(f"{type(error).__name__}: {error}")[:500]}


def _bounded(result: Result) -> Result:
    """As the model reads it: without the cluster's secrets, without hidden letters, and not too long."""
    whole = json.dumps(result, ensure_ascii=False, default=str)
    told = concealed(result)
    text = tagless(whole if told is result else json.dumps(told, ensure_ascii=False))
    if len(text) <= MAX_RESULT:
        return result if text == whole and _is_plain(result) else dict(json.loads(text))
    half = MAX_RESULT // 2
    left_out = len(text) - MAX_RESULT
    return {
        "truncated": f"{text[:half]} … {left_out} characters left out … {text[-half:]}",
        "warning": f"the result was too large ({len(text)} characters); ask for less at a time",
    }


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    if isinstance(value, list):
        return all(_is_plain(item) for item in value)
    return isinstance(value, str | int | float | bool | None)
