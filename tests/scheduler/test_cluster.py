"""From a plan to its end with real processes: tasks are begun as they become ready, side by side, each once."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.messages_api import MessagesApi
from tests.support.processes import Site, Worker, until
from tests.support.wire import Wire, listener

LONG = 90.0  # seconds; a bound for machines that are busy, nothing is expected to take it


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tools": [{"name": name, "input": arguments}]}


def writes(file: str) -> list[dict[str, Any]]:
    return [call("create_file", path=file, content=f"{file}\n"), {"text": f"I wrote {file}.", "delay": 0.2}]


PLAN: list[dict[str, Any]] = [
    {
        "title": "Make the table",
        "description": "Write table.sql.",
        "agent": "backend",
        "acceptance": ["table"],
    },
    {
        "title": "Make the page",
        "description": "Write page.html.",
        "agent": "frontend",
        "acceptance": ["page"],
    },
    {
        "title": "Join the two",
        "description": "Write join.py.",
        "agent": "backend",
        "acceptance": ["joined"],
        "depends_on": [0, 1],
    },
]
RULES: list[dict[str, Any]] = [
    {"user": "# Make the table", "steps": writes("table.sql")},
    {"user": "# Make the page", "steps": writes("page.html")},
    {"user": "# Join the two", "steps": writes("join.py")},
    {"user": "# Lay the wall", "steps": writes("wall.txt")},
    {"user": "# Do nothing", "steps": [{"text": "Done."}]},
]


@pytest.fixture(scope="module", autouse=True)
def workers(place: Site, wire: Wire, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Worker]:
    """Chatter, which schedules, and the two that do tasks."""
    folder: Path = tmp_path_factory.mktemp("repository") / "shop"
    folder.mkdir()
    (folder / "README.md").write_text("# Shop\n")
    author = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
    for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "Begin"]):
        subprocess.run(["git", *author, *command], cwd=folder, check=True)
    agents = ("chatter", "frontend", "backend")
    running = dict(zip(agents, place.up(*agents), strict=True))
    added = wire.command("add_repo", source="link", path=str(folder), name="shop", kind="both")
    assert added["status"] == "complete", added
    return running


def statuses(place: Site) -> dict[str, str]:
    return {row["title"]: row["status"] for row in place.query("select title, status from tasks")}


def events(place: Site, title: str) -> list[str]:
    sql = (
        "select e.event from task_events e join tasks t on t.id = e.task_id where t.title = ? "
        "order by e.created_at, e.rowid"
    )
    return [row["event"] for row in place.query(sql, title)]


def test_a_plan_is_carried_out_in_its_order_side_by_side_and_its_outcomes_are_told(
    wire: Wire, place: Site, api: MessagesApi
) -> None:
    wire.command("submit_plan", user="owner", summary="A shop", tasks=PLAN, write=True)
    titles = [str(task["title"]) for task in PLAN]
    until(
        lambda: [statuses(place).get(title) for title in titles] == ["COMPLETED"] * 3,
        LONG,
        what="the end of the plan",
        told=lambda: statuses(place),
    )
    for title in titles:
        history = events(place, title)
        assert history[-4:] == ["assigned", "started", "completed", "passed"]
        assert history.count("assigned") == 1
    first = place.query("select max(ended_at) as at from tasks where title != ?", titles[2])[0]["at"]
    (last,) = place.query("select started_at, slug from tasks where title = ?", titles[2])
    assert last["started_at"] > first
    bodies = [json.dumps(body) for body in api.requests if "# Join the two" in json.dumps(body)]
    assert bodies and all("I wrote table.sql" in body and "branch promptdock/" in body for body in bodies)
    slugs = {row["slug"] for row in place.query("select slug from tasks")}
    for slug in slugs:
        told = wire.wait("chatter-output", lambda said, slug=slug: slug in str(said.get("task")), LONG)  # type: ignore[misc]
        assert (told["status"], told["user_id"]) == ("task_update", "owner")


@pytest.fixture(scope="module")
def mason(place: Site, workers: dict[str, Worker]) -> Worker:
    """A coding agent of one's own: a folder with a profile and a prompt, and no code."""
    folder = place.home / "agents" / "mason"
    folder.mkdir(parents=True)
    (folder / "profile.toml").write_text(
        'kind = "coding"\nrepositories = ["both"]\ntools = ["create_file", "view"]\npermissions = "builder"\n'
    )
    (folder / "prompt.md").write_text("You are Mason. You lay walls.\n")
    return place.start("mason").ready()


def test_a_coding_agent_made_of_data_alone_is_given_what_a_plan_names_it_for(
    wire: Wire, place: Site, api: MessagesApi, mason: Worker
) -> None:
    wall = {
        "title": "Lay the wall",
        "description": "Write wall.txt.",
        "agent": "mason",
        "acceptance": ["wall"],
    }
    wire.command("submit_plan", user="owner", summary="A wall", tasks=[wall], write=True)
    until(
        lambda: statuses(place).get("Lay the wall") == "COMPLETED",
        LONG,
        what="the wall",
        told=lambda: statuses(place),
    )
    (task,) = place.query("select assignee, branch from tasks where title = 'Lay the wall'")
    assert task["assignee"] == "mason" and task["branch"].startswith("promptdock/")
    assert any("You lay walls." in json.dumps(body["system"]) for body in api.requests)


