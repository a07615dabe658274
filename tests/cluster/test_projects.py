"""Two projects, three repositories, two people: everything follows the active project, and nothing of the other."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest

from shared.store.records import project_key
from tests.support.messages_api import MessagesApi
from tests.support.processes import Site, until
from tests.support.wire import Message, Wire
from tests.tools.ground import repository

SETTINGS = {"PERMISSION_PROFILE": "open"}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """A step in which the model calls one tool."""
    return {"tools": [{"name": name, "input": arguments}]}


def planned(title: str) -> dict[str, Any]:
    task = {
        "title": title,
        "description": "Do it.",
        "agent": "backend",
        "acceptance": ["it is done"],
        "repo": "beds",
    }
    return call("submit_plan", summary=title, tasks=[task], write=True)


LOOK = call("consult_researcher", question="What is there?", repos=["both"])
PLAN = call("consult_planner", question="Plan the {{user}}")
RULES: list[dict[str, Any]] = [
    {"system": "You are Planner", "steps": [planned("Work planned for the garden"), {"text": "One step."}]},
    {"system": "You are Researcher", "steps": [call("glob_files", pattern="*.md"), {"text": "{{result}}"}]},
    {"user": "go to", "steps": [call("set_active_project", project_id="garden"), {"text": "We are there."}]},
    {
        "user": "switch and make",
        "steps": [
            call("set_active_project", project_id="garden"),
            call("create_task", title="Made after the switch"),
            {"text": "{{result.project_id}}"},
        ],
    },
    {"user": "look around", "steps": [LOOK, {"text": "{{result.answer}}"}]},
    {"user": "plan it", "steps": [PLAN, {"text": "{{result.written}}"}]},
    {"user": "where am i", "steps": [call("list_projects"), {"text": "{{result.active_project}}"}]},
    {
        "user": "make and leave",
        "steps": [
            call("set_active_project", project_id="passing"),
            call("delete_project", project_id="passing"),
            call("create_task", title="Made after the end"),
            {"text": "{{result.project_id}}"},
        ],
    },
]


@pytest.fixture(scope="module", autouse=True)
def work(place: Site, wire: Wire, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Chatter, Planner and Researcher; `garden` with two repositories, `default` with one."""
    place.up("chatter", "planner", "researcher")
    folder = tmp_path_factory.mktemp("code")
    done(wire, "create_project", name="Garden")
    for project, name in (("default", "house"), ("garden", "beds"), ("garden", "fence")):
        repository(folder / name, {f"{name.upper()}.md": f"# {name}\n"})
        done(wire, "add_repo", source="link", path=str(folder / name), project_id=project)


def done(wire: Wire, tool: str, **arguments: Any) -> dict[str, Any]:
    said = wire.command(tool, user="ann", **arguments)
    assert said["status"] == "complete", said
    return dict(said["result"])


def project_of(place: Site, title: str) -> list[str]:
    sql = "select p.slug from tasks t join projects p on p.id = t.project_id where t.title = ?"
    return [row["slug"] for row in place.query(sql, title)]


def booked(place: Site, agent: str, session: str = "") -> list[str]:
    """The projects on which the calls of an agent's model were booked, in order."""
    sql = "select project_id from token_usage where agent = ? and session_id like ? order by created_at"
    names = {str(project_key(slug)): slug for slug in ("default", "garden", "passing")}
    return [names[str(UUID(row["project_id"]))] for row in place.query(sql, agent, session or "%")]


def test_a_switch_holds_from_the_next_call_of_the_same_turn(place: Site, wire: Wire) -> None:
    assert wire.ask("switch and make", "cleo")["content"] == "garden"
    assert project_of(place, "Made after the switch") == ["garden"]
    until(lambda: len(booked(place, "chatter", "user:cleo")) == 3, what="the usage of the turn")
    assert booked(place, "chatter", "user:cleo") == ["default", "garden", "garden"]
    assert wire.ask("where am i", "cleo")["content"] == "garden"
    row = "select s.title, p.slug from sessions s join projects p on p.id = s.project_id where s.key = ?"
    found = until(lambda: place.query(row, "user:cleo"), what="the row of the conversation")
    assert found == [{"title": "switch and make", "slug": "garden"}]


def test_two_people_in_two_projects_see_nothing_of_each_other(place: Site, wire: Wire) -> None:
    assert wire.ask("go to the garden", "ann")["content"] == "We are there."
    hers, his = wire.ask("look around", "ann")["content"], wire.ask("look around", "bob")["content"]
    assert "BEDS.md" in hers and "FENCE.md" in hers and "HOUSE.md" not in hers
    assert "HOUSE.md" in his and "BEDS.md" not in his and "FENCE.md" not in his
    [written] = json.loads(wire.ask("plan it", "ann")["content"])
    sql = "select p.slug from tasks t join projects p on p.id = t.project_id where t.slug = ?"
    assert place.query(sql, written["task_id"]) == [{"slug": "garden"}]
    until(lambda: booked(place, "planner"), what="the plan's usage")
    assert set(booked(place, "planner")) == {"garden"}
    until(lambda: len(booked(place, "researcher")) == 4, what="the research's usage")
    assert booked(place, "researcher") == ["garden", "garden", "default", "default"]
    asked = "select distinct agent, request_id = turn_id as named from turns where agent <> 'planner' order by agent"
    assert place.query(asked) == [{"agent": "chatter", "named": None}, {"agent": "researcher", "named": 1}]
    tasks = done(wire, "list_tasks", project_id="default")["tasks"]
    assert "Work planned for the garden" not in [task["title"] for task in tasks]


