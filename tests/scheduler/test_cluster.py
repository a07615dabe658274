"""From a plan to its end with real processes: tasks are begun as they become ready, side by side, each once."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.messages_api import MessagesApi
from tests.support.processes import Site, Worker, until
from tests.support.wire import Wire

SETTINGS = {"PROMPTDOCK_LEASE": "1000"}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tools": [{"name": name, "input": arguments}]}


def writes(file: str) -> list[dict[str, Any]]:
    return [call("create_file", path=file, content=f"{file}\n"), {"text": f"I wrote {file}.", "delay": 0.2}]


PLAN = [
    {"title": "Make the table", "description": "Write table.sql.", "agent": "backend", "acceptance": ["table"]},
    {"title": "Make the page", "description": "Write page.html.", "agent": "frontend", "acceptance": ["page"]},
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
    {"user": "# Do nothing", "steps": [{"text": "I did nothing."}]},
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
    for row in place.query("select slug from tasks"):
        told = wire.wait(
            "chatter-output",
            lambda said, slug=row["slug"]: (said.get("task") or {}).get("task_id") == slug,  # type: ignore[misc]
        )
        assert (told["status"], told["user_id"]) == ("task_update", "owner")
