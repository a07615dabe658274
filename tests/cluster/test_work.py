"""Work on a real repository: what Researcher cites stands there, and what Backend does is a commit of its own."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.messages_api import MessagesApi
from tests.support.processes import ROOT, Site, Worker, until
from tests.support.wire import Message, Wire
from tests.tools.ground import git, package

# Commands run in whatever sandbox there is: the one that Frontend and Backend need is not on every machine.
SETTINGS = {"PERMISSION_PROFILE": "guarded"}
NAP = f"sleep 296.{os.getpid()}"  # a command that nothing else on this machine runs
QUOTE = "def field_validator("


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """A step in which the model calls one tool."""
    return {"tools": [{"name": name, "input": arguments}]}


def assign(agent: str, command_file: str, **more: Any) -> dict[str, Any]:
    return call("assign_task", agent=agent, command_file=command_file, **more)


def finding(file: str, line: str) -> dict[str, Any]:
    cited = {
        "claim": "Validators are declared here",
        "repo": "library",
        "file": file,
        "line": line,
        "text": QUOTE,
    }
    return call("report_findings", findings=[cited], confidence=0.9)


ASSIGNED = {"text": "{{result.error}} {{result.why}} {{result.task_id}} {{result.warning}}"}
CONSULT = {
    "tools": [
        {"name": "consult_planner", "input": {"question": "How?"}},
        {
            "name": "consult_researcher",
            "input": {"question": "Where is field_validator?", "repos": ["backend"]},
        },
    ]
}
PLANNED = {
    "title": "Notes",
    "description": "Write them.",
    "agent": "backend",
    "acceptance": ["they are there"],
}
RULES: list[dict[str, Any]] = [
    {
        "system": "You are Planner",
        "steps": [call("submit_plan", summary="Write notes", tasks=[PLANNED]), {"text": "One step."}],
    },
    {
        "system": "You are Researcher",
        "steps": [
            finding("pydantic/functional_validators.py", "1"),
            call("grep", pattern="def field_validator\\("),
            finding("{{result.matches.0.path}}", "{{result.matches.0.line}}"),
            {"text": "It is in functional_validators."},
        ],
    },
    {
        "user": "# Write notes",
        "steps": [
            call("create_file", path="NOTES.md", content="Notes of the release\n"),
            call("bash", command="grep -c Notes NOTES.md"),
            call("bash", command="echo tested; exit 3"),
            {"text": "I wrote NOTES.md."},
        ],
    },
    {
        "user": "# Sleep",
        "steps": [
            call("create_file", path="part.txt", content="half of it\n"),
            call("bash", command=f"touch begun; {NAP} & {NAP}", timeout=600),
            {"text": "I slept well."},
        ],
    },
    {"user": "research", "steps": [CONSULT, {"text": "{{result.findings.backend}}"}]},
    {"user": "unvalidated", "steps": [assign("backend", "# Write notes"), ASSIGNED]},
    {"user": "by itself", "steps": [assign("backend", "# Write notes", force=True), ASSIGNED]},
    {"user": "validated", "steps": [CONSULT, assign("backend", "# Write notes"), ASSIGNED]},
    {"user": "write at the front", "steps": [assign("frontend", "# Write notes"), ASSIGNED]},
    {"user": "sleep at the front", "steps": [assign("frontend", "# Sleep"), ASSIGNED]},
    {"user": "sleep", "steps": [assign("backend", "# Sleep"), ASSIGNED]},
]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source of a library in a repository of its own, with changes that are not committed."""
    path = package("pydantic", tmp_path_factory.mktemp("checkout") / "library").path
    (path / "README.md").write_text("# changed, not committed\n")
    (path / "untracked.txt").write_text("mine\n")
    return path


@pytest.fixture(scope="module", autouse=True)
def workers(place: Site, wire: Wire, checkout: Path) -> dict[str, Worker]:
    """All five; Frontend is an agent of this home, whose tasks may take six seconds."""
    own = place.home / "agents" / "frontend"
    shutil.copytree(ROOT / "agents" / "frontend", own, ignore=shutil.ignore_patterns("__pycache__"))
    profile = own / "profile.toml"
    profile.write_text(profile.read_text().replace("task_minutes = 30", "task_minutes = 0.15"))
    names = ("chatter", "planner", "researcher", "backend", "frontend")
    running = dict(zip(names, place.up(*names), strict=True))
    added = wire.command("add_repo", source="link", path=str(checkout), name="library", kind="both")
    assert (added["status"], added["result"]["name"]) == ("complete", "library")
    return running


@pytest.fixture(autouse=True)
def untouched(checkout: Path) -> Iterator[None]:
    """Whatever a test does, the person's own checkout stays as it is."""

    def state() -> tuple[str, ...]:
        names = sorted(
            str(path.relative_to(checkout)) for path in checkout.rglob("*") if ".git" not in path.parts
        )
        return (
            git(checkout, "rev-parse", "HEAD"),
            git(checkout, "branch", "--show-current"),
            *(git(checkout, "status", "--porcelain"), *names),
        )

    before = state()
    yield
    assert state() == before


def outcome(wire: Wire, task: str) -> Message:
    """What the person is told of a task in the end."""
    return wire.wait("chatter-output", lambda said: (said.get("task") or {}).get("task_id") == task)


