"""The cluster as an MCP server at `/mcp`, used by the official client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from shared.client.local.people import People
from tests.support import mcp_elsewhere
from tests.support.processes import Site, Worker
from tests.web.support import serve

TOKEN = "a-token-of-twenty-letters"
LOOK = {"tools": [{"name": "list_projects", "input": {}}]}
RULES: list[dict[str, Any]] = [
    # The client for JavaScript drops progress that comes in one piece with the answer.
    {"user": "look slowly", "steps": [LOOK, {"text": "Looked.", "delay": 1.0}]},
    {"user": "look", "steps": [LOOK, {"text": "Looked."}]},
    {"user": "slow", "steps": [{"text": "At last.", "delay": 1.0}]},
    {"steps": [{"text": "You said: {{user}}"}]},
]
SETTINGS = {"UNSIGNED_MAY": "", "PROMPTDOCK_WEB_TOKEN": TOKEN}


@pytest.fixture(scope="module", autouse=True)
def up(chatter: Worker) -> None:
    """Chatter is there."""


@asynccontextmanager
async def program(url: str, token: str = TOKEN) -> AsyncIterator[Client]:
    headers = {"authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False, timeout=60) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
    ):
        yield client


async def test_a_program_with_a_token_talks_with_chatter_and_hears_of_progress(url: str) -> None:
    told: list[str] = []

    async def report(progress: float, total: float | None, message: str | None) -> None:
        told.append(message or "")

    async with program(url) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert {"ask", "consult", "create_task", "list_approvals"} <= names
        answer = await client.call_tool("ask", {"message": "look"}, progress_callback=report)
        assert (answer.structured_content or {})["answer"] == "Looked."
    assert told == ["Chatter uses list_projects"]


def test_a_program_in_another_language_talks_with_chatter(url: str) -> None:
    headers = {"authorization": f"Bearer {TOKEN}"}
    told = mcp_elsewhere.javascript(("ask", {"message": "look slowly"}), url=f"{url}/mcp", headers=headers)
    (asked,) = told["steps"]
    assert asked["structuredContent"]["answer"] == "Looked." and asked["progress"] == [
        "Chatter uses list_projects"
    ]


async def test_what_takes_long_is_found_again_by_another_connection(url: str) -> None:
    async with program(url) as client:
        asked = await client.call_tool("ask", {"message": "slow", "wait_seconds": 0})
        assert (asked.structured_content or {})["status"] == "working"
    async with program(url) as client:
        id = (asked.structured_content or {})["message_id"]
        answer = await client.call_tool("wait_for_answer", {"message_id": id})
        assert (answer.structured_content or {})["answer"] == "At last."


async def test_each_program_speaks_for_the_person_of_its_token_and_sees_what_they_see(
    place: Site, url: str
) -> None:
    people = People(place.home)
    people.add("bob", "a password of some length", ("member",))
    async with program(url) as owner, program(url, people.token("bob")) as bob:
        made = await owner.call_tool("create_task", {"title": "Not for Bob", "description": "x"})
        task = (made.structured_content or {})["created"]
        assert not (await owner.call_tool("get_task", {"task_id": task})).is_error
        asked = (await owner.call_tool("ask", {"message": "hello"})).structured_content or {}
        said = {"message": "what was said here?", "session_id": asked["session_id"]}
        for tool, given, remedy in (
            ("get_task", {"task_id": task}, "list_tasks lists"),
            ("review_task", {"task_id": task}, "list_tasks lists"),
            ("wait_for_answer", {"message_id": asked["message_id"]}, ""),
            ("ask", said, "leave session_id out"),
            ("answer_approval", {"approval_id": "none", "decision": "deny"}, "list_approvals lists"),
        ):
            refused = await bob.call_tool(tool, given)
            told = str(refused.content)
            assert refused.is_error and remedy in told.lower(), tool
            assert "/api/" not in told and "promptdock " not in told, "a program has tools, and no more"
        assert (await bob.call_tool("list_tasks", {})).structured_content == {"result": []}
        own = await bob.call_tool("create_task", {"title": "Bob's", "description": "x"})
        listed = (await bob.call_tool("list_tasks", {})).structured_content or {}
        assert [one["id"] for one in listed["result"]] == [(own.structured_content or {})["created"]]


def test_without_a_token_and_from_pages_of_others_nobody_comes_in(url: str) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    headers = {"accept": "application/json, text/event-stream"}
    with httpx.Client(base_url=url, trust_env=False, timeout=30) as web:
        assert web.post("/mcp", json=body, headers=headers).status_code == 401
        assert web.get("/mcp", headers=headers).status_code == 401
        bearer = {**headers, "authorization": f"Bearer {TOKEN}"}
        foreign = web.post("/mcp", json=body, headers={**bearer, "origin": "https://evil.example"})
        assert foreign.status_code == 403


def test_a_page_that_nobody_asks_over_mcp_does_not_load_the_library(place: Site) -> None:
    worker, url = serve(place, cold=True)
    with httpx.Client(base_url=url, trust_env=False, timeout=30) as web:
        assert web.get("/api/health").status_code == 200
    before = worker.rss()
    with httpx.Client(base_url=url, trust_env=False, timeout=60) as web:
        headers = {"accept": "application/json, text/event-stream", "authorization": f"Bearer {TOKEN}"}
        web.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, headers=headers)
    assert worker.rss() - before > 5 * 1024 * 1024, "it was loaded before"
