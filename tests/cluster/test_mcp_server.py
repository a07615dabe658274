"""The cluster as an MCP server over stdio, used by the official client."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from tests.support import mcp_elsewhere
from tests.support.messages_api import MessagesApi
from tests.support.processes import Site, Worker

MAKE = {"tools": [{"name": "create_task", "input": {"title": "Old work"}}]}
DELETE = {"tools": [{"name": "delete_task", "input": {"task_id": "{{result.created}}"}}]}
LOOK = {"tools": [{"name": "list_projects", "input": {}}]}
RULES: list[dict[str, Any]] = [
    # The client for JavaScript drops progress that comes in one piece with the answer.
    {"user": "look slowly", "steps": [LOOK, {"text": "Looked.", "delay": 1.0}]},
    {"user": "look", "steps": [LOOK, {"text": "Looked."}]},
    {"user": "delete", "steps": [MAKE, DELETE, {"text": "{{result.deleted}}{{result.error}}"}]},
    {"user": "slow", "steps": [{"text": "At last.", "hold": "slow"}]},
    {"steps": [{"text": "You said: {{user}}"}]},
]
SETTINGS = {"UNSIGNED_MAY": ""}


@pytest.fixture(scope="module", autouse=True)
def chatter(place: Site) -> Worker:
    return place.up("chatter", "planner")[0]


@asynccontextmanager
async def program(place: Site, user: str = "ada") -> AsyncIterator[Client]:
    """A program that has the cluster as its server."""
    command = ["-P", "-m", "gateways.mcp", "--user", user]
    server = StdioServerParameters(
        command=sys.executable, args=command, env=place.environment, cwd=place.folder
    )
    async with Client(server) as client:
        yield client


async def use(client: Client, tool: str, **arguments: Any) -> Any:
    """What a tool answers, as JSON."""
    answer = await client.call_tool(tool, arguments)
    text = "".join(getattr(block, "text", "") for block in answer.content)
    assert not answer.is_error, text
    found = answer.structured_content
    return found.get("result", found) if isinstance(found, dict) and set(found) == {"result"} else found


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    answer = await client.call_tool(tool, arguments)
    assert answer.is_error
    return "".join(getattr(block, "text", "") for block in answer.content)


async def test_a_program_talks_with_chatter_in_one_conversation(place: Site) -> None:
    async with program(place) as client:
        told: list[str] = []

        async def report(progress: float, total: float | None, message: str | None) -> None:
            told.append(message or "")

        answer = await client.call_tool("ask", {"message": "look"}, progress_callback=report)
        first = answer.structured_content or {}
        assert (first["status"], first["answer"]) == ("complete", "Looked.")
        assert told == ["Chatter uses list_projects"]
        again = await use(client, "ask", message="and now", session_id=first["session_id"])
        assert again["answer"].endswith("and now") and again["session_id"] == first["session_id"]


async def test_an_answer_that_takes_long_is_waited_for_again_or_stopped(
    place: Site, api: MessagesApi
) -> None:
    async with program(place) as client:
        asked = await use(client, "ask", message="slow", wait_seconds=0.2)
        assert asked["status"] == "working" and "wait_for_answer" in asked["next"]
        api.released.add("slow")
        answer = await use(client, "wait_for_answer", message_id=asked["message_id"])
        assert answer["answer"] == "At last."
        api.released.discard("slow")
        asked = await use(client, "ask", message="slow", wait_seconds=0.2)
        stopped = await use(client, "stop_answer", message_id=asked["message_id"])
        assert stopped["stopped"] is True


async def test_what_needs_permission_is_asked_and_answered_there(place: Site) -> None:
    async with program(place, "bea") as client:
        asked = await use(client, "ask", message="delete")
        assert asked["status"] == "awaiting_approval"
        [waiting] = await use(client, "list_approvals")
        assert waiting["id"] == asked["approval"]["id"] and waiting["tool"] == "delete_task"
        await use(client, "answer_approval", approval_id=waiting["id"], decision="allow_once")
        answer = await use(client, "wait_for_answer", message_id=asked["message_id"])
        assert answer["status"] == "complete" and answer["answer"]
        assert await use(client, "list_approvals") == []


async def test_tasks_are_made_listed_and_shown(place: Site) -> None:
    async with program(place) as client:
        made = await use(client, "create_task", title="Paint it", description="Blue.")
        listed = await use(client, "list_tasks")
        assert [task["title"] for task in listed if task["id"] == made["created"]] == ["Paint it"]
        shown = await use(client, "get_task", task_id=made["created"])
        assert shown["description"] == "Blue."
        assert "has no branch" in await refused(client, "review_task", task_id=made["created"])


async def test_an_agent_is_consulted_directly(place: Site) -> None:
    async with program(place) as client:
        names = {agent["name"]: agent["state"] for agent in await use(client, "list_agents")}
        assert names["chatter"] in ("idle", "working") and names["backend"] == "offline"
        answer = await use(client, "consult", agent="planner", question="How are you?")
        assert answer["status"] == "complete", answer
        assert "How are you?" in json.dumps(answer["result"])
        assert "offline" in await refused(client, "consult", agent="backend", question="Are you there?")


async def test_what_is_wrong_is_said_in_words(place: Site) -> None:
    async with program(place) as client:
        assert "no task" in await refused(client, "get_task", task_id="no-such-task")
        assert "nothing was asked here" in await refused(client, "wait_for_answer", message_id="x")
        assert "no request for permission" in await refused(
            client, "answer_approval", approval_id="none", decision="deny"
        )


def test_a_program_in_another_language_talks_with_chatter(place: Site) -> None:
    command = [sys.executable, "-P", "-m", "gateways.mcp", "--user", "cleo"]
    steps: list[tuple[str, dict[str, Any]]] = [
        ("ask", {"message": "look slowly"}),
        ("get_task", {"task_id": "no-such-task"}),
    ]
    told = mcp_elsewhere.javascript(*steps, command=command, env=place.environment, cwd=str(place.folder))
    assert told["server"]["name"] == "promptdock" and {"ask", "list_approvals"} <= set(told["tools"])
    asked, unknown = told["steps"]
    assert asked["structuredContent"]["answer"] == "Looked." and asked["progress"] == [
        "Chatter uses list_projects"
    ]
    assert unknown["isError"] and "no task" in unknown["content"][0]["text"]


async def test_a_program_that_leaves_ends_its_server(place: Site) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "gateways.mcp"),
        env=place.environment,
        cwd=place.folder,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(b""), 30)
    assert (process.returncode, out, err) == (0, b"", b"")
