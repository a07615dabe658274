"""What people do with tasks, with real processes: pause them, pay for them, split them, answer or do not answer."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.messages_api import MessagesApi
from tests.support.processes import ROOT, Site, Worker, until
from tests.support.wire import Message, Wire
from tests.tasks.conftest import commit, plain

LONG = 90.0  # seconds; a bound for machines that are busy, nothing is expected to take it
# Each of these calls costs 57 cents.
DEAR = {"input_tokens": 190_000, "output_tokens": 1}
SETTINGS = {"PROMPTDOCK_MODEL": "claude-sonnet-4-5"}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tools": [{"name": name, "input": arguments}]}


def writes(file: str, text: str = "") -> dict[str, Any]:
    return call("create_file", path=file, content=text or f"{file}\n")


def dear(step: dict[str, Any]) -> dict[str, Any]:
    return {**step, "usage": DEAR}


ASKS = call("escalate_to_human", question="Which color?", context="Both fit.", options=["red", "blue"])
RULES: list[dict[str, Any]] = [
    {"user": "wants the task", "steps": [
        call("create_task", title="First piece", description="# Cheap piece", repo_id="shop", project_id="shop"),
        call("create_task", title="Second piece", description="# Other piece", repo_id="shop",
             project_id="shop", depends_on=["{{result.created}}"]),
        {"text": "I split it."}]},
    {"user": "has moved on since you began", "steps": [
        {"text": "Done."}, writes("greeting.txt", "Hello and welcome\n"), {"text": "I kept both."}]},
    {"user": "# Greet", "steps": [writes("greeting.txt", "Hello\n"), {"text": "It greets."}]},
    {"user": "# Rest", "steps": [writes("rest.txt"), {**writes("more.txt"), "hold": "rested"}, {"text": "Rested."}]},
    {"user": "# Costly", "steps": [dear(writes("a.txt")), dear(writes("b.txt")), dear({"text": "Costly done."})]},
    {"user": "# Other piece", "steps": [writes("other.txt"), {"text": "The other one is done."}]},
    {"user": "# Cheap piece", "steps": [writes("piece.txt"), {"text": "The piece is done."}]},
    {"user": "# Ask", "steps": [writes("ask.txt"), ASKS, {"text": "Nobody minds."}]},
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = tmp_path_factory.mktemp("repository") / "shop"
    made.mkdir()
    plain(made, "init", "-q", "-b", "main")
    commit(made, "greeting.txt", "Hi\n")
    return made


@pytest.fixture(scope="module", autouse=True)
def workers(place: Site, wire: Wire, folder: Path) -> list[Worker]:
    """Chatter, Backend, and a Frontend of this home who waits for answers for a second only."""
    own = place.home / "agents" / "frontend"
    shutil.copytree(ROOT / "agents" / "frontend", own, ignore=shutil.ignore_patterns("__pycache__"))
    profile = own / "profile.toml"
    patience = 'permissions = {preset = "builder", approval_minutes = 0.02}'
    profile.write_text(profile.read_text().replace('permissions = "builder"', patience))
    assert patience in profile.read_text()
    running = place.up("chatter", "backend", "frontend")
    wire.command("create_project", name="Shop")
    told = wire.command(
        "add_repo", project_id="shop", source="link", path=str(folder), name="shop", kind="backend"
    )
    assert told["status"] == "complete", told
    told = wire.command(
        "add_repo",
        project_id="default",
        source="link",
        path=str(shutil.copytree(folder, folder.with_name("front"))),
        name="front",
        kind="frontend",
    )
    assert told["status"] == "complete", told
    return running


def did(wire: Wire, tool: str, **arguments: Any) -> dict[str, Any]:
    """A person's command that succeeds; its result."""
    told = wire.command(tool, user="ann", **arguments)
    assert told["status"] == "complete", told
    return dict(told["result"])


def made(wire: Wire, title: str, repo: str = "shop") -> str:
    project = "shop" if repo == "shop" else "default"
    return str(
        did(wire, "create_task", title=title, description=f"# {title}", repo_id=repo, project_id=project)[
            "created"
        ]
    )


def row(place: Site, slug: str) -> dict[str, Any]:
    return place.query("select * from tasks where slug = ?", slug)[0]


