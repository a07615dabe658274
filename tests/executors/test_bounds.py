"""A bound that an executor cannot hold is refused, not forgotten."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shared.errors import Lasting
from shared.executors.base import TaskWork
from shared.executors.claude_code import ClaudeCode


async def test_claude_code_refuses_a_bound_on_tokens_and_says_what_to_do(work: TaskWork) -> None:
    with pytest.raises(Lasting, match="500 tokens") as refused:
        await ClaudeCode().run(replace(work, tokens=500))
    assert "PROMPTDOCK_EXECUTOR=loop" in refused.value.fix
    assert not work.journal.records
