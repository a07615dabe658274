"""A question to a person outlives everything: workers and Redis are stopped, and the answer comes afterwards."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

from shared.bus.embedded import Embedded
from tests.support.messages_api import MessagesApi
from tests.support.messages_script import Rules
from tests.support.processes import Site, Worker, site, until
from tests.support.valkey import free_port
from tests.support.wire import Wire


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tools": [{"name": name, "input": arguments}]}


MODEL = "sk-ant-test-key-0000"
RULES: list[dict[str, Any]] = [
    {
        "user": "delete",
        "steps": [
            call("create_task", title="Old work"),
            call("delete_task", task_id="{{result.created}}"),
            {"text": "{{result}}"},
        ],
    },
    {"steps": [{"text": "You said: {{user}}"}]},
]


def kill(home: Path) -> None:
    """kill -9 of the server of this folder."""
    os.kill(int(json.loads((home / "redis.json").read_text())["pid"]), signal.SIGKILL)


def stop(blow: str, chatter: Worker, server: Embedded) -> None:
    """End the worker and the server, gently or not, and start the server again."""
    if blow == "SIGTERM":
        assert chatter.drain() == 0
    else:
        chatter.kill()
        kill(server.home)
    server.stop()
    server.start()


def test_a_yes_after_the_whole_cluster_and_redis_were_stopped_runs_the_call_once(tmp_path: Path) -> None:
    server = Embedded(tmp_path / "redis", free_port())
    try:
        with MessagesApi(Rules(RULES)) as api:
            model = {"ANTHROPIC_API_KEY": MODEL, "ANTHROPIC_BASE_URL": api.url}
            with (
                site(tmp_path / "site", server.start(), **model) as place,
                Wire(place.url, place.names) as wire,
            ):
                (chatter,) = place.up("chatter")
                for blow, user in (("SIGTERM", "ada"), ("kill -9", "bob")):
                    first = wire.send("delete", user=user)
                    asked = question(wire, user)
                    bought = len(api.requests)
                    stop(blow, chatter, server)
                    (chatter,) = place.up("chatter")
                    until(lambda: wire.redis.pubsub_numpat(), what="our own subscription")
                    assert len(place.query("select id from tasks")) == 1, "it ran without permission"
                    answered(wire, place, user, first, asked)
                    assert len(api.requests) == bought + 1, "what was bought before is not asked for again"
    finally:
        server.stop()


def question(wire: Wire, user: str) -> str:
    said = wire.wait(
        "chatter-output", lambda said: said["status"] == "awaiting_approval" and said["user_id"] == user
    )
    return str(said["approval"]["id"])


def answered(wire: Wire, place: Site, user: str, first: str, asked: str) -> None:
    """The yes, by plain PUBLISH, runs the call and closes both messages; it was one question all the time."""
    yes = wire.send(user=user, type="approval", approval_id=asked, decision="allow_once")
    said = wire.closing(yes)
    assert said["status"] == "complete" and set(said["answers"]) == {first, yes}
    assert "deleted" in said["content"] and place.query("select id from tasks") == []
    audit = "select person from audit_log where decision = 'ask_approved' and person = ?"
    assert len(until(lambda: place.query(audit, user), what="the audit of it")) == 1
    assert {out["approval"]["id"] for out in wire.outputs(user) if out.get("approval")} == {asked}
