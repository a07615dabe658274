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
from shared.executors.base import TaskWork
from shared.executors.claude_code import ClaudeCode
from shared.guard.processes.pid import birth
from shared.redaction import hide
from shared.tasks.worktree.lock import WorktreeLock
from shared.turns.records import SessionRecord
from tests.executors.conftest import Person
from tests.support.guards import guarded
from tests.support.messages_api import MessagesApi
from tests.support.messages_script import Step
from tests.tasks.conftest import until

pytestmark = pytest.mark.timeout(120)


def call(name: str, **given: Any) -> Step:
    return Step(tools=({"name": name, "input": given},))


def at(work: TaskWork, api: MessagesApi) -> TaskWork:
    provider = {"ANTHROPIC_API_KEY": "sk-ant-test-secret", "ANTHROPIC_BASE_URL": api.url}
    return replace(work, environment=provider)


def results(api: MessagesApi) -> list[str]:
    """What the tools answered, as the model read it last."""
    blocks = [b for m in api.requests[-1]["messages"] if isinstance(m["content"], list) for b in m["content"]]
    return [json.dumps(block["content"]) for block in blocks if block["type"] == "tool_result"]


async def test_it_works_in_the_worktree_and_every_call_passes_the_gate(
    work: TaskWork, person: Person, monkeypatch: pytest.MonkeyPatch
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
    (ran,) = work.journal.records.results()
    assert (ran.arguments["command"][:14], ran.content["exit_code"]) == ("echo made > b.", 3)


async def test_a_link_that_leads_out_of_the_worktree_is_not_followed(
    work: TaskWork, person: Person, tmp_path: Path
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


async def test_after_a_kill_the_next_one_goes_on_in_the_same_session(work: TaskWork, person: Person) -> None:
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
        successor = WorktreeLock(work.path.parent, "t", 2)
        await successor.take()
        outcome = await ClaudeCode().run(at(replace(work, lock=successor), api))
        said = json.dumps(api.requests[-1]["messages"])
        await successor.release()
    assert outcome.text == "I went on." and "Do it." in said and "You were interrupted" in said
    assert (work.path / "count.txt").read_text() == "once\n"
    assert len(work.journal.records.of(SessionRecord)) == 1
    before = len(api.requests)
    assert (await ClaudeCode().run(work)).text == "I went on." and len(api.requests) == before


async def test_cancelled_it_leaves_no_process_behind(work: TaskWork) -> None:
    steps = [call("Bash", command="touch begun; sleep 291.77")]
    with MessagesApi(steps) as api:
        running = asyncio.create_task(ClaudeCode().run(at(work, api)))
        await until(lambda: (work.path / "begun").exists(), 60)
        (claude,) = [p for p in psutil.Process().children(recursive=True) if "claude" in p.name()]
        children = [claude, *claude.children(recursive=True)]
        assert len(children) > 1
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await until(lambda: not any(birth(child.pid) for child in children), 20)


async def test_a_limit_in_money_ends_it(work: TaskWork) -> None:
    dear = {"input_tokens": 100, "output_tokens": 2_000_000}
    steps = [replace(call("Bash", command="true"), usage=dear), Step(text="too far", usage=dear)]
    with MessagesApi(steps) as api:
        outcome = await ClaudeCode().run(replace(at(work, api), cost=0.5))
        assert len(api.requests) < 3
    assert "its budget" in outcome.text and outcome.usage.cost > 0.5


@guarded("claude-mentions")
@pytest.mark.parametrize(
    "words", ["see @a.txt", "@a.txt", 'see @"a.txt"', "line\n@a.txt#L1", "see\t@./a.txt now"]
)
async def test_words_of_a_task_read_no_file_by_themselves(words: str, work: TaskWork, person: Person) -> None:
    """Claude Code puts in a file that is named with @, without a call that anybody could judge."""
    person.words = [f"[the person adds: {words}]", words]
    steps = [call("Bash", command="true"), Step(text="Done.")]
    with MessagesApi(steps) as api:
        await ClaudeCode().run(at(replace(work, command=words), api))
        sent = json.dumps(api.requests[-1]["messages"])
    assert "a.txt" in sent and "Called the Read tool" not in sent and "1\\tone" not in sent


@pytest.mark.parametrize("words", ["/compact", "/clear now", "!touch made", "#remember this", "  /cost"])
async def test_words_of_a_task_are_no_commands_of_claude_code(words: str, work: TaskWork) -> None:
    with MessagesApi([Step(text="Done.")]) as api:
        outcome = await ClaudeCode().run(at(replace(work, command=words), api))
        sent = json.dumps(api.requests[-1]["messages"])
    assert outcome.text == "Done." and words.strip() in sent and not (work.path / "made").exists()


@guarded("claude-sandbox", "claude-mentions")
async def test_nothing_beside_the_worktree_is_read_or_listed(work: TaskWork, tmp_path: Path) -> None:
    (tmp_path / "beside-77.txt").write_text("canary")
    steps = [
        call("Glob", pattern=f"{tmp_path}/*.txt"),
        call("Glob", pattern="../*.txt"),
        call("Glob", pattern="{a,../beside*}"),
        call("Grep", pattern="can.ry", glob="../*.txt", output_mode="content"),
        Step(text="Done."),
    ]
    words = f"look at @{tmp_path}/beside-77.txt and @{tmp_path}/"
    with MessagesApi(steps) as api:
        await ClaudeCode().run(at(replace(work, command=words), api))
        told = [part for part in results(api) if "cannot be used" not in part]
        sent = json.dumps(api.requests[0]["messages"])
    assert "canary" not in sent and "Called the" not in sent
    assert not any("beside-77" in part or "canary" in part for part in told), told


async def test_patterns_within_the_worktree_are_looked_for(work: TaskWork) -> None:
    (work.path / "src").mkdir()
    (work.path / "src" / "b.py").write_text("word = 1\n")
    steps = [
        call("Glob", pattern="**/*.{py,js}"),
        call("Grep", pattern="../|word", glob="*.py"),
        Step(text="Done."),
    ]
    with MessagesApi(steps) as api:
        await ClaudeCode().run(at(work, api))
        assert all("src/b.py" in part for part in results(api)), results(api)


async def test_the_key_is_not_with_claude_code_and_goes_to_no_model(work: TaskWork) -> None:
    key = "sk-ant-api03-TheRealKey77Q"
    hide(key)
    (work.path / "notes.txt").write_text(f"key: {key}\n")
    steps = [
        call("Read", file_path=f"{work.path}/notes.txt"),
        call("Bash", command="cat notes.txt"),
        Step(text="Done.", delay=1),
    ]
    with MessagesApi(steps) as api:
        there = at(work, api)
        there = replace(there, environment={**there.environment, "ANTHROPIC_API_KEY": key})
        running = asyncio.create_task(ClaudeCode().run(there))
        await until(lambda: len(api.requests) == 3, 60)
        seen = [
            (p.environ(), p.cmdline())
            for p in psutil.Process().children(recursive=True)
            if "claude" in p.name()
        ]
        await running
        assert seen and key not in str(seen)
        assert "[hidden]" in results(api)[0] and key not in json.dumps(api.requests)
        assert {exchange.headers["x-api-key"] for exchange in api.exchanges if exchange.body} == {key}
