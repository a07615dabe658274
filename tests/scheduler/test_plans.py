"""A task to plan, with real processes: its plan waits for the person, goes back with their words, is carried out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.messages_api import MessagesApi
from tests.support.processes import Site, Worker, until
from tests.support.wire import Wire
from tests.tasks.conftest import commit, plain

LONG = 90.0  # seconds; a bound for machines that are busy, nothing is expected to take it
SETTINGS: dict[str, str] = {}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tools": [{"name": name, "input": arguments}]}


def planned(title: str, *needs: int) -> dict[str, Any]:
    done = {"acceptance": ["it is there"], "depends_on": list(needs)}
    return {"title": title, "description": f"# {title}", "agent": "backend", **done}


def plans(*tasks: dict[str, Any]) -> list[dict[str, Any]]:
    # It asks for the tasks to be written at once, which is the person's to say here.
    return [
        call("submit_plan", summary="A small shop", tasks=list(tasks), write=True),
        {"text": "That is my plan."},
    ]


RULES: list[dict[str, Any]] = [
    {"user": "in two steps, please", "steps": plans(planned("Lay the table"), planned("Serve", 0))},
    {"user": "# Plan the shop", "steps": plans(planned("All at once"))},
    {
        "user": "# Lay the table",
        "steps": [call("create_file", path="table.txt", content="t\n"), {"text": "Laid."}],
    },
    {"user": "# Serve", "steps": [call("create_file", path="soup.txt", content="s\n"), {"text": "Served."}]},
    {
        "user": "# Clear up",
        "steps": [call("create_file", path="clear.txt", content="c\n"), {"text": "Cleared."}],
    },
]


@pytest.fixture(scope="module", autouse=True)
def workers(place: Site, wire: Wire, tmp_path_factory: pytest.TempPathFactory) -> list[Worker]:
    folder: Path = tmp_path_factory.mktemp("repository") / "shop"
    folder.mkdir()
    plain(folder, "init", "-q", "-b", "main")
    commit(folder, "README.md", "# Shop\n")
    running = place.up("chatter", "planner", "backend")
    told = wire.command("add_repo", source="link", path=str(folder), name="shop", kind="backend")
    assert told["status"] == "complete", told
    return running


def did(wire: Wire, tool: str, **arguments: Any) -> dict[str, Any]:
    told = wire.command(tool, user="ann", **arguments)
    assert told["status"] == "complete", told
    return dict(told["result"])


def row(place: Site, slug: str) -> dict[str, Any]:
    return place.query("select * from tasks where slug = ?", slug)[0]


def becomes(place: Site, slug: str, status: str, title: str = "") -> dict[str, Any]:
    until(lambda: row(place, slug)["status"] == status, LONG, status, lambda: row(place, slug))
    return row(place, slug)


def shell(place: Site, *arguments: str) -> str:
    done = place.run(*arguments)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout


def test_a_plan_goes_back_to_its_planner_and_once_it_is_approved_its_tasks_are_carried_out(
    wire: Wire, place: Site, api: MessagesApi
) -> None:
    task = {"title": "Plan the shop", "description": "# Plan the shop", "task_type": "plan"}
    slug = str(did(wire, "create_task", **task)["created"])
    after = str(
        did(wire, "create_task", title="Clear up", description="# Clear up", depends_on=[slug])["created"]
    )
    first = becomes(place, slug, "AWAITING_PLAN_APPROVAL")
    assert [one["title"] for one in json.loads(first["plan"])["tasks"]] == ["All at once"]
    assert place.query("select id from tasks where title = 'All at once'") == [], "nobody has approved it"
    told = wire.wait("chatter-output", lambda said: f"plan of task {slug}" in said["content"], LONG)
    assert "1. All at once (backend)" in told["content"] and f"tasks approve {slug}" in told["content"]
    assert f"tasks approve {slug}" in shell(place, "inbox", "--user", "ann")
    shell(place, "tasks", "reject", slug, "in two steps, please", "--user", "ann")
    until(
        lambda: (
            len(json.loads(row(place, slug)["plan"])["tasks"]) == 2
            and row(place, slug)["status"] == "AWAITING_PLAN_APPROVAL"
        ),
        LONG,
        "the second plan",
        lambda: row(place, slug),
    )
    asked = [
        json.dumps(body["messages"])
        for body in api.requests
        if "in two steps" in json.dumps(body["messages"])
    ]
    assert "All at once" in asked[0], "the planner was shown what it had planned before"
    shown = shell(place, "tasks", "approve", slug, "--user", "ann")
    assert f"{slug} is approved: it is COMPLETED" in shown
    pieces = place.query(
        "select slug, title, parent_id, user_id from tasks where parent_id is not null order by title"
    )
    assert [(one["title"], one["user_id"]) for one in pieces] == [("Lay the table", "ann"), ("Serve", "ann")]
    assert {one["parent_id"] for one in pieces} == {first["id"]}
    for one in pieces:
        becomes(place, one["slug"], "COMPLETED")
    last = becomes(place, after, "COMPLETED")
    ended = [row(place, one["slug"])["ended_at"] for one in pieces]
    assert last["started_at"] > max(ended), "what waited for the plan waits for what was planned"
