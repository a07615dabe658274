"""Which events there are, what they are made of, and who hears of them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from shared.bus.messages import Output
from shared.errors import UsageError
from shared.notify import events
from shared.notify.events import Notice
from shared.store.records import Subscription, Task, TaskEvent, new_id, now

AT = now()


def output(status: Any = "complete", **more: Any) -> Output:
    given = {"user_id": "ada", "content": "Done.", "id": "t1.end", "session_id": "talk"}
    return Output.model_validate({**given, "timestamp": AT.isoformat(), "status": status, **more})


def subscription(**more: Any) -> Subscription:
    given = {"slug": "ci", "transport": "webhook", "address": "x", "shown": "x", "user_id": "ada"}
    return Subscription(
        **{**given, "events": list(events.EVENTS), "created_at": AT - timedelta(hours=1), **more}
    )


def task(**more: Any) -> Task:
    return Task(**{"slug": "calm-otter", "project_id": new_id(), "title": "Paint", "user_id": "ada", **more})


def named(notice: Notice | None) -> str:
    assert notice is not None
    return notice.event


def test_what_chatter_says_is_told_by_its_state() -> None:
    asks = {"approval": {"id": "a1"}, "options": ["yes", "no"]}
    assert named(events.of_output(output("awaiting_approval", **asks), AT)) == "approval.requested"
    assert named(events.of_output(output("awaiting_input", question="Which?"), AT)) == "question.asked"
    assert named(events.of_output(output("complete"), AT)) == "turn.completed"
    assert named(events.of_output(output("error"), AT)) == "turn.failed"


@pytest.mark.parametrize(
    "more",
    [
        {"status": "progress"},
        {"status": "task_update"},
        {"result": {"ok": True}},
        {"task": {"task_id": "calm-otter"}, "status": "awaiting_input"},
        {"session_id": "command:ada"},
        {"session_id": "approval:a1"},
    ],
)
def test_what_is_told_otherwise_or_to_nobody_is_no_event(more: dict[str, Any]) -> None:
    assert events.of_output(output(**more), AT) is None


@pytest.mark.parametrize(
    ("event", "to", "told"),
    [
        ("plan_made", "AWAITING_PLAN_APPROVAL", ["plan.ready"]),
        ("needs_review", "AWAITING_APPROVAL", ["review.ready"]),
        ("question", "WAITING_INPUT", ["question.asked"]),
        ("budget_spent", "PAUSED", ["budget.reached"]),
        ("paused", "PAUSED", []),
        ("failed", "FAILED", ["task.failed"]),
        ("given_up", "BLOCKED", ["task.blocked"]),
        ("passed", "COMPLETED", ["task.completed", "review.ready"]),
        ("approved", "COMPLETED", ["task.completed"]),
        ("started", "IN_PROGRESS", []),
    ],
)
def test_what_a_task_goes_through_is_told(event: str, to: Any, told: list[str]) -> None:
    row = task(branch="task/calm-otter", error="x" if to == "FAILED" else "")
    found = events.of_task(TaskEvent(task_id=row.id, event=event, to_status=to), row, "shop")
    assert [one.event for one in found] == told
    assert all(one.data["task_id"] == "calm-otter" and one.data["project"] == "shop" for one in found)


def test_a_body_says_what_when_and_where_and_no_secret() -> None:
    said = "the key is sk-ant-api03-" + "abcdefghij" * 9
    notice = events.of_output(output(content=said), AT)
    assert notice is not None
    body = notice.body("https://dock.example")
    assert body["type"] == "turn.completed" and body["timestamp"].endswith("Z")
    assert body["url"] == "https://dock.example/chat/talk"
    assert "abcdefghij" not in str(body) and body["data"]["status"] == "complete"


def test_who_hears_of_it() -> None:
    notice = Notice("task.completed", "k", "s", AT, {}, "/", user_id="ada", project_id=new_id())
    assert events.hears(subscription(), notice)
    assert not events.hears(subscription(user_id="eve"), notice)
    assert events.hears(subscription(user_id="eve", everything=True), notice)
    assert events.hears(subscription(user_id="eve", project_id=notice.project_id), notice)
    assert not events.hears(subscription(project_id=new_id()), notice)  # hers, but of another project
    assert not events.hears(subscription(events=["turn.completed"]), notice)
    assert not events.hears(subscription(created_at=AT + timedelta(seconds=1)), notice)  # of before
    nobodys = Notice("task.completed", "k", "s", AT, {}, "/")
    assert not events.hears(subscription(user_id=""), nobodys)


def test_events_are_named_one_by_one_or_by_their_group() -> None:
    assert events.meant(["attention"]) == list(events.ATTENTION)
    assert events.meant(["task", "task.failed"]) == list(events.GROUPS["task"])
    assert set(events.meant(["all"])) == set(events.EVENTS)
    for wrong in (["nonsense"], [], ["task", "nonsense"]):
        with pytest.raises(UsageError, match="attention"):
            events.meant(wrong)
