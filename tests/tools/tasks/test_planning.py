"""Plans: what is accepted, and what is written, on a real Store."""

from __future__ import annotations

from typing import Any

import pytest

from shared.errors import ToolError
from shared.hooks import triggers
from shared.store.records import (
    Hook,
    Project,
    Repo,
    RepoKind,
    Task,
    TaskDependency,
    TaskEvent,
    new_id,
    project_key,
)
from shared.store.sqlite import SqliteStore
from shared.tasks.slugs import slug
from shared.tools.tasks.core import category as core
from shared.tools.tasks.planning import category
from tests.tools.ground import call, context


def task(title: str, *depends_on: int, agent: str = "backend", **more: Any) -> dict[str, Any]:
    base = {"title": title, "description": f"do {title}", "agent": agent, "acceptance": [f"{title} works"]}
    return base | {"depends_on": list(depends_on)} | more


PLAN = [task("schema"), task("api", 0), task("page", 0, 1, agent="frontend", priority=50)]


HERE = ("step_id", "project_id", "user_id", "session_id", "on_behalf")


class Team:
    """Who works on what, as presence tells it."""

    async def works_on(self, agent: str) -> frozenset[str] | None:
        special = {"frontend", "backend"} & {agent}
        return frozenset({*special, "both"}) if special else None


async def submit(*tasks: dict[str, Any], store: SqliteStore | None = None, **more: Any) -> dict[str, Any]:
    here = {name: more.pop(name) for name in HERE if name in more}
    arguments = {"summary": "a shop", "tasks": list(tasks)} | more
    return await call(category, "submit_plan", context(store=store, cluster=Team(), **here), **arguments)


async def test_a_plan_comes_back_with_its_order(store: SqliteStore) -> None:
    told = await submit(*PLAN, risks=["time"], store=store)
    assert told["order"] == [0, 1, 2]
    assert told["plan"]["summary"] == "a shop"
    assert told["plan"]["risks"] == ["time"]
    assert told["plan"]["tasks"][2] == {"index": 2, **PLAN[2]}
    assert "written" not in told


@pytest.mark.parametrize(
    ("tasks", "why"),
    [
        ([], "no tasks"),
        ([task("a", 0)], "task 0 depends on itself"),
        ([task("a", 7)], "task 0 depends on 7, and there are tasks 0 to 0"),
        ([task("a", -1)], "task 0 depends on -1"),
        ([task("a", 1), task("b")], "task 0 depends on 1, which comes later"),
        ([task("a", 2), task("b", 0), task("c", 1)], "task 0 depends on 2 and that one on it, a cycle"),
        ([task("a"), task(" A ")], "tasks 0 and 1 have the same title"),
        ([task("a", acceptance=["  "])], "empty acceptance"),
    ],
)
async def test_a_plan_that_cannot_be_followed_is_refused_with_the_reason(
    tasks: list[dict[str, Any]], why: str
) -> None:
    with pytest.raises(ToolError, match=why):
        await submit(*tasks)


async def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(ToolError) as refused:
        await submit(task("a", 0), task("b", 9))
    assert "task 0" in str(refused.value)
    assert "task 1" in str(refused.value)


@pytest.mark.parametrize(
    "wrong", [{"acceptance": []}, {"agent": ""}, {"title": ""}, {"owner": "me"}, {"priority": -1}]
)
async def test_tasks_of_another_form_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ToolError, match="cannot take these arguments"):
        await submit(task("a") | wrong)


async def test_a_plan_names_agents_that_take_tasks(store: SqliteStore) -> None:
    with pytest.raises(ToolError, match="no coding agent is called designer"):
        await submit(task("a"), task("b", agent="designer"), store=store)


async def test_written_tasks_wait_for_what_they_depend_on(store: SqliteStore) -> None:
    told = await submit(*PLAN, store=store, write=True, step_id="turn:3", user_id="ada")
    rows = {row.title: row for row in await store.select(Task)}
    assert {title: row.status for title, row in rows.items()} == {
        "schema": "READY", "api": "DEFINED", "page": "DEFINED",
    }  # fmt: skip
    assert told["written"][2] == {"index": 2, "task_id": rows["page"].slug, "status": "DEFINED"}
    page = rows["page"]
    assert (page.assignee, page.priority, page.acceptance) == ("frontend", 50, ["page works"])
    assert (page.user_id, page.session_id) == ("ada", "s")
    edges = {(edge.task_id, edge.depends_on_id) for edge in await store.select(TaskDependency)}
    assert edges == {
        (rows["api"].id, rows["schema"].id),
        (page.id, rows["schema"].id),
        (page.id, rows["api"].id),
    }


