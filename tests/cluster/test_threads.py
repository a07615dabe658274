"""Threads of channels on real workers: replies to what runs, has ended or is not known; a kill, a death, a restart."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.messages_api import MessagesApi
from tests.support.processes import Site, Worker, until
from tests.support.wire import Message, Wire

DISCORD, PAGE = "discord:7", "page:1"


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tools": [{"name": name, "input": arguments}]}


RULES: list[dict[str, Any]] = [
    {"user": "hold on", "steps": [{**call("get_agents"), "hold": "gate"}, {"text": "You said: {{user}}"}]},
    {"user": "delete", "steps": [call("create_task", title="Old work"),
                                 call("delete_task", task_id="{{result.created}}"), {"text": "{{result}}"}]},
    {"user": "which threads", "steps": [call("list_threads"), {"text": "{{result}}"}]},
    {"steps": [{"text": "You said: {{user}}"}]},
]  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def workers(place: Site) -> list[Worker]:
    """Two replicas: what one took in may be for a turn of the other."""
    return place.up("chatter", "chatter")


def say(wire: Wire, text: str, channel: str = DISCORD, **more: Any) -> str:
    """Words in a channel of a surface that has replies."""
    return wire.send(text, user=more.pop("user", "ada"), channel=channel, replies=True, **more)


def shown(wire: Wire, output: Message, *ids: str) -> None:
    """The surface says under which ids it shows an output."""
    named = {"session_id": output["session_id"], "output": output["id"], "surface_ids": list(ids)}
    wire.send(type="posted", user=output["user_id"], channel=output["channel"], **named)


def thread(output: Message) -> tuple[str, str]:
    return output["channel"], output["thread_id"]


def states(place: Site, channel: str = DISCORD) -> dict[int, str]:
    done = place.run("thread", "list", "--user", "ada", "--channel", channel, "--json")
    assert done.returncode == 0, done.stderr
    return {one["number"]: one["state"] for one in json.loads(done.stdout)["threads"]}


def test_two_surfaces_have_threads_of_their_own_and_replies_go_on_in_them(wire: Wire, place: Site) -> None:
    first = wire.closing(say(wire, "plan a login page", surface_id="9000"))
    second = wire.closing(say(wire, "write tests"))
    other = wire.closing(say(wire, "on the page", PAGE))
    assert [thread(one) for one in (first, second, other)] == [(DISCORD, "1"), (DISCORD, "2"), (PAGE, "1")]
    assert len({one["session_id"] for one in (first, second, other)}) == 3
    shown(wire, first, "9001", "9002")
    for reply in ("9002", "9000", first["id"], first["in_reply_to"]):
        went_on = wire.closing(say(wire, f"go on from {reply}", reply_to=reply))
        assert (went_on["session_id"], thread(went_on)) == (first["session_id"], (DISCORD, "1"))
    assert states(place) == {1: "completed", 2: "completed"}
    rows = until(
        lambda: place.query("select * from sessions where key like 'thread:%' and number = 2"), what="its row"
    )
    assert (rows[0]["channel"], rows[0]["key"]) == (DISCORD, second["session_id"])


def test_a_reply_to_what_runs_joins_it_and_others_are_told_of_it(
    wire: Wire, place: Site, api: MessagesApi
) -> None:
    channel = "discord:8"
    running = say(wire, "hold on, this is long", channel, surface_id="1")
    until(lambda: states(place, channel) == {1: "running"}, what="the turn")
    beside = wire.closing(say(wire, "what else is there?", channel))
    assert thread(beside) == (channel, "2")
    asked = json.dumps(api.requests[-1]["messages"][-1])
    assert "Other threads that are active now:" in asked and "#1 (running): hold on, this is long" in asked
    joins = say(wire, "and in French", channel, reply_to="1")
    api.released.add("gate")
    answer = wire.closing(running)
    assert answer["answers"] == [running, joins]


def test_a_reply_to_what_nobody_knows_gets_a_thread_of_its_own_and_is_told_so(wire: Wire) -> None:
    sent = say(wire, "and in blue", "discord:9", reply_to="never-seen")
    told = wire.wait(
        "chatter-output", lambda said: said["status"] == "progress" and said["in_reply_to"] == sent
    )
    assert "not known here" in told["content"] and "#1" in told["content"]
    assert thread(wire.closing(sent)) == ("discord:9", "1")


def test_a_kill_ends_a_thread_with_its_request_for_permission_and_what_waits(wire: Wire, place: Site) -> None:
    channel = "discord:10"
    first = say(wire, "delete it", channel)
    asked = wire.wait(
        "chatter-output", lambda said: said["status"] == "awaiting_approval" and said["in_reply_to"] == first
    )
    assert thread(asked) == (channel, "1")
    waits = wire.send("and then this", user="ada", session_id=asked["session_id"])
    until(lambda: states(place, channel) == {1: "waiting for permission"}, what="the request")
    done = place.run("thread", "kill", "1", "--user", "ada", "--channel", channel)
    assert done.returncode == 0 and "#1 of discord:10 is killed" in done.stdout, done.stderr
    assert wire.closing(first)["id"] == wire.closing(waits)["id"]
    assert states(place, channel) == {1: "killed"}
    approval = asked["approval"]["id"]
    until(
        lambda: place.query(
            f"select 1 from approvals where approval_id = '{approval}' and state = 'withdrawn'"
        )
    )
    again = wire.closing(say(wire, "still there?", channel, reply_to=first))
    assert again["session_id"] == asked["session_id"]
    assert states(place, channel) == {1: "completed"}
    done = place.run("thread", "kill", "1", "--user", "ada", "--channel", channel)
    assert done.returncode == 0 and "#1 of discord:10 is finished" in done.stdout
    assert states(place, channel) == {1: "completed"}, "nothing was sent that could have killed it"
    done = place.run("thread", "kill", "7", "--user", "ada", "--channel", channel)
    assert done.returncode == 1 and "there is no thread #7" in done.stderr


def test_everything_dies_and_the_reply_finds_its_thread_by_the_store_alone(
    wire: Wire, place: Site, workers: list[Worker]
) -> None:
    channel = "discord:11"
    first = wire.closing(say(wire, "remember the harbour", channel))
    shown(wire, first, "55")
    until(
        lambda: place.query("select 1 from posts where surface_id = '55'"),
        what="what it posted, in the Store",
    )
    for worker in workers:
        worker.kill()
    prefix = wire.names.queue("chatter")
    keys = [
        key
        for kind in ("post", "at")
        for key in wire.redis.scan_iter(f"{prefix}{kind}:*".replace("{", "[{]"))
    ]
    wire.redis.delete(*keys)  # as two days do
    # The first to take it in dies between number and session, the second as it has found where it belongs.
    place.up("chatter", PROMPTDOCK_FAULT="claimed")
    sent = say(wire, "what was it?", channel, reply_to="55")
    place.up("chatter", "chatter")
    answer = wire.closing(sent)
    assert (answer["session_id"], thread(answer)) == (first["session_id"], (channel, "1"))
    assert states(place, channel) == {1: "completed"}
    where = f"message_id = '{sent}' and type = 'message'"
    until(
        lambda: place.query(f"select 1 from messages where {where} and session_id = '{first['session_id']}'")
    )
