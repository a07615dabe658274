"""Ordinary work is not asked about more often than it was before tools had classes, and each change has its reason.

`ordinary.json` holds the calls of a coding task and of a conversation, each with what the release before said.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shared.client.views.permissions.replay import replay
from shared.guard.permissions.presets import preset
from shared.guard.sandbox.sandbox import Sandbox
from shared.loop import Call
from shared.store.records import Audit
from shared.turns.records import ResultRecord
from tests.attacks.ground import REGISTRY, Ground

WORK: list[dict[str, Any]] = json.loads(Path(__file__).with_name("ordinary.json").read_text("utf-8"))
CODING = [row for row in WORK if row["agent"] == "backend"]
# What widens roots, spends, approves, schedules, connects or puts to sleep: asked since, whatever it was before.
WIDENING = {
    "add_repo", "create_hook", "fire_hook", "approve_task", "answer_task", "edit_project", "edit_task",
    "orchestrator_control", "pause_agent",
}  # fmt: skip


@pytest.mark.parametrize("read", [False, True], ids=["at first", "after reading what others wrote"])
async def test_a_plain_coding_task_is_asked_nothing(workspace: Path, strongest: Sandbox, read: bool) -> None:
    """At the real door: the rules, the caution and the sandbox's word on commands."""
    if not strongest.offline:
        pytest.skip("without bubblewrap each command is asked for, now as before")
    ground = Ground(workspace, preset("builder", confined=True), strongest)
    if read:
        ground.turn.keep(ResultRecord(id="c", tool="view", content={"source": "repository"}, error=False))
    for number, row in enumerate(CODING):
        call = Call("c", f"t.{number}.1", row["tool"], row["arguments"])
        verdict = await ground.gate.permission(call, REGISTRY.bind(call.tool, call.arguments))
        assert verdict.allowed, (row["action"], verdict.reason)
    assert ground.decisions == ["allow"] * len(CODING) == [row["was"] for row in CODING]


def test_a_conversation_is_asked_what_it_was_asked_before_and_what_widens_something() -> None:
    rules = preset("standard", confined=True)
    for row in WORK:
        if row["agent"] != "chatter":
            continue
        tool = REGISTRY.get(row["tool"])
        checked = tool.check(row["arguments"])
        vote = rules.decide(tool.name, tool.category, (tool.detail(checked),), tool.touched(checked)).vote
        assert vote == row["was"] or (row["was"], vote) == ("allow", "ask"), row
        assert (vote != row["was"]) <= (row["tool"] in WIDENING), f"{row['action']} is asked about now"


def test_of_a_thousand_recorded_calls_each_that_is_asked_now_says_why() -> None:
    """As `promptdock permissions simulate` tells it to who upgrades: rows that do not know what was touched."""
    rows = [_row(WORK[number % len(WORK)], number) for number in range(1000)]
    talking = [row for row in rows if row.agent == "chatter"]
    told = replay(preset("standard", confined=True), talking, REGISTRY)
    assert told["checks"] == len(talking) > 650
    assert {one["action"].split(":")[1] for one in told["changed"]} <= WIDENING
    assert {(one["was"], one["would_be"]) for one in told["changed"]} == {("allow", "ask")}
    for one in told["changed"]:
        assert one["why"].startswith("it ") and one["touches"], one
    assert sum(reason["checks"] for reason in told["reasons"]) == len(told["changed"]) > 50
    coding = [row for row in rows if row.agent == "backend"]
    assert replay(preset("builder", confined=True), coding, REGISTRY)["changed"] == []


def _row(work: dict[str, Any], number: int) -> Audit:
    """As the release before wrote it."""
    decision = "allow" if work["was"] == "allow" else ("ask_approved", "ask_denied", "expired")[number % 3]
    return Audit(
        agent=work["agent"], action=work["action"], decision=decision, detail={"category": work["category"]}
    )
