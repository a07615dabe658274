"""What is read from the cards of workers, and whether anybody reads a message."""

from __future__ import annotations

import fcntl
import json
from pathlib import Path
from typing import Any

from shared.bus.activity import Activity
from shared.client import Client, Sent
from shared.client.views import status
from shared.settings import Settings

CHATTER = {"agent": "chatter", "model": "large"}
PLANNER = {"agent": "planner", "model": "small"}


def test_the_model_that_people_speak_with_is_chatters() -> None:
    assert status.speaks([PLANNER, CHATTER]) == "large"
    assert status.speaks([PLANNER]) == "small"
    assert status.speaks([{"agent": "chatter"}]) == ""
    assert status.speaks([CHATTER, {**PLANNER, "demo": True}]) == "DEMO"


def test_workers_of_two_homes_with_files_of_their_own_are_a_finding() -> None:
    def cards(*homes: str, store: str = "sqlite") -> list[dict[str, Any]]:
        return [{"agent": "chatter", "home": home, "store": store} for home in homes]

    assert status.other_homes(cards("/a", "/a")) is None
    assert status.other_homes(cards("/a", "/b", store="supabase")) is None
    found = status.other_homes(cards("/a", "/b"))
    assert found is not None
    assert (found.level, "2 homes" in found.told) == ("fail", True)


def test_who_works_is_one_line_whose_end_gives_way() -> None:
    working = status.Working("backend", Activity("t", 0, "task", "calm-otter", "Dig a pond"), 75.0)
    working.activity.act = "writes pond.py"
    assert working.told() == "1 min backend: calm-otter Dig a pond · writes pond.py"
    assert working.told(20) == "1 min backend: calm…"


async def test_a_message_that_nobody_reads_says_why(client: Client) -> None:
    assert "goes out when it is back" in await status.unread(client, Sent("m-1", "kept"))
    sent = await client.say("Hello", "ada")
    assert "nobody is here as Chatter" in await status.unread(client, sent)
    await client.presence.beat("chatter", "c-1", {"status": "idle"})
    assert await status.unread(client, sent) == ""


async def test_redis_of_this_home_that_nobody_keeps_up_is_a_cluster_that_is_down(tmp_path: Path) -> None:
    settings = Settings(PROMPTDOCK_HOME=tmp_path)
    async with Client(settings) as client:
        assert status.absence(client) == await status.nobody(client)
        assert "the cluster is down (start it: promptdock up)" in await status.unread(
            client, Sent("m", "kept")
        )
        with (tmp_path / "cluster.lock").open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)  # its supervisor is there
            assert status.absence(client) == "Redis is away"
    async with Client(Settings(PROMPTDOCK_HOME=tmp_path, REDIS_URL="redis://127.0.0.1:1")) as client:
        assert status.absence(client) == "Redis is away"


async def test_a_cluster_without_a_worker_works_on_nothing(client: Client) -> None:
    assert "no worker is here" in await status.nobody(client)
    await client.presence.beat("chatter", "c-1", {"status": "idle"})
    assert await status.nobody(client) == ""


async def test_the_last_act_for_a_request_is_told_but_no_result_of_a_tool(client: Client) -> None:
    await client.presence.beat("planner", "p-1", {"status": "working"})
    stream = client.names.stream("planner:r-1")
    for event in (
        {"event": "tool_call", "tool": "read_file", "arguments": {"path": "view.py"}},
        {"event": "tool_result", "tool": "read_file", "content": "…"},
    ):
        await client.bus.command("XADD", stream, "*", "data", json.dumps(event))
    pulse = await status.pulse(client, "planner", "r-1")
    assert pulse.beat_ms is not None
    assert "view.py" in pulse.doing
    assert (await status.pulse(client, "nobody", "r-2")) == status.Pulse(None, "")


async def test_what_an_earlier_turn_of_the_session_did_last_is_not_told_of_this_one(client: Client) -> None:
    stream = client.names.stream("user:ada")
    await client.bus.command(
        "XADD", stream, "999-0", "data", json.dumps({"event": "chunk", "content": "old"})
    )
    made = Activity("t", 1000, kind="message", user="ada", events="user:ada")
    await client.presence.beat("chatter", "c-1", {"status": "working", "doing": [made.card()]})
    assert [one.activity.act for one in await status.doing(client)] == [""]
    waits = {"event": "waiting", "content": "it is overloaded"}
    await client.bus.command("XADD", stream, "1001-0", "data", json.dumps(waits))
    (now,) = await status.doing(client)
    assert now.activity.act == "waits for the model's provider: it is overloaded"


async def test_an_agent_that_waits_for_a_provider_says_for_how_long(client: Client) -> None:
    made = Activity("t", 1000, waits="it is overloaded", waits_since=1000)
    await client.presence.beat("chatter", "c-1", {"status": "waiting", "doing": [made.card()]})
    (card,) = await client.presence.here()
    assert status.state(card).startswith("waiting, ") and status.state({"status": "idle"}) == "idle"
    (now,) = await status.doing(client)
    assert now.waits > 0 and now.row()["waits"] == "it is overloaded" and now.row()["waits_seconds"] > 0
