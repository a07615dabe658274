"""The real Claude Code against a Messages endpoint of ours: what it may do, and what is left when it dies."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from shared.errors import ModelError
from shared.executors.base import Work
from shared.executors.claude_code import ClaudeCode
from shared.guard.birth import birth
from shared.tasks.hold import Hold
from tests.executors.conftest import Person
from tests.support.messages_api import MessagesApi
from tests.support.messages_script import Step
from tests.tasks.conftest import until

pytestmark = pytest.mark.timeout(120)


def call(name: str, **given: Any) -> Step:
    return Step(tools=({"name": name, "input": given},))


def at(work: Work, api: MessagesApi) -> Work:
    provider = {"ANTHROPIC_API_KEY": "sk-ant-test-secret", "ANTHROPIC_BASE_URL": api.url}
    return replace(work, environment=provider)


def results(api: MessagesApi) -> list[str]:
    """What the tools answered, as the model read it last."""
    blocks = [b for m in api.requests[-1]["messages"] if isinstance(m["content"], list) for b in m["content"]]
    return [json.dumps(block["content"]) for block in blocks if block["type"] == "tool_result"]


async def test_it_works_in_the_worktree_and_every_call_passes_the_gate(
    work: Work, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDIS_URL", "redis://secret-of-ours")
    person.denies = {"str_replace": "a rule says no"}
    person.answer = "Green, please"
    person.words = ["[the person adds: hurry]"]
    question = {"question": "Which?", "header": "H", "multiSelect": False}
    options = [{"label": "Red", "description": "r"}, {"label": "Blue", "description": "b"}]
    steps = [
        call("Write", file_path=f"{work.path}/NOTES.md", content="hello\n"),
        call("Bash", command="echo made > b.txt; env; cat /proc/*/environ; exit 3"),
        call("Edit", file_path=f"{work.path}/NOTES.md", old_string="hello", new_string="bye"),
        call("Read", file_path="/etc/hostname"),
        call("Write", file_path=f"{work.path}/.git/hooks/pre-commit", content="x"),
        call("Bash", command="sleep 99", run_in_background=True),
        call("AskUserQuestion", questions=[{**question, "options": options}]),
        Step(text="I wrote it.", usage={"input_tokens": 7, "output_tokens": 5}),
    ]
    with MessagesApi(steps) as api:
        outcome = await ClaudeCode().run(at(work, api))
        told = results(api)
        sent = json.dumps(api.requests[-1])
    assert (outcome.text, outcome.kind) == ("I wrote it.", "answer")
    assert outcome.usage.output >= 5 and outcome.usage.cost > 0
    assert (work.path / "NOTES.md").read_text() == "hello\n" and (work.path / "b.txt").exists()
    assert [tool for tool, _ in person.asked] == ["create_file", "bash", "str_replace"]
    assert person.asked[0][1]["path"] == "NOTES.md"
    assert "a rule says no" in told[2] and "outside of the worktree" in told[3] and ".git" in told[4]
    assert "background" in told[5] and "Green, please" in told[6] and "hurry" in sent
    assert person.questions == [{"asked": "Which?", "options": ["Red", "Blue"]}]
    assert "Exit code 3" in told[1]
    if work.sandbox.confines:
        assert "secret" not in told[1]
    (ran,) = [record for record in work.journal.records if record["k"] == "result"]
    assert (ran["arguments"]["command"][:14], ran["content"]["exit_code"]) == ("echo made > b.", 3)


async def test_a_link_that_leads_out_of_the_worktree_is_not_followed(
    work: Work, person: Person, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("canary")
    (work.path / "in").symlink_to(secret)
    (work.path / "up").symlink_to(tmp_path)
    steps = [
        call("Read", file_path=f"{work.path}/in"),
        call("Write", file_path=f"{work.path}/in", content="broken"),
        call("Grep", pattern="canary", path=f"{work.path}/up"),
        call("Read", file_path=f"{work.path}/up/../secret.txt"),
        Step(text="Done."),
    ]
    with MessagesApi(steps) as api:
        await ClaudeCode().run(at(work, api))
        assert not any("canary" in told.replace("'canary'", "") for told in results(api))
    assert secret.read_text() == "canary" and person.asked == [("view", {"path": "secret.txt"})]


async def test_after_a_kill_the_next_one_goes_on_in_the_same_session(work: Work, person: Person) -> None:
    steps = [
        call("Bash", command="echo once >> count.txt"),
        Step(text="never", delay=60),
        Step(text="I went on."),
    ]
    with MessagesApi(steps) as api:
        first = asyncio.create_task(ClaudeCode().run(at(work, api)))
        await until(lambda: len(api.requests) == 2, 60)
        (child,) = [p for p in psutil.Process().children(recursive=True) if "claude" in p.name()]
        os.kill(child.pid, 9)
        with pytest.raises(ModelError):
            await first
        successor = Hold(work.path.parent, "t", 2)
        await successor.take()
        outcome = await ClaudeCode().run(at(replace(work, lock=successor), api))
        said = json.dumps(api.requests[-1]["messages"])
        await successor.release()
    assert outcome.text == "I went on." and "Do it." in said and "You were interrupted" in said
    assert (work.path / "count.txt").read_text() == "once\n"
    assert len([record for record in work.journal.records if record["k"] == "session"]) == 1
    before = len(api.requests)
    assert (await ClaudeCode().run(work)).text == "I went on." and len(api.requests) == before


async def test_cancelled_it_leaves_no_process_behind(work: Work) -> None:
    steps = [call("Bash", command="touch begun; sleep 291.77")]
    with MessagesApi(steps) as api:
        running = asyncio.create_task(ClaudeCode().run(at(work, api)))
        await until(lambda: (work.path / "begun").exists(), 60)
        (claude,) = [p for p in psutil.Process().children() if "claude" in p.name()]
        children = [claude, *claude.children(recursive=True)]
        assert len(children) > 1
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await until(lambda: not any(birth(child.pid) for child in children), 20)


async def test_a_limit_in_money_ends_it(work: Work) -> None:
    dear = {"input_tokens": 100, "output_tokens": 2_000_000}
    steps = [replace(call("Bash", command="true"), usage=dear), Step(text="too far", usage=dear)]
    with MessagesApi(steps) as api:
        outcome = await ClaudeCode().run(replace(at(work, api), cost=0.5))
        assert len(api.requests) < 3
    assert "its budget" in outcome.text and outcome.usage.cost > 0.5
