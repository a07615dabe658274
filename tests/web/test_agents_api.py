"""Agents, profiles and MCP servers over HTTP: through the door of the tools, by who may."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from shared.client.local.people import People
from tests.support.processes import Site

SCRIPT = str(Path(__file__).parents[1] / "support" / "mcp_server.py")
RULES: list[dict[str, Any]] = [{"steps": [{"text": "Noted"}]}]

pytestmark = pytest.mark.usefixtures("chatter")


def test_a_profile_is_made_shown_as_it_is_sent_changed_and_deleted(web: httpx.Client) -> None:
    sections = [{"name": "persona", "text": "You answer in one line."}]
    given = {"id": "terse", "name": "Terse", "sections": sections}
    assert web.post("/api/profiles", json=given).status_code == 201
    assert "terse" in [one["id"] for one in web.get("/api/profiles").json()["profiles"]]
    found = web.get("/api/profiles/terse").json()
    assert found["name"] == "Terse" and "You answer in one line." in found["prompt"]["sent"]
    off = [{**sections[0], "enabled": False}, {"name": "task", "text": "Count sheep."}]
    assert web.patch("/api/profiles/terse", json={"sections": off}).status_code == 200
    sent = web.get("/api/profiles/terse").json()["prompt"]["sent"]
    assert "Count sheep." in sent and "one line" not in sent
    broken = web.patch("/api/profiles/terse", json={"permission_mode": "royal"})
    assert broken.status_code == 404 and "royal" in broken.json()["error"]
    assert web.patch("/api/profiles/terse", json={"colour": "red"}).status_code == 422
    assert web.delete("/api/profiles/terse").json()["deleted"] == "terse"
    assert web.get("/api/profiles/terse").status_code == 404


def test_an_agent_is_made_configured_and_destroyed(web: httpx.Client) -> None:
    made = web.post("/api/agents", json={"name": "poet", "system_prompt": "You are Poet."})
    assert made.status_code == 201 and made.json()["channel"] == "promptdock:poet"
    assert "You are Poet." in web.get("/api/agents/poet").json()["prompt"]["sent"]
    assert web.patch("/api/agents/poet", json={"system_prompt": "You are Bard."}).status_code == 200
    assert "You are Bard." in web.get("/api/agents/poet").json()["prompt"]["sent"]
    assert web.delete("/api/agents/poet").json()["destroyed"] == "poet"
    assert web.get("/api/agents/poet").status_code == 422


def test_a_server_is_listed_tried_and_looked_for(place: Site, web: httpx.Client) -> None:
    entry = {"command": sys.executable, "args": ["-P", SCRIPT, "well"]}
    (place.home / "mcp.json").write_text(json.dumps({"mcpServers": {"clock": entry}}))
    assert [one["name"] for one in web.get("/api/mcp").json()["servers"]] == ["clock"]
    assert web.get("/api/mcp/clock").json()["type"] == "stdio"
    tried = web.post("/api/mcp/clock/test").json()
    assert tried["tools"], tried
    found = web.post("/api/mcp/clock/reconnect").json()
    assert found["name"] == "clock" and found["state"] == "ready", found
    for path in ("/api/mcp/nobody", "/api/mcp/nobody/test", "/api/mcp/nobody/reconnect"):
        answer = web.get(path) if path.endswith("nobody") else web.post(path)
        assert answer.status_code == 404, path


def test_who_has_no_role_for_it_shapes_no_agents(
    place: Site, url: str
) -> None:  # people are named from here on
    people = People(place.home)
    people.add("bob", "correct horse battery", ("member",))
    people.add("ann", "correct horse battery", ("tools.list_profiles",))

    def asks(who: str, method: str, path: str, **body: Any) -> int:
        headers = {"Authorization": f"Bearer {people.token(who)}"}
        answer = httpx.request(
            method, f"{url}/api{path}", headers=headers, timeout=60, json=body or None, trust_env=False
        )
        return answer.status_code

    assert asks("ann", "GET", "/profiles") == 200
    for who, method, path, body in (
        ("bob", "GET", "/profiles", {}),
        ("ann", "POST", "/profiles", {"id": "mine", "name": "Mine"}),
        ("bob", "GET", "/profiles/terse", {}),
        ("bob", "POST", "/agents", {"name": "mine"}),
        ("bob", "GET", "/agents/chatter", {}),
        ("bob", "DELETE", "/agents/chatter", {}),
        ("bob", "POST", "/mcp/clock/test", {}),
    ):
        assert asks(who, method, path, **body) == 403, path