def becomes(place: Site, slug: str, status: str) -> dict[str, Any]:
    until(lambda: row(place, slug)["status"] == status, LONG, status, lambda: row(place, slug))
    return row(place, slug)


def asked(wire: Wire, slug: str, start: int) -> Message:
    """The question about money for which a task is paused."""

    def fits(said: Message) -> bool:
        return said["status"] == "awaiting_input" and slug in said["content"]

    return wire.wait("chatter-output", fits, LONG, start=start)


def shell(place: Site, *arguments: str) -> str:
    done = place.run(*arguments)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout


def test_a_running_task_rests_and_goes_on_with_what_it_had_made(
    wire: Wire, place: Site, folder: Path, api: MessagesApi
) -> None:
    slug, start = made(wire, "Rest"), len(wire.heard)
    until(
        lambda: len([b for b in api.requests if "# Rest" in json.dumps(b["messages"])]) == 2,
        LONG,
        "its second call",
    )
    assert "is paused until" in shell(place, "tasks", "pause", slug, "--hours", "5")
    rested = becomes(place, slug, "PAUSED")
    assert rested["resume_at"] and rested["owner"] is None
    told = wire.wait(
        "chatter-output", lambda said: (said.get("task") or {}).get("task_id") == slug, LONG, start=start
    )
    assert (told["status"], told["task"]["status"]) == ("task_update", "held")
    assert "is paused: A person paused it" in told["content"]
    assert plain(folder, "show", f"promptdock/{slug}:rest.txt") == "rest.txt"
    api.released.add("rested")
    assert shell(place, "tasks", "resume", slug) == f"{slug} goes on\n"
    becomes(place, slug, "COMPLETED")
    assert plain(folder, "show", f"promptdock/{slug}:more.txt") == "more.txt"
    history = [event["event"] for event in place.query(
        "select event from task_events where task_id = ? order by created_at, rowid", rested["id"])]  # fmt: skip
    assert history[3:5] == ["paused", "resumed"] and history.count("started") == 2


def test_a_task_that_waits_is_paused_before_it_begins_and_only_paused_ones_are_resumed(
    wire: Wire, place: Site
) -> None:
    did(wire, "orchestrator_control", action="pause")
    slug = made(wire, "Cheap piece")
    did(wire, "pause_task", task_id=slug)
    assert row(place, slug)["status"] == "PAUSED" and did(wire, "get_task", task_id=slug)["resumes"]
    did(wire, "orchestrator_control", action="resume")
    did(wire, "resume_task", task_id=slug)
    becomes(place, slug, "COMPLETED")
    for tool in ("resume_task", "pause_task"):
        refused = wire.command(tool, user="ann", task_id=slug)
        assert (refused["status"], "It is COMPLETED" in refused["content"]) == ("error", True)


def test_a_task_without_money_is_split_into_tasks_that_are_done_one_after_the_other(
    wire: Wire, place: Site
) -> None:
    did(wire, "orchestrator_control", action="pause")
    slug, start = made(wire, "Costly"), len(wire.heard)
    shell(place, "budget", "task", slug, "1")
    did(wire, "orchestrator_control", action="resume")
    question = asked(wire, slug, start)
    assert question["options"] == ["raise", "split", "stop"]
    becomes(place, slug, "PAUSED")
    said = wire.ask("split", user="ann", seconds=LONG, session_id=question["session_id"])
    assert said["content"] == "I split it.", said
    assert row(place, slug)["status"] == "BLOCKED"
    pieces = place.query(
        "select slug, started_at, ended_at from tasks where title like '% piece' and title != 'Cheap piece'"
    )
    for piece in pieces:
        becomes(place, piece["slug"], "COMPLETED")
    first, second = place.query(
        "select started_at, ended_at from tasks where title like '% piece' and title != 'Cheap piece' order by title"
    )
    assert first["ended_at"] < second["started_at"]


