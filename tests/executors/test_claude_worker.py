"""A worker whose tasks Claude Code carries out: permissions, a person's permission, checks, and a kill -9."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.executors.test_task import assign, call, outcome, status
from tests.support.messages_api import MessagesApi
from tests.support.messages_script import Body, Rules, Step
from tests.support.processes import Site, Worker, site, until
from tests.support.valkey import valkey
from tests.support.wire import Wire
from tests.tools.ground import git, repository

__all__ = ["valkey"]

WORK = [
    call("Write", file_path="answer.txt", content="right\n"),
    call("Bash", command="echo once >> count.txt"),
    {"text": "It is right."},
]
CHECKS = '[checks]\ncommands = ["grep -q right answer.txt"]\n'


class Scripted:
    """Answers by how many calls the conversation has had; the answer named `slow` takes a minute, once."""

    def __init__(self) -> None:
        self.rules = Rules([{"system": "You are Backend", "steps": WORK}])
        self.slow = ""

    def __call__(self, body: Body) -> Step:
        step = self.rules(body)
        if self.slow and self.slow in step.text:
            self.slow = ""
            return Step(text="never", delay=60)
        return step


@pytest.fixture(scope="module")
def script() -> Scripted:
    return Scripted()


@pytest.fixture(scope="module")
def api(script: Scripted) -> Iterator[MessagesApi]:
    with MessagesApi(script) as server:
        yield server


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, valkey: str, api: MessagesApi) -> Iterator[Site]:
    settings = {"ANTHROPIC_API_KEY": "sk-ant-test-key-0000", "ANTHROPIC_BASE_URL": api.url}
    settings |= {"PROMPTDOCK_EXECUTOR": "claude-code"}
    with site(tmp_path_factory.mktemp("site"), valkey, **settings) as made:
        yield made


@pytest.fixture(scope="module")
def wire(place: Site) -> Iterator[Wire]:
    with Wire(place.url, place.names) as listening:
        yield listening


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    files = {"promptdock.toml": CHECKS, "answer.txt": "none\n"}
    return repository(tmp_path_factory.mktemp("checkout") / "shop", files).path


@pytest.fixture(scope="module", autouse=True)
def workers(place: Site, wire: Wire, checkout: Path) -> dict[str, Worker]:
    chatter, backend = place.up("chatter", "backend")
    added = wire.command(
        "add_repo", user="ann", source="link", path=str(checkout), name="shop", kind="backend"
    )
    assert added["status"] == "complete", added
    wire.command("orchestrator_control", user="ann", action="pause")
    return {"chatter": chatter, "backend": backend}


def audited(place: Site, task: str) -> list[dict[str, Any]]:
    return place.query("select * from audit_log where turn_id = ? order by created_at", f"r-{task}")


def test_its_work_is_committed_checked_booked_and_audited(wire: Wire, place: Site, checkout: Path) -> None:
    task = assign(wire, "first", "# Make it right")
    told = outcome(wire, task)
    assert (told["status"], told["verified"]) == ("completed", "verified"), told
    assert git(checkout, "show", f"promptdock/{task}:answer.txt") == "right"
    assert {run["command"]: run["by"] for run in told["commands"]} == {
        "echo once >> count.txt": "agent",
        "grep -q right answer.txt": "harness",
    }
    assert told["tokens"] > 0 and told["cost"] > 0
    status(place, task, "COMPLETED")
    until(lambda: len(audited(place, task)) == 2, what="its audit")
    assert {row["action"]: row["decision"] for row in audited(place, task)} == {
        "tool:create_file:answer.txt": "allow",
        "tool:bash:echo once >> count.txt": "allow",
    }
    (used,) = place.query("select * from token_usage where turn_id = ?", f"r-{task}")
    assert used["cost"] == pytest.approx(told["cost"])
    assert not (place.home / "executors" / task).exists()


def test_after_kill_9_another_process_goes_on_in_its_session(
    wire: Wire, place: Site, checkout: Path, workers: dict[str, Worker], api: MessagesApi, script: Scripted
) -> None:
    before = len(api.requests)
    script.slow = "It is right."
    task = assign(wire, "second", "# Make it right")
    until(lambda: not script.slow, what="its last question to the model")
    workers["backend"].kill()
    place.up("backend")
    told = outcome(wire, task)
    assert (told["status"], told["verified"], len(told["commits"])) == ("completed", "verified", 1)
    assert git(checkout, "show", f"promptdock/{task}:count.txt") == "once"
    said = json.dumps(api.requests[-1]["messages"])
    assert "You were interrupted" in said and "Make it right" in said
    assert len(api.requests) - before == 4, "nothing was asked of the model twice"
