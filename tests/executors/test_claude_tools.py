"""Calls of Claude Code in our terms: how long a command may run, and what cannot be understood."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from shared.errors import ToolError
from shared.executors.base import TaskWork
from shared.executors.claude_code import _Run
from shared.executors.claude_tools import SECONDS, translate

WORK = cast(TaskWork, SimpleNamespace(path=Path("/work"), live=lambda *_: None, turn_id="t"))


@pytest.mark.parametrize(("asked", "seconds"), [(None, 120), (1, 1), (5_000, 5), (1e12, SECONDS)])
def test_a_command_runs_as_long_as_it_asks_within_bounds(asked: Any, seconds: float) -> None:
    call = translate("Bash", {"command": "make", "timeout": asked}, WORK)
    assert call.arguments["timeout"] == seconds


@pytest.mark.parametrize("asked", ["soon", [1], {}, True, 0, -1, float("nan"), float("inf")])
def test_a_timeout_that_is_none_is_refused(asked: Any) -> None:
    with pytest.raises(ToolError, match="was not run"):
        translate("Bash", {"command": "make", "timeout": asked}, WORK)


@pytest.mark.parametrize(
    "given", [{}, {"tool_name": "Bash", "tool_use_id": "1", "tool_input": None}, None, 7]
)
async def test_what_cannot_be_judged_is_denied(given: Any) -> None:
    run = _Run.__new__(_Run)
    run._work = WORK
    told = await run._before(given, None, None)
    assert told["hookSpecificOutput"]["permissionDecision"] == "deny"