def test_a_task_without_the_day_s_money_asks_and_goes_on_when_the_day_is_raised(
    wire: Wire, place: Site
) -> None:
    (spent,) = place.query("select sum(cost) as cost from token_usage")
    budget = round(spent["cost"] + 1, 2)
    assert f"is now ${budget:.2f}" in shell(place, "budget", "day", str(budget))
    slug, start = made(wire, "Costly"), len(wire.heard)
    question = asked(wire, slug, start)
    assert "The budget for today" in question["content"]
    becomes(place, slug, "PAUSED")
    # There is no money for pieces either: the question stays.
    said = wire.ask("split", user="ann", seconds=LONG, session_id=question["session_id"])
    assert "nothing is left" in said["content"] and row(place, slug)["status"] == "PAUSED"
    said = wire.ask("raise", user="ann", seconds=LONG, session_id=question["session_id"])
    assert said["content"] == f"The budget is raised by ${budget:.2f}. Task {slug} goes on.", said
    becomes(place, slug, "COMPLETED")
    listed = json.loads(shell(place, "budget", "show", "--json"))["budgets"]
    assert (listed[0]["scope"], listed[0]["budget"]) == ("day", budget) and listed[0]["spent"] > budget
    did(wire, "set_day_budget", dollars=None)


def test_a_task_whose_question_nobody_answers_is_paused_and_says_so(wire: Wire, place: Site) -> None:
    start = len(wire.heard)
    slug = made(wire, "Ask", "front")
    wire.wait("chatter-output", lambda said: said.get("question") == "Which color?", LONG, start=start)
    paused = becomes(place, slug, "PAUSED")
    assert paused["question"] == "Which color?" and paused["resume_at"] and paused["assignee"] == "frontend"
    told = wire.wait(
        "chatter-output",
        lambda said: "Nobody answered its question: Which color?" in said["content"],
        LONG,
        start=start,
    )
    assert told["status"] == "task_update"


def test_a_branch_that_clashes_is_merged_for_its_agent_who_resolves_what_is_marked(
    wire: Wire, place: Site, folder: Path, api: MessagesApi
) -> None:
    slug = made(wire, "Greet")
    becomes(place, slug, "COMPLETED")
    theirs = commit(folder, "greeting.txt", "Welcome\n")
    refused = wire.command("merge_task", user="ann", task_id=slug)
    assert refused["status"] == "error" and "Conflicts in greeting.txt" in refused["content"]
    did(wire, "reopen_with_feedback", task_id=slug, feedback="Bring it up to date.")
    becomes(place, slug, "COMPLETED")
    sent = [json.dumps(body["messages"]) for body in api.requests]
    assert any("greeting.txt: both changed it" in text for text in sent)
    assert any("The marks of the conflict still stand in greeting.txt" in text for text in sent)
    assert plain(folder, "show", f"promptdock/{slug}:greeting.txt") == "Hello and welcome"
    assert theirs in plain(folder, "rev-list", f"promptdock/{slug}").split()
    merged = did(wire, "merge_task", task_id=slug)
    assert merged["files"] == ["greeting.txt"]
    assert (folder / "greeting.txt").read_text() == "Hello and welcome\n"
    (result,) = place.query(
        "select files_changed from task_results where task_id = ? order by created_at desc limit 1",
        row(place, slug)["id"],
    )
    assert json.loads(result["files_changed"]) == ["greeting.txt"]


def test_what_a_bridged_command_did_waits_for_a_person_where_the_task_wants_that(
    wire: Wire, place: Site
) -> None:
    words = ["gateways.cli", "bridge", "--name", "scribe", "--exec", "cat"]
    bridge = Worker("scribe", words, place.folder, place.environment)
    try:
        wire.wait("agent:status", lambda card: card["agent"] == "scribe", LONG)
        start = len(wire.heard)
        did(wire, "create_profile", id="scribe", name="Scribe")
        task = {"title": "Copy", "description": "Copy it.", "profile_id": "scribe", "requires_approval": True}
        slug = str(did(wire, "create_task", **task)["created"])
        becomes(place, slug, "AWAITING_APPROVAL")
        told = wire.wait(
            "chatter-output", lambda said: slug in said["content"] and said.get("task"), LONG, start=start
        )
        assert told["task"]["status"] == "awaiting_approval" and "waits for your review" in told["content"]
        did(wire, "approve_task", task_id=slug)
        assert row(place, slug)["status"] == "COMPLETED"
    finally:
        bridge.drain()
