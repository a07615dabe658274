"""Rows of what happened go when they are too old; what somebody still needs does not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from shared.store import retention
from shared.store.base import Store
from shared.store.records import (
    Approval,
    Audit,
    ConversationMessage,
    HookRun,
    Log,
    Message,
    Note,
    Post,
    Project,
    Row,
    Session,
    SnapshotRow,
    Task,
    TaskEvent,
    TokenUsage,
    TurnRow,
    TurnStep,
    new_id,
)

NOW = datetime(2026, 11, 22, tzinfo=UTC)
SHOP = Project(slug="shop", name="Shop")


def ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


async def always() -> bool:
    return True


async def left(store: Store, kind: type[Row]) -> int:
    return await store.count(kind)


def happened(at: datetime) -> list[Row]:
    """One row of each table of what happened."""
    hook = new_id()
    return [
        Log(created_at=at, agent="chatter", message="m"),
        TurnStep(created_at=at, turn_id="t", number=1, kind="model"),
        Message(created_at=at, from_agent="user", to_agent="chatter", type="message"),
        Post(created_at=at, channel="discord:1", surface_id="9", session_id="s"),
        TurnRow(created_at=at, turn_id="t", agent="chatter", state="complete"),
        HookRun(created_at=at, hook_id=hook, state="completed"),
        Approval(created_at=at, approval_id="a", agent="backend", action="bash", state="deny"),
        TokenUsage(created_at=at, agent="chatter", model="demo"),
        Audit(created_at=at, agent="chatter", action="bash", decision="allow"),
    ]


async def test_each_table_is_kept_as_long_as_its_bound_says(store: Store) -> None:
    kinds = [type(row) for row in happened(NOW)]
    for kind in kinds:
        days = retention.DAYS[kind.table]
        older, younger = (
            [row for row in happened(ago(at)) if type(row) is kind] for at in (days + 1, days - 1)
        )
        await store.upsert([*older, *younger])
    found = await retention.sweep(store, NOW, {}, always)
    assert found == {kind.table: 1 for kind in kinds}
    assert [await left(store, kind) for kind in kinds] == [1] * len(kinds)
    assert await retention.sweep(store, NOW, {}, always) == {}


async def test_a_bound_may_be_another_and_none_at_all(store: Store) -> None:
    await store.upsert([*happened(ago(10)), *happened(ago(1000))])
    given = dict.fromkeys(retention.DAYS, 0) | {"logs": 5}
    assert await retention.sweep(store, NOW, given, always) == {"logs": 2}


async def test_what_runs_waits_or_was_made_by_people_stays_however_old(store: Store) -> None:
    old = ago(4000)
    await store.insert(SHOP)
    await store.upsert([
        HookRun(created_at=old, hook_id=new_id(), state="running"),
        Approval(created_at=old, approval_id="a", agent="backend", action="bash", session_id="asked"),
        Note(created_at=old, project_id=SHOP.id, slug="n", title="N"),
    ])  # fmt: skip
    rows: list[Row] = []
    tasks = {
        slug: Task(slug=slug, project_id=SHOP.id, title=slug, session_id=slug, **more)  # type: ignore[arg-type]
        for slug, more in {
            "open": {"status": "AWAITING_APPROVAL"},
            "done": {"status": "COMPLETED"},
            "old": {"status": "COMPLETED", "archived": True},
        }.items()
    }
    await store.upsert(list(tasks.values()))
    for task in tasks.values():
        for event in ("created", "merged"):
            rows.append(TaskEvent(created_at=old, task_id=task.id, event=event))
    rows.append(TaskEvent(created_at=old, task_id=new_id(), event="created"))  # of one that is deleted
    for key in ("asked", *tasks, "back"):
        rows += [
            Session(key=key, last_active_at=NOW if key == "back" else old),
            ConversationMessage(created_at=old, session_id=key, seq=1, role="user"),
            SnapshotRow(created_at=old, session_id=key, kind="saved"),
            SnapshotRow(created_at=old, session_id=key, kind="summary"),
        ]
    await store.upsert(rows)
    found = await retention.sweep(store, NOW, {}, always)
    assert found == {"task_events": 2, "sessions": 2}  # those that nobody has, and the archived one's
    kept = await store.select(TaskEvent)
    told = {(task.slug, row.event) for task in tasks.values() for row in kept if row.task_id == task.id}
    whole = {(slug, event) for slug in ("open", "done") for event in ("created", "merged")}
    assert told == whole | {("old", "merged")} and len(kept) == 5
    for kind in (Session, ConversationMessage):
        names = {
            getattr(row, "key", "") or getattr(row, "session_id", "") for row in await store.select(kind)
        }
        assert names == {"asked", "open", "back"}
    assert await store.count(SnapshotRow, {"kind": "saved"}) == 5
    assert await store.count(SnapshotRow, {"kind": "summary"}) == 3
    assert [await left(store, kind) for kind in (HookRun, Approval, Note, Task)] == [1, 1, 1, 3]


async def test_many_rows_go_in_slices_and_the_rest_stays_when_it_is_not_ours_any_more(store: Store) -> None:
    rows = [Log(created_at=ago(40 + n / 1000), agent="chatter", message="m") for n in range(1200)]
    await store.upsert(rows)
    asked = 0

    async def once() -> bool:
        nonlocal asked
        asked += 1
        return asked == 1

    assert await retention.sweep(store, NOW, {}, once) == {"logs": retention.SLICE}
    newest = await store.select(Log, order=[("created_at", "desc")], limit=1)
    assert await left(store, Log) == 700 and newest[0].id == rows[0].id
    assert await retention.sweep(store, NOW, {}, always) == {"logs": 700}
