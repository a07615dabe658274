"""What the API reads and changes, over a real Chatter and Store."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.support.processes import until

RULES: list[dict[str, Any]] = [{"steps": [{"text": "You said: {{user}}"}]}]

pytestmark = pytest.mark.usefixtures("chatter")


def said(web: httpx.Client, message: str, **more: Any) -> dict[str, Any]:
    """The answer to a message."""
    found: dict[str, Any] = web.post("/api/agent/chat", json={"message": message, **more}).json()
    return found


def ids(web: httpx.Client, query: str) -> list[str]:
    """The conversations that a query finds."""
    return [one["id"] for one in web.get("/api/sessions", params={"query": query}).json()["sessions"]]


def test_a_conversation_is_listed_and_read_with_its_turns_and_their_steps(web: httpx.Client) -> None:
    answered = said(web, "Plant an apple tree")
    session = answered["session_id"]
    until(lambda: web.get(f"/api/sessions/{session}/messages").json()["messages"][1:], what="the rows")
    until(lambda: ids(web, "apple"), what="the conversation's row")
    assert ids(web, "apple") == [session]
    entries = web.get(f"/api/sessions/{session}/messages").json()["messages"]
    assert [(one["kind"], one["text"]) for one in entries] == [
        ("said", "Plant an apple tree"),
        ("answer", answered["answer"]),
    ]
    until(lambda: web.get(f"/api/sessions/{session}/turns").json()["turns"], what="the turn's row")
    turns = web.get(f"/api/sessions/{session}/turns").json()["turns"]
    assert [one["id"] for one in turns] == [answered["task_id"]]
    steps = web.get(f"/api/turns/{answered['task_id']}").json()["turns"][0]["steps"]
    assert [step["kind"] for step in steps] == ["model"]


def test_sessions_come_by_pages(web: httpx.Client) -> None:
    made = {said(web, f"Page {number}")["session_id"] for number in range(3)}
    everything: set[str] = set()
    until(
        lambda: len(web.get("/api/sessions", params={"query": "Page"}).json()["sessions"]) == 3, what="rows"
    )
    after = ""
    for _ in range(4):
        page = web.get("/api/sessions", params={"query": "Page", "limit": 1, "after": after}).json()
        everything |= {one["id"] for one in page["sessions"]}
        after = page["next"]
        if not after:
            break
    assert everything == made


def test_a_task_is_made_listed_shown_and_ended(web: httpx.Client) -> None:
    made = web.post("/api/tasks", json={"title": "Mow the lawn", "description": "All of it."})
    assert made.status_code == 201, made.text
    task = made.json()["created"]
    assert web.get(f"/api/tasks/{task}").json()["title"] == "Mow the lawn"
    assert task in [one["id"] for one in web.get("/api/tasks").json()["tasks"]]
    assert web.post(f"/api/tasks/{task}/skip").status_code == 422  # nothing failed that could be skipped
    assert web.post(f"/api/tasks/{task}/stop").status_code == 200
    archived = web.post(f"/api/tasks/{task}/archive")
    assert archived.status_code == 200, archived.text
    assert task not in [one["id"] for one in web.get("/api/tasks").json()["tasks"]]
    assert web.post(f"/api/tasks/{task}/explode").status_code == 422
    assert web.get("/api/tasks/no-such-task").status_code == 404
    unknown = web.get("/api/turns/zzz")
    assert unknown.status_code == 404 and unknown.json()["error"] == "there is no turn 'zzz'"


def test_notes_are_written_found_read_and_deleted(web: httpx.Client) -> None:
    where = "/api/projects/default/notes"
    written = web.put(f"{where}/shopping", json={"content": "# Shopping\n\nApples and pears."})
    assert written.status_code == 200, written.text
    until(lambda: web.get(where).json()["notes"], what="the note")
    name = web.get(where).json()["notes"][0]["name"]
    assert "Apples" in str(web.get(f"{where}/{name}").json())
    assert web.get(where, params={"query": "pears"}).json()["notes"][0]["name"] == name
    assert web.delete(f"{where}/{name}").status_code == 200
    assert web.get(where).json()["notes"] == []


def test_a_tool_is_called_through_the_door(web: httpx.Client) -> None:
    names = [one["name"] for one in web.get("/api/tools").json()["tools"]]
    assert "list_projects" in names
    called = web.post("/api/tools/list_projects/call", json={"arguments": {}})
    assert called.status_code == 200 and "projects" in called.json()
    refused = web.post("/api/tools/get_task/call", json={"arguments": {"task_id": "nope"}})
    assert refused.status_code == 404 and refused.json()["error"]
    assert web.get("/api/tools/no_such_tool").status_code == 404


def test_everything_else_that_is_listed_can_be_read(web: httpx.Client) -> None:
    for path, key in (
        ("/api/agents", "agents"),
        ("/api/projects", "projects"),
        ("/api/repositories", "repositories"),
        ("/api/hooks", "hooks"),
        ("/api/models", "chosen"),
        ("/api/budgets", "budgets"),
        ("/api/spend", "rows"),
        ("/api/status", "agents"),
        ("/api/dead-letters", "dead_letters"),
        ("/api/approvals", "approvals"),
        ("/api/permissions", "permissions"),
        ("/api/inbox", "items"),
        ("/api/health", "status"),
        ("/api/openapi.json", "paths"),
    ):
        response = web.get(path)
        assert response.status_code == 200 and key in response.json(), (path, response.text)


def test_the_docs_page_names_every_address_and_loads_nothing(web: httpx.Client) -> None:
    page = web.get("/api/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert "http://" not in page.text and "https://" not in page.text
    assert all(path in page.text for path in web.get("/api/openapi.json").json()["paths"])


def test_metrics_count_requests_by_address_and_not_by_what_was_typed(web: httpx.Client) -> None:
    web.get("/api/tasks/secret-name")
    told = web.get("/metrics").text
    assert 'route="/api/tasks/{task}"' in told and "secret-name" not in told
