"""Whatever of a running cluster is killed or locked while messages flow, it comes back and answers all of them."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import time
from collections.abc import Iterator
from typing import Any

import psutil
import pytest
import redis

from shared.bus.keys import HUMAN_INPUT
from tests.support.messages_api import MessagesApi
from tests.support.messages_script import Rules
from tests.support.processes import PATIENCE, Site, Worker, site, until
from tests.support.wire import Wire

MESSAGES = 8  # before, and again after each blow
RULES: list[dict[str, Any]] = [
    {"system": "You are Planner", "steps": [{"text": "Two steps will do."}]},
    {
        "user": "plan",
        "steps": [
            {"tools": [{"name": "consult_planner", "input": {"question": "{{user}}"}}], "delay": 0.2},
            {"text": "The plan: {{result.answer}}"},
        ],
    },
    {"steps": [{"text": "You said: {{user}}", "delay": 0.1}]},
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A home where one command runs everything, Redis included."""
    with MessagesApi(Rules(RULES)) as api:
        model = {"ANTHROPIC_API_KEY": "sk-ant-test-key-0000", "ANTHROPIC_BASE_URL": api.url}
        with site(tmp_path_factory.mktemp("site"), "", **model) as made:
            yield made


@pytest.fixture(scope="module")
def cluster(place: Site) -> Iterator[Worker]:
    """`python -m agents`, with Chatter and Planner only."""
    others = [part for name in ("researcher", "frontend", "backend") for part in ("--without", name)]
    running = Worker("cluster", ["agents", *others], place.folder, place.environment)
    place.workers.append(running)
    until(lambda: _ready(place), what="the cluster being ready", told=running.tail)
    yield running
    assert running.drain() == 0


def _ready(place: Site) -> bool:
    logs = [place.home / "logs" / f"{name}.log" for name in ("chatter", "planner")]
    return all(file.exists() and " ready" in file.read_text() for file in logs)


@pytest.fixture(scope="module")
def wire(place: Site, cluster: Worker) -> Iterator[Wire]:
    """What is published there."""
    place.url = json.loads((place.home / "redis.json").read_text())["url"]
    with Wire(place.url, place.names) as listening:
        yield listening


class Flow:
    """People who write, and write again with the same id what was not answered: as careful programs do."""

    def __init__(self, wire: Wire, tag: str) -> None:
        self.wire, self.tag, self.sent = wire, tag, list[str]()

    def send(self, text: str = "hello") -> None:
        """One message more, whether or not anybody hears it."""
        self.sent.append(f"{self.tag}-{len(self.sent)}")
        self._publish(self.sent[-1], text)

    def _publish(self, number: str, text: str) -> bool:
        message = {"id": number, "user_id": f"{self.tag}{number[-1]}", "content": text}
        try:
            return self.wire.publish(HUMAN_INPUT, message) > 0
        except redis.ConnectionError:
            return False

    def answers(self) -> dict[str, int]:
        """How often each message was answered, as the stream of outputs has it."""
        try:
            rows: Any = self.wire.redis.xrange(f"{self.wire.names.queue('chatter')}out")
        except redis.ConnectionError:
            return {}
        said = [json.loads(row[b"data"]) for _, row in rows]
        counts = dict.fromkeys(self.sent, 0)
        for output in said:
            for number in output.get("answers") or []:
                if output["status"] == "complete" and number in counts:
                    counts[number] += 1
        return counts

    def end(self) -> None:
        """All are answered, each once."""

        again = time.monotonic() + 2

        def all_answered() -> bool:
            nonlocal again
            counts = self.answers()
            if time.monotonic() > again:
                again = time.monotonic() + 2
                for number in self.sent:
                    if not counts.get(number):
                        self._publish(number, "hello")
            return bool(counts) and all(counts.values())

        until(all_answered, 2 * PATIENCE, "an answer to all", self.answers)
        assert set(self.answers().values()) == {1}


def _processes(cluster: Worker, name: str) -> list[int]:
    children = psutil.Process(cluster.pid).children(recursive=True)
    return [child.pid for child in children if name in " ".join(child.cmdline())]


@pytest.mark.parametrize("victim", ["agents.chatter", "agents.planner", "valkey-server"])
def test_what_is_killed_is_started_again_and_every_message_is_answered_once(
    victim: str, cluster: Worker, wire: Wire
) -> None:
    flow = Flow(wire, victim.rpartition(".")[2])
    for number in range(MESSAGES):
        flow.send("plan a shed" if number % 2 else "hello")
    until(lambda: any(flow.answers().values()), what="a first answer", told=cluster.tail)
    (old,) = _processes(cluster, victim)
    os.kill(old, signal.SIGKILL)
    for _ in range(MESSAGES):
        flow.send()
    flow.end()
    (new,) = until(lambda: _processes(cluster, victim), what="its successor", told=cluster.tail)
    assert new != old
    assert cluster.process.poll() is None


def test_a_locked_store_holds_nobody_up_and_nothing_is_missing_there_afterwards(
    place: Site, cluster: Worker, wire: Wire
) -> None:
    file = place.home / "promptdock.db"
    wire.ask("hello", user="warm")
    lock = sqlite3.connect(file, isolation_level=None, timeout=PATIENCE)
    try:
        lock.execute("BEGIN EXCLUSIVE")
        texts = [f"note {number}" for number in range(MESSAGES)]
        for text in texts:
            assert wire.ask(text, user="keeper")["content"].endswith(text)
        lock.execute("ROLLBACK")
    finally:
        lock.close()

    def kept() -> list[dict[str, Any]]:
        rows = place.query(
            "select seq, content from conversation_messages where session_id = ? order by seq", "user:keeper"
        )
        return rows if len(rows) >= 2 * MESSAGES else []

    rows = until(kept, what="the conversation in the store")
    assert [row["seq"] for row in rows] == list(range(1, 2 * MESSAGES + 1))
    said = [json.loads(row["content"])[0]["text"] for row in rows[::2]]
    assert [words.rpartition(": ")[2] for words in said] == texts