@pytest.mark.parametrize(
    ("here", "owner"),
    [
        ({"session_id": "request-1", "on_behalf": ("ada", "s-ada")}, ("ada", "s-ada")),
        ({"session_id": "hook:1", "on_behalf": ("", "")}, (None, "hook:1")),
        ({"session_id": "s-bob", "user_id": "bob", "on_behalf": ("bob", "s-bob")}, ("bob", "s-bob")),
    ],
)
async def test_tasks_belong_to_the_person_and_the_conversation_for_whom_the_agent_was_asked(
    store: SqliteStore, here: dict[str, Any], owner: tuple[str | None, str]
) -> None:
    await submit(*PLAN, store=store, write=True, **here)
    await call(core, "create_task", context(store=store, step_id="x", **here), title="by itself")
    rows = await store.select(Task)
    assert len(rows) == 4
    assert {(row.user_id, row.session_id) for row in rows} == {owner}


async def test_each_task_has_a_created_event_that_hooks_hear_of_and_a_replay_adds_none(
    store: SqliteStore,
) -> None:
    await submit(*PLAN, store=store, write=True, step_id="turn:3")
    rows = {row.id: row for row in await store.select(Task)}
    events = await store.select(TaskEvent)
    assert {(rows[event.task_id].title, event.event, event.to_status, event.actor) for event in events} == {
        ("schema", "created", "READY", "researcher"),
        ("api", "created", "DEFINED", "researcher"),
        ("page", "created", "DEFINED", "researcher"),
    }
    assert {event.project_id for event in events} == {row.project_id for row in rows.values()}
    hook = Hook(
        slug="h", name="h", project_id=events[0].project_id, prompt_template="x",
        trigger={"type": "event", "event_type": "task_created"},
    )  # fmt: skip
    assert all(triggers.wants(hook, triggers.names(event)) for event in events)
    await submit(*PLAN, store=store, write=True, step_id="turn:3")
    assert await store.select(TaskEvent) == events


async def test_a_replay_writes_nothing_twice_and_changes_nothing(store: SqliteStore) -> None:
    first = await submit(*PLAN, store=store, write=True, step_id="turn:3")
    (schema,) = await store.select(Task, {"title": "schema"})
    await store.update(Task, {"status": "IN_PROGRESS"}, {"id": schema.id})
    before = await store.select(Task), await store.select(TaskDependency)
    again = await submit(*PLAN, store=store, write=True, step_id="turn:3")
    assert (await store.select(Task), await store.select(TaskDependency)) == before
    assert [row["task_id"] for row in again["written"]] == [row["task_id"] for row in first["written"]]
    assert again["written"][0]["status"] == "IN_PROGRESS"


async def test_a_replay_after_half_of_it_was_written_completes_it(store: SqliteStore) -> None:
    await submit(*PLAN, store=store, write=True, step_id="turn:3")
    await store.delete(TaskDependency, {"task_id": ("ne", new_id())})
    await store.delete(Task, {"title": "page"})
    await submit(*PLAN, store=store, write=True, step_id="turn:3")
    assert (await store.count(Task), await store.count(TaskDependency)) == (3, 3)


async def test_another_step_writes_tasks_of_its_own(store: SqliteStore) -> None:
    for step in ("turn:3", "turn:4"):
        await submit(*PLAN, store=store, write=True, step_id=step)
    assert await store.count(Task) == 6
    assert len({row.slug for row in await store.select(Task)}) == 6


async def test_a_name_that_is_taken_gets_a_number(store: SqliteStore) -> None:
    await submit(task("a"), store=store, write=True, step_id="x")
    (taken,) = await store.select(Task)
    await store.delete(Task, {"id": taken.id})
    await store.insert(Task(slug=taken.slug, project_id=taken.project_id, title="in the way"))
    told = await submit(task("a"), store=store, write=True, step_id="x")
    assert told["written"][0]["task_id"].startswith(f"{taken.slug}-")


