"""What every Store promises, asked of SQLite and of Supabase alike."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from shared.errors import Conflict, StoreUnavailable
from shared.store.base import Order, Store
from shared.store.records import (
    Agent,
    ConversationMessage,
    Log,
    Memory,
    Message,
    Project,
    Repo,
    Row,
    Session,
    Setting,
    Task,
    TaskDependency,
    TaskEvent,
    TaskResult,
    derived,
    new_id,
    project_key,
)

AT = datetime(2026, 5, 1, 12, 30, 15, 123456, tzinfo=UTC)
# What addresses, filters and SQL give a meaning to, and what alphabets there are.
AWKWARD = (
    "a,b", 'say "x"', "it's", "back\\slash", "(brackets)", "50%", "a&b=c", "a+b", "a b", " edges ", "null",
    "*", "a:b.c", "ключ", "鍵", "🗝️", "line\nbreak", "tab\t", "", "'; drop table logs; --", "{}", "e\u0301",
)  # fmt: skip


def _task(slug: str, **more: Any) -> Task:
    return Task(slug=slug, project_id=project_key("default"), title=slug, **more)


def _logs(count: int) -> list[Log]:
    return [
        Log(agent="a", message=f"{number:05}", created_at=AT + timedelta(seconds=number))
        for number in range(count)
    ]


async def test_everything_begins_with_a_default_project(store: Store) -> None:
    [project] = await store.select(Project)
    assert (project.id, project.slug, project.status) == (project_key("default"), "default", "ACTIVE")


@pytest.mark.parametrize(
    "row",
    [
        _task(
            "brave-otter",
            description="ünï 🦦\nsecond line",
            status="IN_PROGRESS",
            type="bugfix",
            acceptance=["tests pass", ""],
            attachments=[{"name": "a.png", "size": 3}],
            plan={"tasks": [{"deep": {"er": [1, 2.5, None, True, "x"]}}]},
            budget=0.25,
            requires_approval=True,
            epoch=2**40,
            lease_until=AT,
            created_at=AT,
        ),
        Message(from_agent="chatter", to_agent="planner", type="question", payload={"content": "why?"}),
        ConversationMessage(
            session_id="s", seq=1, role="assistant", content=[{"type": "text", "text": "hi"}]
        ),
        TaskResult(
            task_id=new_id(), commits=["abc"], files_changed=["a/b.py"], cost=0.000001, verified="partly"
        ),
        Memory(kind="fact", body="tea", embedding=[0.5, -0.25], valid_from=AT),
        Setting(scope="budget", key="day", value={"dollars": 5, "on": True, "names": []}),
        Agent(name="chatter"),
    ],
    ids=lambda row: row.table,
)
async def test_a_row_is_read_as_it_was_written(store: Store, row: Row) -> None:
    await store.insert(row)
    assert await store.select(type(row), {"id": row.id}) == [row]


async def test_text_that_no_database_holds_is_replaced_when_the_row_is_made(store: Store) -> None:
    row = Log(agent="a\x00b", message="half \ud83d pair", metadata={"k\x00": ["\udfff", {"n": float("nan")}]})
    assert (row.agent, row.message) == ("a\ufffdb", "half \ufffd pair")
    await store.insert(row)
    assert await store.select(Log) == [row]
    assert row.metadata == {"k\ufffd": ["\ufffd", {"n": None}]}


async def test_a_second_row_of_one_id_is_a_conflict(store: Store) -> None:
    row = Log(agent="a", message="first")
    await store.insert(row)
    with pytest.raises(Conflict, match="exists already"):
        await store.insert(row.model_copy(update={"message": "second"}))
    assert await store.select(Log) == [row]


async def test_a_second_row_of_one_unique_key_is_a_conflict(store: Store) -> None:
    await store.insert(Session(key="one"))
    with pytest.raises(Conflict):
        await store.insert(Session(key="one"))
    assert await store.count(Session) == 1


async def test_of_many_who_take_one_name_at_once_one_gets_it(store: Store) -> None:
    tries = (store.insert(_task("brave-otter")) for _ in range(20))
    ended = await asyncio.gather(*tries, return_exceptions=True)
    assert [type(end) for end in ended].count(Conflict) == 19
    assert await store.count(Task) == 1


async def test_writing_twice_is_writing_once(store: Store) -> None:
    rows = _logs(3)
    await store.upsert(rows)
    await store.upsert(rows)
    assert await store.select(Log, order=[("message", "asc")]) == rows


async def test_of_two_rows_of_one_id_in_a_batch_the_later_counts(store: Store) -> None:
    first = Log(id=derived("log", 1), agent="a", message="first")
    await store.upsert([first, first.model_copy(update={"message": "second"})])
    assert [row.message for row in await store.select(Log)] == ["second"]


async def test_a_batch_may_hold_rows_of_several_tables(store: Store) -> None:
    project = Project(slug="shop", name="Shop")
    repo = Repo(project_id=project.id, name="web", path="/srv/web", home="h1")
    await store.upsert([project, Log(agent="a", message="x"), repo, Log(agent="a", message="y")])
    assert await store.select(Repo) == [repo]
    assert await store.count(Log) == 2


async def test_nothing_to_write_is_nothing_written(store: Store) -> None:
    await store.upsert([])
    assert await store.count(Log) == 0


async def test_logs_may_arrive_before_what_they_speak_of(store: Store) -> None:
    event = TaskEvent(task_id=new_id(), project_id=new_id(), event="assigned", to_status="ASSIGNED")
    await store.upsert([event])
    assert await store.select(TaskEvent) == [event]


async def test_state_of_a_project_that_does_not_exist_is_a_conflict(store: Store) -> None:
    with pytest.raises(Conflict, match="belongs to"):
        await store.insert(Repo(project_id=new_id(), name="web", url="https://example.org/web.git"))


async def test_what_belongs_to_a_project_goes_with_it(store: Store) -> None:
    project = Project(slug="shop", name="Shop")
    one, two = (Task(slug=slug, project_id=project.id, title=slug) for slug in ("one", "two"))
    await store.upsert([project, one, two, TaskDependency(task_id=two.id, depends_on_id=one.id)])
    assert await store.delete(Project, {"slug": "shop"}) == 1
    assert await store.count(Task) == await store.count(TaskDependency) == 0


async def test_2500_rows_come_whole_whatever_the_server_gives_at_once(store: Store) -> None:
    rows = _logs(2500)
    await store.upsert(rows)
    assert await store.count(Log) == 2500
    newest_first: Order = [("created_at", "desc")]
    assert await store.select(Log, order=newest_first) == rows[::-1]
    assert await store.select(Log, order=newest_first, limit=1500) == rows[:999:-1]
    assert await store.select(Log, order=newest_first, limit=5, offset=1200) == rows[1299:1294:-1]
    assert await store.select(Log, order=[("created_at", "asc")], offset=1300) == rows[1300:]
    assert len(await store.select(Log, {"agent": "a"}, limit=0)) == 0


async def test_rows_of_one_rank_come_in_the_order_of_their_ids_on_every_page(store: Store) -> None:
    rows = [Log(id=derived("row", number), agent="same", message="same") for number in range(30)]
    await store.upsert(rows)
    order: Order = [("message", "desc")]
    pages = [await store.select(Log, order=order, limit=10, offset=offset) for offset in (0, 10, 20)]
    assert [row.id for page in pages for row in page] == sorted(row.id for row in rows)


@pytest.mark.parametrize("limit", [None, 10])
@pytest.mark.parametrize("direction", ["asc", "desc"])
async def test_rows_without_a_value_come_last(store: Store, direction: Any, limit: int | None) -> None:
    await store.upsert(
        [_task("none"), _task("late", resume_at=AT + timedelta(days=1)), _task("soon", resume_at=AT)]
    )
    found = [task.slug for task in await store.select(Task, order=[("resume_at", direction)], limit=limit)]
    assert found == (["soon", "late", "none"] if direction == "asc" else ["late", "soon", "none"])


async def test_an_order_may_have_several_columns(store: Store) -> None:
    await store.upsert([_task("b", priority=1), _task("a", priority=2), _task("c", priority=2)])
    found = await store.select(Task, order=[("priority", "desc"), ("slug", "asc")])
    assert [task.slug for task in found] == ["a", "c", "b"]


@pytest.mark.parametrize(
    ("where", "slugs"),
    [
        ({"slug": "b"}, "b"),
        ({"slug": ("eq", "b")}, "b"),
        ({"slug": ("ne", "b")}, "ac"),
        ({"priority": ("lt", 2)}, "a"),
        ({"priority": ("le", 2)}, "ab"),
        ({"priority": ("gt", 2)}, "c"),
        ({"priority": ("ge", 2)}, "bc"),
        ({"priority": ("in", [1, 3, 99])}, "ac"),
        ({"priority": ("in", [])}, ""),
        ({"status": ("in", {"READY", "PAUSED"})}, "abc"),
        ({"assignee": None}, "bc"),
        ({"assignee": ("is", None)}, "bc"),
        ({"assignee": ("ne", None)}, "a"),
        ({"assignee": ("ne", "backend")}, ""),
        ({"archived": True}, "c"),
        ({"archived": ("is", False)}, "ab"),
        ({"archived": ("ne", True)}, "ab"),
        ({"budget": 0.1}, "b"),
        ({"lease_until": ("le", AT)}, "a"),
        ({"lease_until": ("gt", AT)}, "b"),
        ({"project_id": project_key("default"), "priority": ("ge", 3)}, "c"),
        ({"project_id": str(project_key("default"))}, "abc"),
        ({"id": ("in", [derived("a"), derived("c")])}, "ac"),
    ],
)
async def test_conditions_pick_rows(store: Store, where: dict[str, Any], slugs: str) -> None:
    tasks = [
        _task("a", id=derived("a"), priority=1, assignee="backend", lease_until=AT),
        _task("b", id=derived("b"), priority=2, budget=0.1, lease_until=AT + timedelta(microseconds=1)),
        _task("c", id=derived("c"), priority=3, archived=True),
    ]
    await store.upsert(tasks)
    assert "".join(task.slug for task in await store.select(Task, where, order=[("slug", "asc")])) == slugs
    assert await store.count(Task, where) == len(slugs)


@pytest.mark.parametrize("text", AWKWARD)
async def test_awkward_text_is_found_by_itself_alone(store: Store, text: str) -> None:
    await store.upsert([Log(agent=other, message="x") for other in AWKWARD])
    assert [row.agent for row in await store.select(Log, {"agent": text})] == [text]
    assert [row.agent for row in await store.select(Log, {"agent": ("in", [text])})] == [text]


async def test_a_hundred_values_can_be_asked_for_at_once(store: Store) -> None:
    rows = _logs(120)
    await store.upsert(rows)
    assert len(await store.select(Log, {"id": ("in", [row.id for row in rows[:100]])})) == 100
    with pytest.raises(ValueError, match="at most 100"):
        await store.select(Log, {"id": ("in", [row.id for row in rows])})


async def test_times_are_compared_as_times_whatever_their_zone(store: Store) -> None:
    row = Log(agent="a", message="x", created_at=datetime(2026, 1, 1, tzinfo=UTC))
    await store.insert(row)
    same = datetime(2026, 1, 1, 5, tzinfo=timezone(timedelta(hours=5)))
    assert await store.select(Log, {"created_at": same}) == [row]
    assert await store.select(Log, {"created_at": ("lt", same + timedelta(microseconds=1))}) == [row]
    assert await store.select(Log, {"created_at": ("lt", same)}) == []


@pytest.mark.parametrize(
    "where",
    [{"nope": 1}, {"metadata": {"a": 1}}, {"agent": ("like", "a%")}, {"created_at": "soon"}, {"id": 5}],
)
async def test_conditions_that_cannot_be_are_told_at_once(store: Store, where: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        await store.select(Log, where)


async def test_an_update_changes_what_matches_and_returns_it(store: Store) -> None:
    before = _task("a", plan={"old": 1}, updated_at=AT)
    await store.upsert([before, _task("b")])
    changes = {"status": "PAUSED", "resume_at": AT, "plan": {"new": [1]}, "assignee": None}
    [after] = await store.update(Task, changes, {"slug": "a"})
    assert (after.status, after.resume_at, after.plan) == ("PAUSED", AT, {"new": [1]})
    assert after.updated_at > before.updated_at
    assert await store.select(Task, {"slug": "a"}) == [after]
    assert (await store.select(Task, {"slug": "b"}))[0].status == "READY"


async def test_an_update_that_matches_nothing_returns_nothing(store: Store) -> None:
    assert await store.update(Task, {"status": "PAUSED"}, {"slug": "a"}) == []


async def test_an_update_to_a_name_that_is_taken_is_a_conflict(store: Store) -> None:
    await store.upsert([_task("a"), _task("b")])
    with pytest.raises(Conflict):
        await store.update(Task, {"slug": "a"}, {"slug": "b"})


async def test_of_twenty_who_compare_and_set_one_wins(store: Store) -> None:
    task = _task("brave-otter")
    await store.insert(task)
    where = {"id": task.id, "version": 1, "status": "READY"}
    tries = (
        store.update(Task, {"status": "ASSIGNED", "owner": f"w{n}", "version": 2}, where) for n in range(20)
    )
    won = [rows for rows in await asyncio.gather(*tries) if rows]
    assert len(won) == 1
    assert await store.select(Task) == won[0]


@pytest.mark.parametrize(
    "changes", [{}, {"id": new_id()}, {"nope": 1}, {"status": "MAYBE"}, {"priority": 2**63}]
)
async def test_changes_that_cannot_be_are_told_at_once(store: Store, changes: dict[str, Any]) -> None:
    await store.insert(_task("a"))
    with pytest.raises(ValueError):
        await store.update(Task, changes, {"slug": "a"})


async def test_a_delete_says_how_many_it_were(store: Store) -> None:
    await store.upsert(_logs(5))
    assert await store.delete(Log, {"message": ("lt", "00003")}) == 3
    assert await store.delete(Log, {"message": ("lt", "00003")}) == 0
    assert await store.count(Log) == 2


async def test_a_write_without_a_condition_is_refused(store: Store) -> None:
    await store.insert(_task("a"))
    with pytest.raises(ValueError, match="needs a condition"):
        await store.delete(Task, {})
    with pytest.raises(ValueError, match="needs a condition"):
        await store.update(Task, {"status": "PAUSED"}, {})
    assert await store.count(Task, {"status": "READY"}) == 1


async def test_a_closed_store_says_so_and_can_be_opened_again(store: Store) -> None:
    await store.insert(Log(agent="a", message="x"))
    await store.close()
    with pytest.raises(StoreUnavailable, match="not open"):
        await store.count(Log)
    await store.open()
    assert await store.count(Log) == 1
