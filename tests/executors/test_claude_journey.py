"""From one sentence to a merged change, where Claude Code carries out the tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.journey.model import CLAUDE
from tests.journey.story import walk
from tests.support.valkey import valkey

__all__ = ["valkey"]


@pytest.mark.timeout(300)
def test_the_journey_is_the_same_with_claude_code_at_work(tmp_path: Path, valkey: str) -> None:
    agents = ("chatter", "planner", "frontend", "backend")
    with walk(tmp_path, valkey, *agents, tools=CLAUDE, PROMPTDOCK_EXECUTOR="claude-code") as journey:
        journey.asks()
        journey.lets_them_work()
        journey.merges()
        journey.one_branch_holds_every_commit_once()
        journey.the_receipts_say_what_was_checked()
        journey.the_trail_is_whole()
        assert journey.model.again == 0, "an answer was bought twice"