def napping() -> list[int]:
    """The processes that run the long command."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if NAP in " ".join(process.info["cmdline"] or []):
            found.append(process.pid)
    return found


def assigned(said: Message, place: Site) -> str:
    """The name of the task that an answer says it assigned."""
    names = [str(row["slug"]) for row in place.query("select slug from tasks")]
    return next(name for name in names if name in said["content"])


def test_citations_point_at_lines_that_hold_what_was_found(
    wire: Wire, checkout: Path, api: MessagesApi
) -> None:
    said = wire.ask("research", user="reader")
    answer = wire.wait(
        "agent:chatter", lambda message: message["from"] == "researcher" and message["type"] == "response"
    )
    (cited,) = answer["payload"]["citations"]
    lines = (checkout / cited["file"]).read_text().splitlines()
    assert QUOTE in lines[cited["line"] - 1]
    assert f"library/{cited['file']}:{cited['line']}" in said["content"]
    assert answer["payload"]["commits"] == {"library": git(checkout, "rev-parse", "HEAD")}
    refused = [
        body for body in api.requests if "citations are wrong, nothing was reported" in json.dumps(body)
    ]
    assert refused, "the wrong citation was let through"


def test_a_task_is_refused_without_plan_and_research_and_the_model_cannot_force_it(
    wire: Wire, place: Site
) -> None:
    said = wire.ask("unvalidated", user="hasty")["content"]
    assert "planner and researcher did not answer" in said
    said = wire.ask("by itself", user="hasty")["content"]
    assert "cannot take these arguments" in said and "force" in said
    assert not place.query("select * from tasks where user_id = 'hasty'")


def test_a_person_may_force_a_task(wire: Wire, place: Site) -> None:
    task = assigned(wire.ask("unvalidated", user="boss", force=True), place)
    assert outcome(wire, task)["task"]["status"] == "completed", outcome(wire, task)


def test_a_validated_task_ends_in_a_commit_on_a_branch_of_its_own(
    wire: Wire, place: Site, checkout: Path
) -> None:
    task = assigned(wire.ask("validated", user="careful"), place)
    told = outcome(wire, task)
    assert (told["user_id"], told["status"]) == ("careful", "task_update")
    branch = f"promptdock/{task}"
    assert told["task"]["branch"] == branch
    assert git(checkout, "log", "--format=%P", "-1", branch) == git(checkout, "rev-parse", "HEAD")
    assert git(checkout, "diff", "--name-only", f"HEAD...{branch}") == "NOTES.md"
    assert told["task"]["commits"] == [git(checkout, "rev-parse", branch)]
    commands = {item["command"]: item["exit_code"] for item in told["task"]["receipt"]["commands"]}
    assert commands == {"grep -c Notes NOTES.md": 0, "echo tested; exit 3": 3}
    until(lambda: git(checkout, "worktree", "list").count("\n") == 0, what="the end of the worktree")
    (row,) = until(
        lambda: place.query("select * from tasks where slug = ? and status = 'COMPLETED'", task),
        what="its row",
    )
    assert (row["branch"], row["assignee"], row["user_id"]) == (branch, "backend", "careful")
    events = "select event from task_events where task_id = ? order by created_at"
    until(lambda: place.query(events + " limit 1 offset 4", row["id"]), what="the last event's row")
    named = [str(event["event"]) for event in place.query(events, row["id"])]
    assert named == ["created", "assigned", "started", "completed", "passed"]
    (result,) = place.query("select * from task_results where task_id = ?", row["id"])
    assert json.loads(result["commits"]) == told["task"]["commits"]


def test_stopping_a_task_ends_its_processes_keeps_its_branch_and_lets_the_next_one_run(
    wire: Wire, place: Site, checkout: Path, workers: dict[str, Worker]
) -> None:
    task = assigned(wire.ask("sleep", user="sleeper", force=True), place)
    until(napping, what="the long command")
    waiting = wire.ask("unvalidated", user="next", force=True)
    assert "backend is busy: the task is number 2 in its queue" in waiting["content"]
    wire.wait("agent:chatter", lambda message: "busy" in str(message["payload"].get("message")))
    stopped = wire.command("stop_task", user="sleeper", task_id=task)
    assert stopped["result"] == {"stopped": task, "was": "running"}
    assert outcome(wire, task)["task"]["status"] == "stopped"
    assert not napping()
    assert git(checkout, "diff", "--name-only", f"HEAD...promptdock/{task}").split() == ["begun", "part.txt"]
    until(
        lambda: place.query("select * from tasks where slug = ? and status = 'BLOCKED'", task), what="its row"
    )
    assert outcome(wire, assigned(waiting, place))["task"]["status"] == "completed"
    assert wire.command("stop_task", user="sleeper", task_id=task)["status"] == "error"


def test_a_task_that_takes_too_long_is_ended_with_what_it_made(
    wire: Wire, place: Site, checkout: Path
) -> None:
    # The first call of a model loads its library, which may take longer than the task may.
    outcome(wire, assigned(wire.ask("write at the front", user="slow", force=True), place))
    task = assigned(wire.ask("sleep at the front", user="slow", force=True), place)
    told = outcome(wire, task)
    assert told["task"]["status"] == "timeout"
    assert "ended after 0.15 minutes" in told["content"]
    assert not napping()
    assert "part.txt" in git(checkout, "diff", "--name-only", f"HEAD...promptdock/{task}")
    until(
        lambda: place.query("select * from tasks where slug = ? and status = 'BLOCKED'", task), what="its row"
    )