def test_the_model_is_told_the_project_at_the_end_of_the_newest_message(wire: Wire, api: MessagesApi) -> None:
    def told(project: str) -> list[str]:
        wire.ask(f"where am i in {project}", "gil", project_id=project)
        body = next(
            body for body in reversed(api.requests) if f"in {project}" in json.dumps(body["messages"])
        )
        assert "ACTIVE PROJECT" not in json.dumps(body["system"])
        opening = next(m for m in body["messages"] if f"in {project}" in json.dumps(m))
        lines = str(opening["content"][-1]["text"]).rstrip("]").split("\n")
        return lines[next(at for at, line in enumerate(lines) if "ACTIVE PROJECT" in line) :]

    assert told("default") == ["ACTIVE PROJECT: `default`."]
    garden = told("garden")
    assert garden[0] == "ACTIVE PROJECT: `garden`." and garden[-1].endswith("use this project.")
    wire.ask("look around", "gil", project_id="garden")
    asked = [body for body in api.requests if "What is there?" in json.dumps(body["messages"])]
    assert "ACTIVE PROJECT: `garden`." in json.dumps(asked[-1]["messages"]), "Researcher is told as well"


def test_after_the_active_project_is_deleted_work_falls_back_to_the_default(place: Site, wire: Wire) -> None:
    done(wire, "create_project", name="Passing")
    assert wire.ask("make and leave", "dan")["content"] == "default"
    assert project_of(place, "Made after the end") == ["default"]
    done(wire, "create_project", name="Passing")
    assert wire.ask("where am i", "dan")["content"] == "default"  # it is another one, of the same name


def test_a_command_acts_on_the_conversation_that_is_meant(wire: Wire) -> None:
    aside: dict[str, Any] = {"type": "command", "tool": "set_active_project", "session_id": "command:eve"}
    said = wire.closing(wire.send(user="eve", arguments={"project_id": "garden"}, **aside))
    assert said["result"]["conversation"] == "user:eve"
    assert wire.ask("where am i", "eve")["content"] == "garden"
    other = {**aside, "session_id": "elsewhere"}
    wire.closing(wire.send(user="eve", arguments={"project_id": None}, **other))
    assert wire.ask("where am i", "eve")["content"] == "garden"
    assert wire.ask("where am i", "eve", session_id="elsewhere")["content"] == "default"


def test_a_request_works_in_the_project_that_it_names(wire: Wire) -> None:
    def asked(agent: str, name: str, project: str) -> Message:
        payload = {"question": "Where am I?", "project": project}
        request = {"id": name, "from": "surveyor", "to": agent, "type": "question", "payload": payload}
        wire.publish(f"agent:{agent}", request)
        return dict(wire.wait("agent:surveyor", lambda m: m["payload"].get("request_id") == name)["payload"])

    assert asked("chatter", "s1", "garden")["answer"] == "garden"
    assert "BEDS.md" in asked("researcher", "s2", "garden")["answer"]
    for agent in ("chatter", "planner"):
        refused = str(asked(agent, f"s3-{agent}", "gardn"))
        assert "no project called 'gardn'" in refused and "'garden'?" in refused, refused


def test_a_message_that_names_no_project_of_ours_is_told_which_there_are(wire: Wire) -> None:
    assert wire.ask("where am i", "finn", project_id="garden")["content"] == "garden"
    said = wire.ask("where am i", "finn", project_id="Gadren")
    assert said["status"] == "error" and "Did you mean 'garden'?" in said["content"], said["content"]


def test_a_hook_that_asks_chatter_works_in_its_project_and_hears_of_no_other(place: Site, wire: Wire) -> None:
    trigger = {"type": "event", "event_type": "project.paused"}
    for project in ("garden", "default"):
        more = {"trigger": trigger, "prompt_template": "where am i", "cooldown_seconds": 0}
        done(wire, "create_hook", project_id=project, name=f"{project} watch", **more)
    start = len(wire.heard)
    done(wire, "pause_project", project_id="garden")
    done(wire, "resume_project", project_id="garden")
    sql = "select r.state, r.response, h.slug from hook_runs r join hooks h on h.id = r.hook_id"
    until(lambda: [row["state"] for row in place.query(sql)] == ["completed"], what="the run of the hook")
    assert place.query(sql) == [{"state": "completed", "response": "garden", "slug": "garden-watch"}]
    told = wire.wait("events:@tasks", lambda said: said.get("change") == "resumed", start=start)
    assert (told["event"], told["project"], told["name"]) == ("project", "garden", "Garden")
