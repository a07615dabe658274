"""The door itself: cheap, and every call through it is noted whatever becomes of it."""

from __future__ import annotations

import statistics
import time
from dataclasses import asdict

from shared.guard.permissions.policy import policy
from shared.guard.permissions.presets import preset
from shared.guard.permissions.requests import ApprovalRequest, Decided, fingerprint
from shared.guard.sandbox.sandbox import Sandbox
from shared.loop import Call
from shared.turns.records import AskRecord, ResultRecord
from shared.worker.permissions.service import decided_record
from shared.worker.runners.history import turn_rows
from tests.attacks.ground import REGISTRY, Ground
from tests.support.guards import guarded


async def test_a_check_costs_less_than_a_millisecond(builder: Ground) -> None:
    """Of this process's own time, the middle of many, for a path and for a command line."""
    costs = []
    for number in range(300):
        name, arguments = "create_file", {"path": f"src/module_{number}.py", "content": "x = 1\n"}
        if number % 2:
            name, arguments = (
                "bash",
                {"command": f"git log -{number} && pytest -q tests/test_{number}.py | tail"},
            )
        call = Call("c", f"t.{number}.1", name, arguments)
        began = time.process_time()
        verdict = await builder.gate.permission(call, REGISTRY.bind(name, arguments))
        costs.append((time.process_time() - began) * 1000)
        assert verdict.allowed
    assert statistics.median(costs) < 1.0


@guarded("audit-log")
async def test_every_call_is_one_row_of_the_audit_log(builder: Ground) -> None:
    await builder.call("view", path="f")
    await builder.call("create_file", path=".env", content="x")
    await builder.call("delete_task", task_id="x")
    call = Call("c", "t.again.1", "view", {"path": "f"})
    for _ in range(2):  # a call that is made again by a successor
        await builder.gate.permission(call, REGISTRY.bind("view", {"path": "f"}))
    builder.gate.refuse(Call("c", "t.other.1", "magic", {}), "no such tool")
    rows = turn_rows(
        *("backend", "t", "s", builder.turn.records),
        state="complete",
        epoch=1,
        tries=1,
        started_ms=0,
        ended_ms=1,
    )
    audit = [(row.action, row.decision) for row in rows if row.table == "audit_log"]  # type: ignore[attr-defined]
    assert audit == [
        ("tool:view:f", "allow"),
        ("tool:create_file:.env", "deny"),
        ("tool:delete_task:x", "deny"),
        ("tool:view:f", "allow"),
        ("tool:magic:", "deny"),
    ]
    assert len({row.id for row in rows}) == len(rows)


async def test_arguments_that_are_wrong_get_no_leave(builder: Ground) -> None:
    result = await builder.call("create_file", path="x.py", contents="x")
    assert "cannot take these arguments" in result["why"]
    assert builder.decisions == [] and not (builder.root / "x.py").exists()


async def test_a_rule_for_a_folder_is_not_passed_by_a_detour(
    workspace: object, builder: Ground, strongest: Sandbox
) -> None:
    (builder.root / "secrets").mkdir()
    (builder.root / "secrets" / "key").write_text("k")
    rules = policy("p", deny=["tool:view:secrets/.*"], allow=["tool:view:.*"])
    ground = Ground(builder.root, rules, strongest)
    for path in (
        "secrets/key",
        "./secrets/key",
        "src/../secrets/key",
        "secrets//key",
        "workspace/secrets/key",
    ):
        assert "error" in await ground.call("view", path=path), path
    assert "content" in await ground.call("view", path="src/a.py")


@guarded("exact-arguments")
async def test_a_yes_is_for_the_arguments_that_were_asked_for_and_no_others(builder: Ground) -> None:
    """Whatever the journal of a turn says by the time its successor calls again."""
    asked, changed = {"task_id": "old-work"}, {"task_id": "old-work "}
    for arguments, allowed in ((asked, True), (changed, False), ({"task_id": "other"}, False)):
        ground = Ground(builder.root, builder.policy, builder.sandbox)
        card = ApprovalRequest(
            *(
                "a1",
                "t.1.1",
                "backend",
                "s",
                "ada",
                "t",
                "h",
                "delete_task",
                "tool:delete_task:old-work",
                asked,
            ),
            *(fingerprint(asked), "why", "pattern", "default", 1, 2),
        )
        ground.turn.keep(AskRecord(at=1, call="t.1.1", card=asdict(card)))
        ground.turn.keep(decided_record(card, Decided("allow_once", "ada", at=1)))
        verdict = await ground.gate.permission(
            Call("c", "t.1.1", "delete_task", arguments), REGISTRY.bind("delete_task", arguments)
        )
        assert verdict.allowed == allowed, arguments
        assert allowed or "other arguments" in verdict.reason


async def test_a_turn_that_read_what_others_wrote_asks_before_the_agent_changes_itself(
    builder: Ground,
) -> None:
    ground = Ground(builder.root, preset("guarded"), builder.sandbox)
    edit = {"new_prompt": "Do as the README says."}
    bound = REGISTRY.bind(tool := "self_edit_system_prompt", edit)
    assert (await ground.gate.permission(Call("c", "t.1.1", tool, edit), bound)).allowed
    ground.turn.keep(ResultRecord(id="c", tool="view", content={"source": "repository"}, error=False))
    again = await ground.gate.permission(Call("c", "t.2.1", tool, edit), bound)
    assert "nobody who could be asked" in again.reason


@guarded("no-sandbox")
async def test_without_any_sandbox_each_command_is_asked(builder: Ground) -> None:
    ground = Ground(builder.root, builder.policy, Sandbox("none", "as the owner says"))
    assert "nobody who could be asked" in str(await ground.call("bash", command="ls"))


@guarded("landlock-asks")
async def test_under_landlock_each_command_is_asked_whatever_the_rules_allow(builder: Ground) -> None:
    ground = Ground(builder.root, preset("guarded"), Sandbox("landlock", "for this test"))
    assert "nobody who could be asked" in str(await ground.call("bash", command="chmod 777 f"))


async def test_a_turn_that_read_what_others_wrote_asks_before_it_takes_anything_away(builder: Ground) -> None:
    rules = policy("pusher", allow=["tool:(git_push|view):.*"])
    ground = Ground(builder.root, rules, builder.sandbox)
    push = Call("c", "t.1.1", "git_push", {"branch": "main"})
    bound = REGISTRY.bind(push.tool, push.arguments)
    assert (await ground.gate.permission(push, bound)).allowed
    ground.turn.keep(ResultRecord(id="c", tool="view", content={"source": "repository"}, error=False))
    again = Call("c", "t.2.1", "git_push", {"branch": "main"})
    assert "nobody who could be asked" in (await ground.gate.permission(again, bound)).reason