def test_a_coding_agent_made_of_data_alone_takes_tasks_that_name_nobody(
    wire: Wire, place: Site, workers: dict[str, Worker], mason: Worker
) -> None:
    for name in ("frontend", "backend"):
        assert wire.command("pause_agent", agent_id=name)["result"]["paused"] == name
    slug = made(wire, "Lay the wall")
    until(lambda: status(place, slug)["status"] == "COMPLETED", LONG, told=lambda: status(place, slug))
    assert status(place, slug)["assignee"] == "mason"
    for name in ("frontend", "backend"):
        wire.command("resume_agent", agent_id=name)
    mason.drain()


def status(place: Site, slug: str) -> dict[str, Any]:
    return place.query("select * from tasks where slug = ?", slug)[0]


def history_of(place: Site, slug: str) -> list[str]:
    sql = "select event from task_events where task_id = ? order by created_at, rowid"
    return [row["event"] for row in place.query(sql, status(place, slug)["id"])]


def made(wire: Wire, title: str, **more: Any) -> str:
    told = wire.command("create_task", user="owner", title=title, description=f"# {title}", **more)
    return str(told["result"]["created"])


def published(wire: Wire, slug: str) -> list[str]:
    told = [said for said in wire.on("events:@tasks") if said.get("task_id") == slug]
    return [said["change"] for said in told if "change" in said]


def test_nothing_begins_while_the_scheduler_is_paused_and_a_failed_task_is_tried_again(
    wire: Wire, place: Site
) -> None:
    assert wire.command("orchestrator_control", action="pause")["result"]["status"] == "paused"
    blocked, waiting = made(wire, "Do nothing"), ""
    waiting = made(wire, "Make the page", depends_on=[blocked])
    assert status(place, blocked)["status"] == "READY"
    wire.command("edit_task", task_id=blocked, max_retries=1)
    start = len(wire.heard)
    wire.command("orchestrator_control", action="resume")
    told = wire.wait(
        "chatter-output", lambda said: f"{blocked} " in said["content"] and "blocked" in said["content"],
        LONG,
        start=start,
    )  # fmt: skip
    assert (told["status"], told["user_id"]) == ("task_update", "owner")
    assert f"promptdock tasks restart {blocked}, " in told["content"]
    assert told["content"].endswith(f"It holds up: {waiting}.")
    history = ["created", "assigned", "started", "failed", "retried", "assigned", "started", "failed"]
    history.append("retries_spent")
    until(
        lambda: history_of(place, blocked) == history,
        what="its history",
        told=lambda: history_of(place, blocked),
    )
    until(
        lambda: published(wire, blocked) == history, what="the events", told=lambda: published(wire, blocked)
    )
    health = wire.command("get_chain_health", task_id=blocked)["result"]
    assert [row["id"] for row in health["stuck_downstream"]] == [waiting]
    start = len(wire.heard)
    wire.ask("hello", user="owner", seconds=LONG, session_id=status(place, blocked)["session_id"])
    away = [said["content"] for said in wire.on("chatter-output", start) if said["status"] == "task_update"]
    assert f"While you were away: {told['content']}" in away
    wire.command("skip_task", task_id=blocked)
    until(lambda: status(place, waiting)["status"] == "COMPLETED", LONG, what="what waited")


def test_a_scheduler_that_dies_with_a_task_in_its_hand_is_replaced_and_the_task_is_done_once(
    wire: Wire, place: Site, workers: dict[str, Worker]
) -> None:
    workers["chatter"].drain()
    first = place.start("chatter", PROMPTDOCK_FAULT="assigned").ready()
    slug = made(wire, "Make the table")
    first.ended()  # it had assigned the task, and had not yet sent it
    assert status(place, slug)["status"] == "ASSIGNED"
    workers["chatter"] = place.start("chatter").ready()
    until(lambda: status(place, slug)["status"] == "COMPLETED", LONG, what="the task")
    wanted = ["created", "assigned", "started", "completed", "passed"]
    until(lambda: history_of(place, slug) == wanted, what="its history", told=lambda: history_of(place, slug))


def test_what_a_person_was_not_shown_is_told_when_they_are_back_whoever_else_listened(
    wire: Wire, place: Site
) -> None:
    session = "user:owner"
    wire.ask("hello", user="owner", seconds=LONG, session_id=session, source="cli")
    with listener(place.url, wire.names.channel("chatter-output")):  # as the chat of somebody else's gateway
        slug = made(wire, "Make the page")
        until(lambda: status(place, slug)["status"] == "COMPLETED", LONG, what="the task")
        wire.wait("chatter-output", lambda said: (said.get("task") or {}).get("task_id") == slug, LONG)
    assert status(place, slug)["session_id"] == session
    start = len(wire.heard)
    wire.ask("hello", user="owner", seconds=LONG, session_id=session)
    told = [said["content"] for said in wire.on("chatter-output", start) if said["status"] == "task_update"]
    assert any(text.startswith("While you were away: Task") and slug in text for text in told)
    start = len(wire.heard)
    wire.ask("hello", user="owner", seconds=LONG, session_id=session)
    assert not [said for said in wire.on("chatter-output", start) if said["status"] == "task_update"]
