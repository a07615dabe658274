"""`promptdock bridge`: any command line is an agent, whose requests are answered once."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import Site, Worker, site, until
from tests.support.valkey import valkey
from tests.support.wire import Message, Wire

__all__ = ["valkey"]

Start = Callable[..., Worker]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, valkey: str) -> Iterator[Site]:
    with site(tmp_path_factory.mktemp("site"), valkey, SECRET_OF_THE_PERSON="given on") as made:
        yield made


@pytest.fixture(scope="module")
def wire(place: Site) -> Iterator[Wire]:
    with Wire(place.url, place.names) as listening:
        yield listening


@pytest.fixture
def start(place: Site, wire: Wire) -> Iterator[Start]:
    """Start a bridge; it is on the bus when this returns."""
    running: list[Worker] = []

    def begin(name: str, command: str, *options: str) -> Worker:
        heard = len(wire.heard)
        words = ["gateways.cli", "bridge", "--name", name, "--exec", command, *options]
        process = Worker(name, words, place.folder, place.environment)
        running.append(process)
        wire.wait(
            "agent:status", lambda card: card["agent"] == name and card["pid"] == process.pid, start=heard
        )
        until(lambda: wire.redis.pubsub_numsub(place.names.agent(name))[0][1], what=name, told=process.tail)
        return process

    yield begin
    for process in running:
        process.kill()


def ask(wire: Wire, name: str, id: str, kind: str = "question", **payload: Any) -> None:
    message = {"id": id, "from": "asker", "to": name, "type": kind, "payload": payload}
    assert wire.publish(f"agent:{name}", message)


def answer(wire: Wire, id: str) -> Message:
    def fits(message: Message) -> bool:
        return message["type"] in ("response", "error") and message["payload"]["request_id"] == id

    return wire.wait("agent:asker", fits)


def test_a_command_answers_questions_and_tasks_without_the_clusters_secrets(
    wire: Wire, place: Site, start: Start
) -> None:
    process = start(
        "echo", 'printf "%s, %s, $SECRET_OF_THE_PERSON, $REDIS_URL." "$(cat)" "$PROMPTDOCK_SENDER"'
    )
    ask(wire, "echo", "q1", question="How?")
    assert answer(wire, "q1")["payload"]["answer"] == "How?, asker, given on, ."
    ask(wire, "echo", "t1", "task", command_file="# Do it", task_id="some-task")
    told = answer(wire, "t1")["payload"]
    assert (told["status"], told["verified"], told["task_id"]) == ("completed", "unverified", "some-task")
    assert told["summary"].startswith("# Do it")
    assert process.drain() == 0
    wire.wait("agent:status", lambda card: card["agent"] == "echo" and card["status"] == "offline")


def test_what_fails_or_takes_too_long_is_told_and_nothing_of_it_runs_on(
    wire: Wire, place: Site, start: Start
) -> None:
    start(
        "fails",
        'case "$(cat)" in slow) sleep 283.9 & sleep 283.9;; *) echo why >&2; exit 7;; esac',
        "--timeout",
        "1",
    )
    ask(wire, "fails", "f1", question="now")
    error = answer(wire, "f1")
    assert (error["type"], error["payload"]["error"]) == ("error", "the command ended with exit code 7")
    assert error["payload"]["why"] == "why\n"
    ask(wire, "fails", "f2", question="slow")
    assert answer(wire, "f2")["payload"]["error"] == "the command was ended after 1 s"
    found = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert "sleep 283.9" not in found
    ask(wire, "fails", "f3", "task", title="nothing to do")
    assert "takes questions and tasks" in answer(wire, "f3")["payload"]["error"]


def test_one_at_a_time_and_a_second_bridge_goes_on_where_the_first_was_killed(
    wire: Wire, place: Site, start: Start, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    command = f'read q; echo "$q" >> {ran}; [ -e {tmp_path}/go ] || sleep 30; echo "$q done"'
    first = start("relay", command)
    ask(wire, "relay", "r1", question="one")
    ask(wire, "relay", "r2", question="two")
    until(lambda: ran.exists() and ran.read_text() == "one\n", what="the first request")
    (tmp_path / "go").touch()
    first.kill()
    start("relay", command)
    assert answer(wire, "r1")["payload"]["answer"] == "one done\n"
    assert answer(wire, "r2")["payload"]["answer"] == "two done\n"
    replies = [m for m in wire.on("agent:asker") if m["payload"].get("request_id") in ("r1", "r2")]
    assert len([m for m in replies if m["type"] == "response"]) == 2


def test_a_name_of_ours_is_not_taken_while_it_runs(place: Site, wire: Wire, start: Start) -> None:
    start("planner", "cat")
    done = place.run("bridge", "--name", "planner", "--exec", "cat")
    assert done.returncode == 2 and "--without planner" in done.stderr
