"""MCP servers for people: what the workers' heartbeats say of them, in words."""

from __future__ import annotations

from typing import Any

from shared.client.views import mcp

CARDS: list[dict[str, Any]] = [
    {"agent": "chatter", "mcp": [{"name": "time", "state": "ready", "tools": 2}]},
    {
        "agent": "writer",
        "mcp": [
            {"name": "time", "state": "lost", "tools": 2, "why": "it ended with exit code 1: \x1b[31mbad"},
            {"name": "docs", "state": "starting", "tools": 0},
        ],
    },
    {"agent": "planner"},  # of a release that says nothing of them
]


def test_each_server_is_told_as_each_agent_finds_it() -> None:
    assert mcp.states(CARDS) == {
        "time": {"chatter": "2 tools", "writer": "lost: it ended with exit code 1: bad"},
        "docs": {"writer": "starting"},
    }


def test_only_what_is_lost_is_worth_a_line_of_status() -> None:
    [told] = mcp.lost(CARDS)
    assert told.startswith("the MCP server time is lost to writer: it ended with exit code 1")
    assert "\x1b" not in told
