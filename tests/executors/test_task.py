"""Tasks of the built-in executor on real processes: proved, asked about, changed, merged, and taken over."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from shared.bus.activity import stream_of
from tests.cluster.conftest import api, place, valkey, wire
from tests.support.messages_api import MessagesApi
from tests.support.processes import Site, Worker, until
from tests.support.wire import Message, Wire
from tests.tools.ground import git, repository

__all__ = ["api", "place", "valkey", "wire"]

CHECKS = '[checks]\ncommands = ["grep -q right answer.txt"]\n'
SETTINGS = {"PROMPTDOCK_LEASE": "1500"}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tools": [{"name": name, "input": arguments}]}


RULES: list[dict[str, Any]] = [
    {
        "user": "not all passed",
        "system": "You are Backend",
        "steps": [call("create_file", path="answer.txt", content="right\n"), {"text": "Now it is right."}],
    },
    {
        "user": "# Try",
        "steps": [call("create_file", path="answer.txt", content="wrong\n"), {"text": "All tests pass!"}],
    },
    {
        "user": "# Never right",
        "system": "You are Backend",
        "steps": [call("create_file", path="other.txt", content="x\n"), {"text": "All tests pass!"}],
    },
    {"user": "# Look", "system": "You are Backend", "steps": [{"text": "It is there already: answer.txt."}]},
    {"user": "# Wait", "system": "You are Backend", "steps": [{"text": "never", "delay": 60}]},
    {
        "user": "say more",
        "steps": [call("create_file", path="more.txt", content="more\n"), {"text": "I said more."}],
    },
    {
        "user": "# Ask",
        "steps": [
            call("create_file", path="answer.txt", content="right, or not\n"),
            call("escalate_to_human", question="Which color?", context="Both fit.", options=["red", "blue"]),
        ],
    },
    {
        "user": "from ann]: blue",
        "steps": [call("create_file", path="color.txt", content="blue\n"), {"text": "It is blue."}],
    },
    {
        "user": "# Too",
        "system": "You are Frontend",
        "steps": [
            call("create_file", path="answer.txt", content="right too\n"),
            call("create_file", path="answer.txt", content="{{result.why}} right too\n"),
            {"text": "It is done."},
        ],
    },
    *(
        {
            "user": f"# Add {name}",
            "system": "You are Backend",
            "steps": [
                call("create_file", path="tool.py", content="NAME = 'shop'\n"),
                call("create_file", path=f"{name}.py", content="from tool import NAME\n"),
                call("bash", command=f"python3 -c 'import {name}'"),
                call("bash", command=f"python3 -m compileall -q . && printf 'x\\0' > {name}.bin"),
                {"text": "It is there."},
            ],
        }
        for name in ("hello", "goodbye")
    ),
    {
        "user": "# Bounded",
        "steps": [
            call("create_file", path="bounded.txt", content="half\n") | {"usage": {"input_tokens": 900}},
            {"text": "unreachable"},
        ],
    },
    {
        "user": "# Slow",
        "steps": [
            call("create_file", path="answer.txt", content="right\n"),
            call("bash", command="echo once >> count.txt"),
            {"text": "It is done.", "tries": [{"text": "never", "delay": 60}]},
        ],
    },
]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    files = {"README.md": "# Shop\n", "promptdock.toml": CHECKS, "answer.txt": "none\n"}
    return repository(tmp_path_factory.mktemp("checkout") / "shop", files).path


@pytest.fixture(scope="module", autouse=True)
def workers(place: Site, wire: Wire, checkout: Path) -> dict[str, Worker]:
    chatter, backend = place.up("chatter", "backend")
    added = wire.command(
        "add_repo", user="ann", source="link", path=str(checkout), name="shop", kind="backend"
    )
    assert added["status"] == "complete", added
    wire.command("orchestrator_control", user="ann", action="pause")  # the tests assign the tasks themselves
    return {"chatter": chatter, "backend": backend}


@pytest.fixture
def head(checkout: Path) -> Iterator[str]:
    yield git(checkout, "rev-parse", "HEAD")


def assign(
    wire: Wire,
    name: str,
    command_file: str,
    to: str = "backend",
    row: dict[str, Any] | None = None,
    **more: Any,
) -> str:
    """A task for Backend, as any program may send one; its row is made first, as Chatter does."""
    made = wire.command("create_task", user="ann", title=name, description=command_file, **(row or {}))
    task = str(made["result"].get("created") or made["result"].get("task_id"))
    send(wire, task, command_file, to=to, **more)
    return task


def send(
    wire: Wire,
    task: str,
    command_file: str,
    again: str = "",
    to: str = "backend",
    deadline: str | None = None,
    **more: Any,
) -> None:
    person = {"user_id": "ann", "session_id": "s-ann"}
    payload = {"task_id": task, "title": f"Do {task}", "command_file": command_file, "repo": "shop", **more}
    message: Message = {"id": f"r-{task}{again}", "from": "ann-client", "to": to, "type": "task"}
    message |= {"on_behalf_of": person, "payload": payload} | ({"deadline": deadline} if deadline else {})
    assert wire.publish(f"agent:{to}", message)


def command(place: Site, *words: str, user: bool = True) -> str:
    """What the command line prints for a person."""
    done = place.run(*words, *(("--user", "ann") if user else ()))
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(place: Site, *words: str, code: int = 2) -> str:
    """What it says where it does nothing."""
    done = place.run(*words)
    assert done.returncode == code, done.stderr
    return done.stderr


def outcome(wire: Wire, task: str, again: str = "") -> Message:
    answer = wire.wait(
        "agent:ann-client",
        lambda m: m["type"] in ("response", "error") and m["payload"]["request_id"] == f"r-{task}{again}",
    )
    return dict(answer["payload"])


def status(place: Site, task: str, wanted: str) -> dict[str, Any]:
    (row,) = until(
        lambda: place.query("select * from tasks where slug = ? and status = ?", task, wanted),
        what=f"{task} being {wanted}",
    )
    return row


def test_who_asks_an_agent_that_works_on_tasks_is_told_what_to_do_instead(wire: Wire) -> None:
    question = {
        "id": "q-1",
        "from": "asker",
        "to": "backend",
        "type": "question",
        "payload": {"question": "Well?"},
    }
    assert wire.publish("agent:backend", question)

    def fits(message: Message) -> bool:
        return bool(message["type"] == "error" and message["payload"]["request_id"] == "q-1")

    told = wire.wait("agent:asker", fits)["payload"]
    assert told["error"].startswith("backend takes tasks, not questions")
    assert "assign_task" in told["fix"] and "task_id" not in told


def test_checks_decide_and_the_agent_corrects_what_they_find(
    wire: Wire, place: Site, checkout: Path, head: str
) -> None:
    task = assign(wire, "first", "# Try")
    told = outcome(wire, task)
    assert (told["status"], told["verified"]) == ("completed", "verified")
    assert told["proof"].startswith("Verified: `grep -q right answer.txt` exit 0 (run by the harness")
    assert len(told["commits"]) == 2 and told["files_changed"] == ["answer.txt"]
    assert git(checkout, "show", f"promptdock/{task}:answer.txt") == "right"
    status(place, task, "COMPLETED")
    review = command(place, "tasks", "review", task)
    assert "answer.txt  +1 -1" in review and "+right" in review
    assert command(place, "tasks", "merge", task) == f"promptdock/{task} is merged into main: 1 file\n"
    assert "before: nothing is changed" in command(place, "tasks", "merge", task)
    assert git(checkout, "log", "-1", "--format=%s") == f"Merge {task}: first"
    assert git(checkout, "rev-parse", "HEAD^1") == head
    assert (checkout / "answer.txt").read_text() == "right\n"


def test_a_request_names_its_model_and_bounds_its_tokens(wire: Wire, place: Site, api: MessagesApi) -> None:
    task = assign(wire, "bounded", "# Bounded", model="claude-haiku-5-5", max_tokens_per_run=500)
    told = outcome(wire, task)
    assert told["status"] == "failed" and "a budget of 500 tokens is spent" in told["error"], told
    asked = [body["model"] for body in api.requests if "# Bounded" in json.dumps(body["messages"])]
    assert set(asked) == {"claude-haiku-5-5"} and len(asked) == 2  # its work, and what it hands back
    status(place, task, "BLOCKED")  # another try would be bought for the same


def test_work_whose_checks_fail_to_the_end_is_failed_whatever_the_agent_says(wire: Wire, place: Site) -> None:
    task = assign(wire, "second", "# Never right", checks=["false"])
    told = outcome(wire, task)
    assert (told["status"], told["verified"], told["error"]) == (
        "failed",
        "unverified",
        "its checks failed: false (exit 1)",
    )
    assert told["commits"], "what was made is kept"
    events = wire.redis.xrange(wire.names.stream(stream_of("backend", f"r-{task}")))
    ran = [
        event
        for _, fields in cast(Any, events)
        if (event := json.loads(fields[b"data"]))["event"] == "checks"
    ]
    assert ran and all(event["commands"] == ["false"] for event in ran), "who watches sees that they run"


def test_a_task_that_finds_nothing_to_do_says_so_and_is_done(wire: Wire, place: Site, checkout: Path) -> None:
    task = assign(wire, "there", "# Look", checks=["true"])
    told = outcome(wire, task)
    assert (told["status"], told["unchanged"], told["branch"]) == ("completed", True, None)
    assert told["summary"] == "It is there already: answer.txt."
    assert told["proof"] == "Nothing was changed; `true` exit 0 (run by the harness)."
    assert status(place, task, "COMPLETED")["branch"] is None
    assert git(checkout, "branch", "--list", f"promptdock/{task}") == ""


def test_where_nothing_was_changed_and_its_checks_fail_no_other_try_is_bought(
    wire: Wire, place: Site
) -> None:
    task = assign(wire, "idle", "# Look", checks=["false"])
    told = outcome(wire, task)
    assert (told["status"], told["error"]) == ("failed", "its checks failed: false (exit 1)")
    assert status(place, task, "BLOCKED")["attempts"] == 0


def test_what_only_looks_is_not_measured_by_checks(wire: Wire, place: Site) -> None:
    task = assign(wire, "research", "# Look", row={"task_type": "research"}, checks=["false"])
    told = outcome(wire, task)
    assert (told["status"], told["proof"]) == ("completed", "Nothing was changed.")


def test_a_running_task_is_ended_at_the_deadline_that_its_sender_named(wire: Wire, place: Site) -> None:
    made = wire.command("create_task", user="ann", title="late", description="# Wait")
    task = str(made["result"].get("created") or made["result"].get("task_id"))
    ends = (datetime.now(UTC) + timedelta(seconds=3)).isoformat()
    send(wire, task, "# Wait", deadline=ends)
    assert "ended at its deadline" in outcome(wire, task)["error"]
    status(place, task, "BLOCKED")


def test_a_task_whose_repository_is_unclear_is_blocked_at_once_until_the_person_names_one(
    wire: Wire, place: Site
) -> None:
    task = assign(wire, "lost", "# Nowhere", repo="attic")
    told = outcome(wire, task)
    assert told["status"] == "failed"
    assert f"promptdock tasks restart {task} --repo shop" in told["error"]
    assert status(place, task, "BLOCKED")["repo_id"] is None
    assert "begins again in shop" in command(place, "tasks", "restart", task, "--repo", "shop")
    assert status(place, task, "READY")["repo_id"]


def test_work_that_a_person_is_to_approve_is_told_as_waiting_and_not_as_completed(
    wire: Wire, place: Site
) -> None:
    task = assign(wire, "reviewed", "# Try", row={"requires_approval": True})
    told = outcome(wire, task)
    assert told["status"] == "awaiting_approval" and told["commits"], told
    status(place, task, "AWAITING_APPROVAL")
    approved = wire.command("approve_task", user="ann", task_id=task)
    assert approved["status"] == "complete", approved


def test_a_question_waits_for_the_person_and_the_task_goes_on_with_the_answer(
    wire: Wire, place: Site, checkout: Path
) -> None:
    task = assign(wire, "third", "# Ask")
    asked = wire.wait("chatter-output", lambda said: said.get("question") == "Which color?")
    assert (asked["user_id"], asked["status"], asked["options"]) == ("ann", "task_update", ["red", "blue"])
    status(place, task, "WAITING_INPUT")
    assert command(place, "tasks", "answer", task, "blue") == f"{task} has the answer to: Which color?\n"
    told = outcome(wire, task)
    assert told["status"] == "completed" and "color.txt" in told["files_changed"]
    status(place, task, "COMPLETED")
    assert wire.command("answer_task", user="ann", task_id=task, answer="red")["status"] == "error"


def test_asked_for_changes_the_agent_goes_on_with_its_branch(wire: Wire, place: Site, checkout: Path) -> None:
    (row,) = place.query("select * from tasks where status = 'COMPLETED' order by created_at desc limit 1")
    task = str(row["slug"])
    reopened = wire.command("reopen_with_feedback", user="ann", task_id=task, feedback="Please say more.")
    assert reopened["status"] == "complete"
    before = git(checkout, "rev-parse", f"promptdock/{task}")
    send(wire, task, "# Go on", "c")
    told = outcome(wire, task, "c")
    assert "more.txt" in told["files_changed"] and before in told["commits"]
    status(place, task, "COMPLETED")
    discarded = wire.command("discard_task", user="ann", task_id=task)
    assert discarded["status"] == "complete", discarded
    assert git(checkout, "branch", "--list", f"promptdock/{task}") == ""


def test_two_tasks_about_to_change_one_file_are_told_before_they_do_and_what_does_not_merge_is_found(
    wire: Wire, place: Site, checkout: Path, api: MessagesApi
) -> None:
    place.up("frontend")
    first = assign(wire, "fourth", "# Ask")
    status(place, first, "WAITING_INPUT")
    second = assign(wire, "fifth", "# Too", to="frontend")
    told = outcome(wire, second)
    assert f"answer.txt is being changed by {first} too" in git(
        checkout, "show", f"promptdock/{second}:answer.txt"
    )
    assert told["receipt"]["clashes"] == [], "the other has committed nothing yet"
    wire.command("answer_task", user="ann", task_id=first, answer="blue")
    ended = outcome(wire, first)
    assert ended["receipt"]["clashes"] == [{"branch": f"promptdock/{second}", "files": ["answer.txt"]}]
    news = f"[The task {second} is about to change answer.txt, as you do.]"
    assert any(news in json.dumps(body["messages"]) for body in api.requests)


def test_two_tasks_whose_commands_leave_byte_code_behind_are_both_merged(
    wire: Wire, place: Site, checkout: Path
) -> None:
    """The repository ignores nothing."""
    tasks = [assign(wire, name, f"# Add {name}", checks=["true"]) for name in ("hello", "goodbye")]
    for name, task in zip(("hello", "goodbye"), tasks, strict=True):
        told = outcome(wire, task)
        assert told["files_changed"] == [f"{name}.py", "tool.py"], told
        assert f"Not committed:\n- {name}.bin: a command made it, and it is a binary" in told["summary"]
        status(place, task, "COMPLETED")
        assert "is merged into main" in command(place, "tasks", "merge", task)
    assert {"hello.py", "goodbye.py"} <= {path.name for path in checkout.iterdir()}


def test_a_person_tries_merges_undoes_discards_and_clears_away_what_tasks_made(
    wire: Wire, place: Site, checkout: Path, tmp_path: Path
) -> None:
    task = assign(wire, "tried", "# Try", checks=["true"])
    outcome(wire, task)
    status(place, task, "COMPLETED")

    def does(*words: str) -> str:
        return command(place, "tasks", *words, user=False)

    assert f"{task}" in does("list") and "COMPLETED, to merge" in does("show", task)
    folder = tmp_path / "look"
    assert does("try", task, str(folder)).strip() == str(folder)
    assert (folder / "answer.txt").read_text() == "wrong\n" and git(folder, "branch", "--show-current") == ""
    (folder / "answer.txt").write_text("mine\n")
    assert "checked out already" in refused(place, "tasks", "try", task)
    (folder / "new.txt").write_text("mine\n")
    told = " ".join(refused(place, "tasks", "try", task, "--remove", code=1).split())
    assert "not committed" in told
    git(folder, *re.search(r"(reset --hard) &&", told)[1].split())  # type: ignore[index]
    git(folder, *re.search(r"(clean -fd) drops", told)[1].split())  # type: ignore[index]
    assert does("try", task, "--remove") == f"{folder} is removed\n" and not folder.exists()
    before = git(checkout, "rev-parse", "HEAD")
    assert "is merged into main" in does("merge", task)
    assert "+wrong" in does("review", task), "what was merged is still shown"
    assert f"promptdock/{task} is taken out of main" in does("unmerge", task)
    assert git(checkout, "rev-parse", "HEAD^{tree}") == git(checkout, "rev-parse", f"{before}^{{tree}}")
    assert "is not merged: its work is lost" in refused(place, "tasks", "discard", task)
    assert "is thrown away" in does("discard", task, "--yes")
    assert "its work was thrown away" in refused(place, "tasks", "review", task, code=1)
    assert "for good" in refused(place, "tasks", "prune", "--days", "0")
    assert "removed" in does("prune", "--days", "0", "--yes")
    assert task not in does("list")


def test_after_kill_9_another_process_goes_on_and_each_commit_is_made_once(
    wire: Wire, place: Site, checkout: Path, workers: dict[str, Worker], api: MessagesApi
) -> None:
    task = assign(wire, "last", "# Slow")
    backend = workers["backend"]
    until(
        lambda: any("count.txt" in json.dumps(body["messages"]) for body in api.requests),
        what="its work",
        told=backend.tail,
    )
    backend.kill()
    (successor,) = place.up("backend")
    told = outcome(wire, task)
    assert told["status"] == "completed" and len(told["commits"]) == 1
    assert git(checkout, "show", f"promptdock/{task}:count.txt") == "once"
    assert git(checkout, "log", "--format=%s", f"main..promptdock/{task}") == f"Do {task}"
    assert git(checkout, "worktree", "list").count("\n") == 0
    assert successor.process.poll() is None


@pytest.mark.parametrize("words", ["2", "Blue", "I would say blue"])
def test_a_plain_message_that_answers_the_question_of_a_task_settles_it(
    wire: Wire, place: Site, api: MessagesApi, words: str
) -> None:
    task = assign(wire, f"plainly-{words[:2]}".replace(" ", ""), "# Ask")
    status(place, task, "WAITING_INPUT")
    asked = wire.wait(
        "chatter-output",
        lambda said: said.get("question") == "Which color?" and said["task"]["task_id"] == task,
    )
    if len(words) > 4:  # words of one's own are told from others by what they reply to
        start = len(api.requests)
        assert wire.ask("What is the weather?", user="ann", session_id="s-ann")["content"] == "ok"
        assert f"The task {task} waits for the person's answer" in json.dumps(api.requests[start]["messages"])
        status(place, task, "WAITING_INPUT")
        said = wire.ask(words, user="ann", in_reply_to=asked["id"])
    else:
        assert "Your answer" not in wire.ask(words, user="ann", session_id="elsewhere")["content"]
        said = wire.ask(words, user="ann", session_id="s-ann")
    assert (said["status"], said["content"]) == ("complete", f"Your answer is with task {task}.")
    until(
        lambda: place.query(
            "select 1 from task_events e join tasks t on t.id = e.task_id "
            "where t.slug = ? and e.event = 'answered'",
            task,
        ),
        what="the answer",
    )
    outcome(wire, task)
    told = f"%Your answer is with task {task}.%"
    kept = "select 1 from conversation_messages where role = 'assistant' and content like ?"
    until(lambda: place.query(kept, told), what="the conversation's message")


def test_nobody_else_answers_the_question_of_a_task_by_a_plain_message(wire: Wire, place: Site) -> None:
    task = assign(wire, "theirs", "# Ask")
    status(place, task, "WAITING_INPUT")
    asked = wire.wait(
        "chatter-output",
        lambda said: said.get("question") == "Which color?" and said["task"]["task_id"] == task,
    )
    assert wire.ask("2", user="bob", in_reply_to=asked["id"])["content"] == "ok"
    assert status(place, task, "WAITING_INPUT")
    assert wire.ask("2", user="ann", session_id="s-ann")["content"] == f"Your answer is with task {task}."
    outcome(wire, task)
