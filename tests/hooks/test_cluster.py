"""Hooks with real processes: what is due asks its agent, once; a kill in the middle does not run it twice."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.messages_api import MessagesApi
from tests.support.processes import Site, Worker, until
from tests.support.wire import Wire

RULES: list[dict[str, Any]] = [
    {"user": "loop on", "steps": [
        {"tools": [{"name": "create_task", "input": {"title": "again"}}]}, {"text": "Went on."}]},
    {"user": "sweep", "steps": [{"tools": [{"name": "list_tasks", "input": {}}]}, {"stop": "end_turn"}]},
    {"user": "which way", "steps": [{"tools": [{"name": "escalate_to_human", "input": {
        "question": "Left or right?", "context": "", "options": ["Left", "Right"]}}]}]},
    {"user": "look at", "steps": [{"text": "I looked.", "usage": {"input_tokens": 40, "output_tokens": 2}}]},
]  # fmt: skip


@pytest.fixture(scope="module")
def running(place: Site, wire: Wire, tmp_path_factory: pytest.TempPathFactory) -> list[Worker]:
    """One Chatter, and a project with a repository."""
    folder: Path = tmp_path_factory.mktemp("repository") / "shop"
    folder.mkdir()
    (folder / "README.md").write_text("# Shop\n")
    author = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
    for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "Begin"]):
        subprocess.run(["git", *author, *command], cwd=folder, check=True)
    running = place.up("chatter")
    wire.command("add_repo", source="link", path=str(folder), name="shop", kind="both")
    return running


def made(wire: Wire, name: str, trigger: dict[str, Any], prompt: str, **more: Any) -> str:
    told = wire.command(
        "create_hook", project_id="default", name=name, trigger=trigger, prompt_template=prompt, **more
    )
    assert told["status"] == "complete", told
    return str(told["result"]["created"])


def runs(place: Site, slug: str) -> list[dict[str, Any]]:
    sql = (
        "select r.* from hook_runs r join hooks h on h.id = r.hook_id where h.slug = ? order by r.created_at"
    )
    return place.query(sql, slug)


def ended(place: Site, slug: str, count: int = 1) -> list[dict[str, Any]]:
    def look() -> list[dict[str, Any]]:
        found = runs(place, slug)
        return found if len(found) >= count and all(row["state"] != "running" for row in found) else []

    return until(look, what=f"{count} runs of {slug}", told=lambda: runs(place, slug))


LATER = {"type": "cron", "cron": "0 0 1 1 *"}


def test_a_fired_hook_looks_and_asks_its_agent_in_a_session_of_its_own(
    running: list[Worker], wire: Wire, place: Site, api: MessagesApi
) -> None:
    steps = [
        {"type": "shell", "command": "ls", "working_dir": "shop"},
        {"type": "read_file", "path": "shop/README.md"},
        {"type": "db_query", "query": "failed_tasks"},
        {"type": "git_diff", "workspace": "shop"},
    ]
    slug = made(wire, "tidy", LATER, "Look at {{step_0}} and {{step_1}}", context_steps=steps)
    dry = wire.command("fire_hook", hook_id=slug, dry_run=True)["result"]
    assert dry["would"] == "ask" and "# Shop" in dry["prompt"] and dry["next_runs"]
    assert dry["steps"][0]["not_run"].startswith("it would run 'ls', which test allowed")
    assert runs(place, slug) == []
    assert wire.command("fire_hook", hook_id=slug)["result"]["status"] == "running"
    (run,) = ended(place, slug)
    assert (run["state"], run["response"], run["tokens_used"], run["error"]) == (
        "completed",
        "I looked.",
        42,
        "",
    )
    assert json.loads(run["origin"])["foreign"] == "what the hook tidy found"
    assert "# Shop" in run["prompt"] and run["session_id"] == f"hook:{run['id']}"
    assert [step["type"] for step in json.loads(run["steps"])] == [
        "shell",
        "read_file",
        "db_query",
        "git_diff",
    ]
    assert len([body for body in api.requests if "Look at README.md" in json.dumps(body)]) == 1


@pytest.mark.parametrize(
    ("prompt", "answered"),
    [("Sweep", "Done. Actions taken: list_tasks"), ("Which way", "Left or right?")],
)
def test_a_run_has_what_was_answered_also_where_the_model_said_nothing(
    running: list[Worker], wire: Wire, place: Site, prompt: str, answered: str
) -> None:
    slug = made(wire, prompt, LATER, prompt)
    assert wire.command("fire_hook", hook_id=slug)["result"]["status"] == "running"
    (run,) = ended(place, slug)
    assert (run["state"], run["response"], run["error"]) == ("completed", answered, "")
    assert wire.command("list_hook_runs", hook_id=slug)["result"]["runs"][0]["response"] == answered


@pytest.mark.parametrize(
    ("command", "state", "response", "error"),
    [("cat", "completed", "Review it", ""), ("exit 3", "failed", "", "the command ended with exit code 3")],
)
def test_a_run_that_asks_a_bridge_ends_with_its_answer(
    running: list[Worker], wire: Wire, place: Site, command: str, state: str, response: str, error: str
) -> None:
    name = f"reviewer-{state}"
    words = ["gateways.cli", "bridge", "--name", name, "--exec", command]
    bridge = Worker(name, words, place.folder, place.environment)
    try:
        wire.wait("agent:status", lambda card: card["agent"] == name)
        slug = made(wire, name, LATER, "Review it", llm_config={"agent": name})
        wire.command("fire_hook", hook_id=slug)
        (run,) = ended(place, slug)
        assert (run["state"], run["response"], run["error"]) == (state, response, error)
    finally:
        bridge.drain()


def test_a_hook_that_finds_nothing_asks_nobody_and_what_is_not_allowed_fails_it(
    running: list[Worker], wire: Wire, place: Site
) -> None:
    quiet = [{"type": "db_query", "query": "failed_tasks", "skip_llm_if_empty": True}]
    made(wire, "quiet", LATER, "x", context_steps=quiet)
    made(wire, "outside", LATER, "x", context_steps=[{"type": "http", "url": "http://127.0.0.1:9/"}])
    for slug in ("quiet", "outside"):
        wire.command("fire_hook", hook_id=slug)
    assert ended(place, "quiet")[0]["state"] == "skipped"
    (refused,) = ended(place, "outside")
    assert refused["state"] == "failed" and "not among HOOK_HOSTS" in refused["error"]
    audit = until(
        lambda: place.query("select * from audit_log where agent = 'hooks' and decision = 'deny'"),
        what="the audit row",
    )
    assert audit[0]["action"] == "tool:http_get:http://127.0.0.1:9/"


def test_a_loop_of_hooks_is_ended_by_its_depth(running: list[Worker], wire: Wire, place: Site) -> None:
    slug = made(
        wire, "loop", {"type": "event", "event_type": "task_created"}, "loop on {{event.title}}",
        cooldown_seconds=0,
    )  # fmt: skip
    wire.command("create_task", title="first", description="x")
    found = ended(place, slug, 4)
    assert [row["depth"] for row in found] == [0, 1, 2, 3]
    until(lambda: len(place.query("select id from tasks where title = 'again'")) == 4, what="the last task")
    until(lambda: "set each other off" in running[0].tail() or len(runs(place, slug)) == 4, what="the end")
    assert len(runs(place, slug)) == 4


def test_a_hook_under_way_when_its_worker_is_killed_is_failed_and_not_run_again(
    running: list[Worker], wire: Wire, place: Site
) -> None:
    steps = [{"type": "shell", "command": "sleep 20", "working_dir": "shop"}]
    slug = made(wire, "slow", LATER, "look at it", context_steps=steps)
    wire.command("fire_hook", hook_id=slug)
    until(lambda: [row["session_id"] for row in runs(place, slug)] != [None], what="its begin")
    running[-1].signal(signal.SIGKILL)
    running[-1].ended()
    running.extend(place.up("chatter"))
    (run,) = ended(place, slug)
    assert (run["state"], run["error"]) == ("failed", "interrupted: its worker ended")
    assert wire.command("list_hook_runs", hook_id=slug)["result"]["runs"][0]["state"] == "failed"