async def test_tasks_go_to_the_project_of_the_turn(store: SqliteStore) -> None:
    with pytest.raises(ToolError, match="no project 'shop'"):
        await submit(task("a"), store=store, write=True, project_id="shop")
    assert await store.count(Task) == 0
    await store.insert(Project(slug="shop", name="Shop"))
    await submit(task("a"), store=store, write=True, project_id="shop")
    (row,) = await store.select(Task)
    assert row.project_id == Project(slug="shop", name="").id


def test_names_follow_from_the_id_and_are_spread() -> None:
    ids = [new_id() for _ in range(500)]
    names = [slug(id) for id in ids]
    assert names == [slug(id) for id in ids]
    assert len(set(names)) > 400
    assert all(name.count("-") == 1 for name in names)


async def with_repos(store: SqliteStore, **kinds: RepoKind) -> None:
    project = project_key("default")
    await store.upsert([Project(id=project, slug="default", name="Default")])
    await store.upsert([Repo(project_id=project, name=name, kind=kind) for name, kind in kinds.items()])


async def test_tasks_say_in_which_repository_they_will_be_done(store: SqliteStore) -> None:
    await with_repos(store, shop="backend", bank="backend", pages="frontend")
    told = await submit(
        task("api", repo="shop"), task("page", agent="frontend"), store=store, write=True, step_id="t:1"
    )
    assert [row["repo"] for row in told["written"]] == ["shop", "pages"]
    rows = {row.id: row.name for row in await store.select(Repo)}
    assert {row.title: rows[row.repo_id] for row in await store.select(Task) if row.repo_id} == {
        "api": "shop",
        "page": "pages",
    }


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({}, r"several fit task 0 \(backend\): bank, shop"),
        ({"repo": "attic"}, "task 0 names 'attic', and there are: bank, shop"),
    ],
)
async def test_a_plan_is_not_written_while_it_is_unclear_in_which_repository_it_is_to_be_done(
    store: SqliteStore, more: dict[str, Any], why: str
) -> None:
    await with_repos(store, shop="backend", bank="backend")
    with pytest.raises(ToolError, match=why) as refused:
        await submit(task("api", **more), store=store, write=True, step_id="t:1")
    assert "in the repository NAME" in refused.value.fix
    assert await store.count(Task) == 0
    assert "plan" in await submit(task("api", **more), store=store), "as advice it is taken"


async def test_a_plan_that_one_repository_could_take_whole_is_not_spread_over_several(
    store: SqliteStore,
) -> None:
    await with_repos(store, pages="frontend", mono="both")
    both = task("api"), task("page", agent="frontend")
    why = "would be spread over mono and pages, and mono could take them all"
    with pytest.raises(ToolError, match=why) as refused:
        await submit(*both, store=store, write=True, step_id="t:1")
    assert "ask the person" in refused.value.fix
    assert await store.count(Task) == 0
    named = task("api", repo="mono"), task("page", agent="frontend", repo="mono")
    told = await submit(*named, store=store, write=True, step_id="t:2")
    assert [row["repo"] for row in told["written"]] == ["mono", "mono"]


async def test_repositories_of_kinds_part_a_plan_where_none_could_take_it_whole(store: SqliteStore) -> None:
    await with_repos(store, pages="frontend", api="backend")
    both = task("api"), task("page", agent="frontend")
    told = await submit(*both, store=store, write=True, step_id="t:1")
    assert [row["repo"] for row in told["written"]] == ["api", "pages"]


async def test_a_plan_that_was_written_stays_so_though_more_repositories_came_before_its_replay(
    store: SqliteStore,
) -> None:
    await with_repos(store, shop="backend")
    first = await submit(task("api"), store=store, write=True, step_id="t:1")
    await with_repos(store, bank="backend")
    again = await submit(task("api"), store=store, write=True, step_id="t:1")
    assert again["written"] == first["written"]
    assert first["written"][0]["repo"] == "shop"


async def test_a_plan_that_is_written_in_a_paused_project_says_that_it_waits(store: SqliteStore) -> None:
    await store.upsert([Project(slug="shop", name="Shop", status="PAUSED")])
    told = await submit(task("a"), store=store, write=True, project_id="shop", step_id="s1")
    assert "project shop is paused" in told["warning"] and "project resume shop" in told["warning"]
    await store.update(Project, {"status": "ACTIVE"}, {"slug": "shop"})
    assert "warning" not in await submit(task("b"), store=store, write=True, project_id="shop", step_id="s2")
