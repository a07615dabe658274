"""The inbox: everything that waits for a person, once each, with the command that answers it."""

from __future__ import annotations

import time
from typing import Any

import pytest

from shared.client import Client
from shared.client.views import inbox
from shared.client.views.permissions import approvals
from shared.guard.permissions.requests import ApprovalRequest, Approvals, Decided
from shared.store.factory import store_file
from shared.store.records import Project, Repo, Task, TaskDependency, TaskEvent, project_key
from shared.store.sqlite import SqliteStore
from shared.tasks import questions, states

PROJECT = project_key("shop")
STATES: dict[str, dict[str, Any]] = {
    "asks": {"status": "IN_PROGRESS"},
    "plans": {"status": "AWAITING_PLAN_APPROVAL", "plan": {"tasks": []}},
    "reviews": {"status": "AWAITING_APPROVAL"},
    "done": {"status": "COMPLETED", "branch": "promptdock/done"},
    "merged": {"status": "COMPLETED", "branch": "promptdock/merged"},
    "plain": {"status": "COMPLETED"},
    "poor": {"status": "PAUSED", "question": "the budget of the task"},
    "rests": {"status": "PAUSED"},
    "stuck": {"status": "BLOCKED", "error": "it failed too often"},
    "works": {"status": "READY"},
    "theirs": {"status": "AWAITING_APPROVAL", "user_id": "bob"},
    "gone": {"status": "BLOCKED", "archived": True},
}


async def filled(client: Client) -> None:
    file = SqliteStore(store_file(client.settings))
    await file.open()
    await file.close()
    store = await client.store()
    await store.upsert([Project(id=PROJECT, slug="shop", name="Shop")])
    for slug, fields in STATES.items():
        made = {"user_id": "ada", "session_id": "work", **fields}
        await store.insert(Task(slug=slug, project_id=PROJECT, title=slug.title(), **made))
    [merged] = await store.select(Task, {"slug": "merged"})
    event = {"event": "merged", "to_status": "COMPLETED", "actor": "ada"}
    await store.insert(TaskEvent(task_id=merged.id, project_id=PROJECT, **event))
    [asks] = await store.select(Task, {"slug": "asks"})
    asked = {"asked": "Which port?", "options": ["80", "8080"], "context": "Both are free."}
    await states.move(
        *(store, asks.id, "question", "backend", "k"), question="Which port?", detail=questions.detail(asked)
    )


def card(id: str, user: str = "ada") -> ApprovalRequest:
    at = int(time.time() * 1000)
    return ApprovalRequest(
        id=id, call="c", agent="backend", session="talk", user_id=user, turn="t", home="s", tool="git_push",
        action="tool:git_push:push origin main", arguments={}, arguments_hash="0", why="", pattern="x",
        project="shop", at=at, expires_at=at + 60_000, about={"does": "push main to ssh://host/x", "facts": []},
    )  # fmt: skip


async def put(client: Client, asked: ApprovalRequest) -> Approvals:
    await client.reach()
    requests = Approvals(client.bus, client.names)
    await requests.open(asked)
    await client.bus.command("HSET", requests.open_in(asked.session), asked.id, asked.expires_at)
    return requests


async def test_all_that_waits_for_a_person_is_listed_once_with_its_command(client: Client) -> None:
    await filled(client)
    requests = await put(client, card("a1b2c3d4e5f60718"))
    await put(client, card("0123456789abcdef", "bob"))
    items = {item.id: item for item in await inbox.inbox(client, "ada")}
    assert {id: item.kind for id, item in items.items()} == {
        "a1b2c3d4": "permission",
        "asks": "question",
        "plans": "plan",
        "reviews": "review",
        "done": "review",
        "poor": "budget",
        "stuck": "blocked",
    }
    first = items["a1b2c3d4"]
    assert first.what == "Backend asks for permission: push main to ssh://host/x"
    assert (first.answer, first.session, first.project) == (
        "promptdock approvals allow a1b2c3d4",
        "talk",
        "shop",
    )
    assert "Which port?" in items["asks"].what and items["asks"].options == ("80", "8080")
    assert items["asks"].answer == 'promptdock tasks answer asks "…"'
    assert items["poor"].answer == "promptdock budget task poor DOLLARS; promptdock tasks resume poor"
    assert "it failed too often" in items["stuck"].what
    await requests.decide("a1b2c3d4e5f60718", Decided("deny", "ada"))
    assert "a1b2c3d4" not in {item.id for item in await inbox.inbox(client, "ada")}


async def test_what_one_merge_brings_is_one_decision_and_one_entry(client: Client) -> None:
    file = SqliteStore(store_file(client.settings))
    await file.open()
    await file.close()
    store, made = await client.store(), {}
    await store.upsert([Project(id=PROJECT, slug="shop", name="Shop")])
    repos = {name: Repo(name=name, project_id=PROJECT) for name in ("ours", "theirs")}
    await store.upsert([*repos.values()])
    for slug in ("first", "second", "last", "elsewhere", "skipped", "alone"):
        fields: dict[str, Any] = {"status": "COMPLETED", "branch": f"promptdock/{slug}", "user_id": "ada"}
        fields["repo_id"] = repos["theirs" if slug == "elsewhere" else "ours"].id
        fields["error"] = "it failed" if slug == "skipped" else ""
        made[slug] = Task(slug=slug, project_id=PROJECT, title=slug.title(), **fields)
        await store.insert(made[slug])
    for task, needs in (("second", "first"), ("last", "second"), ("last", "elsewhere"), ("last", "skipped")):
        await store.insert(TaskDependency(task_id=made[task].id, depends_on_id=made[needs].id))
    items = {item.id: item.what for item in await inbox.inbox(client, "ada")}
    assert items.keys() == {"last", "elsewhere", "alone"}
    assert items["last"].endswith("is done and not merged yet; it brings second, first with it")
    assert "brings" not in items["alone"] + items["elsewhere"]
    await store.update(Task, {"status": "IN_PROGRESS"}, {"id": made["last"].id})
    items = {item.id: item.what for item in await inbox.inbox(client, "ada")}
    assert items.keys() == {"second", "elsewhere", "alone"}, (
        "what goes on may be merged later: it brings nothing yet"
    )


async def test_the_list_is_cut_to_some_lines_and_says_how_many_are_left() -> None:
    items = [inbox.Item("review", str(n), f"task {n}", f"promptdock tasks review {n}") for n in range(7)]
    told = inbox.lines(items, 5)
    assert len(told) == 6 and told[-1] == "and 2 more: promptdock inbox"
    assert len(inbox.lines(items[:5], 5)) == 5


async def test_a_request_is_found_by_the_first_letters_of_its_id(client: Client) -> None:
    for id in ("aaaa111122223333", "aaaa999922223333"):
        await put(client, card(id))
    assert (await approvals.find(client, "aaaa1")).id == "aaaa111122223333"
    for name, told in (("aaaa", "several"), ("aaa", "no request"), ("bbbb", "no request")):
        with pytest.raises(Exception, match=told):
            await approvals.find(client, name)


def test_an_entry_says_where_it_comes_from_and_what_answers_it() -> None:
    waits = inbox.Item("question", "t", "Which\nport?", "promptdock ask", "", "work", "shop", ("80",))
    first, option, command = waits.lines()
    assert first == "question    Which port?  (work, project shop)"
    assert option == f"{'':12}1. 80"
    assert command.startswith(f"{'':12}") and command.endswith(" ask")
    assert (
        inbox.Item("dead", "dead", "1 message", "promptdock dead list").lines()[0] == "dead        1 message"
    )
