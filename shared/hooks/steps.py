"""What a hook looks at before it asks an agent: context steps in order, and when they say that it need not ask.

Steps run through the gate that the worker hands over; a step that is not allowed fails the run.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shared.errors import PromptDockError

StepResult = dict[str, Any]
# One tool, by its name and arguments, for a hook's project. PromptDockError where it is not allowed.
RunTool = Callable[[str, dict[str, Any]], Awaitable[StepResult]]
KEPT = 64 * 1024  # characters of a text that a step found
NOT_RUN = "not_run"  # in what a step found that was only tried out: what it would have done

_TEXT = {"shell": "stdout", "read_file": "content", "http": "body", "git_diff": "diff"}


@dataclass(frozen=True)
class Looked:
    """What the steps found; `skip` says why no agent need be asked, `error` what went wrong."""

    steps: list[StepResult] = field(default_factory=list)
    skip: str = ""
    error: str = ""


async def look(steps: Sequence[Mapping[str, Any]], project: str, run_tool: RunTool) -> Looked:
    """Run the steps until one fails or says that nothing need be done."""
    found: list[StepResult] = []
    for number, step in enumerate(steps):
        kind = str(step.get("type"))
        try:
            result = await run_tool(*_call(kind, step, project))
        except PromptDockError as error:
            return Looked(found, error=f"step {number} ({kind}): {error}")
        found.append({"type": kind, **_short(result)})
        if "error" in result and kind != "http":  # an address that does not answer is an answer
            told = f"{result['error']}. {result.get('why', '')}".strip(". ")
            return Looked(found, error=f"step {number} ({kind}): {told}")
        if NOT_RUN not in result and (why := _skips(kind, step, found[-1])):
            return Looked(found, skip=f"step {number} ({kind}): {why}")
    return Looked(found)


def digest(steps: Sequence[Mapping[str, Any]], project: str) -> str:
    """Of exactly these steps in this project: what a person allows is bound to it."""
    told = json.dumps([project, list(steps)], sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(told.encode()).hexdigest()


def calls(steps: Sequence[Mapping[str, Any]], project: str) -> list[tuple[str, dict[str, Any]]]:
    """The calls that these steps make; those that are no steps, whose making is refused anyway, are left out."""
    found = []
    for step in steps:
        with contextlib.suppress(KeyError, TypeError, ValueError, AttributeError, PromptDockError):
            found.append(_call(str(step.get("type")), step, project))
    return found


def _call(kind: str, step: Mapping[str, Any], project: str) -> tuple[str, dict[str, Any]]:
    match kind:
        case "shell":
            where = str(step.get("working_dir") or project)
            timeout = min(120, max(1, int(step.get("timeout") or 30)))
            return "run_command", {"command": str(step["command"]), "working_dir": where, "timeout": timeout}
        case "read_file":
            return "read_file", {"path": str(step["path"])}
        case "http":
            return "http_get", {"url": str(step["url"]), "timeout": float(step.get("timeout") or 10)}
        case "db_query":
            return "named_query", {"query": str(step["query"]), "project_id": project}
        case "git_diff":
            given = {key: str(step[key]) for key in ("base_branch", "workspace", "path") if step.get(key)}
            return "git_diff", {"project_id": project, **given}
    raise PromptDockError(f"there is no context step of type {kind!r}")


def _short(result: StepResult) -> StepResult:
    return {
        key: f"{value[:KEPT]} …" if isinstance(value, str) and len(value) > KEPT else value
        for key, value in result.items()
    }


def _skips(kind: str, step: Mapping[str, Any], found: StepResult) -> str:
    if step.get("skip_llm_if_exit_zero") and kind == "shell" and found.get("returncode") == 0:
        return "the command exited with 0"
    if step.get("skip_llm_if_status_ok") and kind == "http" and 200 <= int(found.get("status") or 0) < 300:
        return f"the address answered {found['status']}"
    if step.get("skip_llm_if_empty") and not text_of(found).strip():
        return "nothing was found"
    return ""


def text_of(found: Mapping[str, Any]) -> str:
    """What a step found, as `{{step_N}}` shows it."""
    kind = str(found.get("type"))
    if kind == "db_query":
        rows = found.get("rows") or []
        return json.dumps(rows, ensure_ascii=False, default=str) if rows else ""
    text = found.get(_TEXT.get(kind, ""), "")
    if kind == "shell" and found.get("stderr"):
        text = f"{text}\n{found['stderr']}"
    return str(text if text else found.get("error") or found.get(NOT_RUN, ""))
