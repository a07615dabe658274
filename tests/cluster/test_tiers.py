"""Tools on demand: the model is shown few at first, loads more, and the provider's prefix stays what it was."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.messages_api import MessagesApi
from tests.support.processes import Site
from tests.support.wire import Wire

LOAD = {"tools": [{"name": "load_tools", "input": {"category": "git"}}]}
ONE = {"tools": [{"name": "load_tools", "input": {"category": "list_projects"}}]}
UNLOADED = {"tools": [{"name": "list_projects", "input": {}}]}
RULES: list[dict[str, Any]] = [
    {"user": "load", "steps": [LOAD, ONE, LOAD, {"text": "{{result.message}}"}]},
    {"user": "use", "steps": [UNLOADED, {"text": "{{result}}"}]},
    {"steps": [{"text": "You said: {{user}}"}]},
]


@pytest.fixture(scope="module", autouse=True)
def chatter(place: Site) -> None:
    """Chatter, whose tools are on demand."""
    place.up("chatter")


def tools(body: dict[str, Any]) -> list[str]:
    return [json.dumps(tool, sort_keys=True) for tool in body["tools"]]


def names(body: dict[str, Any]) -> set[str]:
    return {tool["name"] for tool in body["tools"]}


def bodies(api: MessagesApi, wire: Wire, words: str, **more: Any) -> list[dict[str, Any]]:
    start = len(api.requests)
    assert wire.ask(words, **more)["status"] == "complete"
    return api.requests[start:]


def test_what_was_loaded_is_appended_and_nothing_before_it_changes(wire: Wire, api: MessagesApi) -> None:
    first, second, third, fourth = bodies(api, wire, "load")
    assert {"consult_planner", "create_task", "load_tools"} <= names(first)
    assert "git_push" not in names(first) and "git_push" in names(second)
    for earlier, later in ((first, second), (second, third), (third, fourth)):
        assert tools(later)[: len(tools(earlier))] == tools(earlier)
        assert later["system"] == earlier["system"]
        assert later["messages"][: len(earlier["messages"])] != []
    assert "list_projects" in names(third) and names(third) == names(fourth)
    (again,) = bodies(api, wire, "hello")
    assert tools(again) == tools(fourth), "to leave a tool out would void what the provider has cached"
    (other,) = bodies(api, wire, "hello", session_id="another")
    assert tools(other) == tools(first), "another conversation begins with few"


def test_a_tool_runs_whether_it_was_loaded_or_not(wire: Wire) -> None:
    assert "projects" in wire.ask("use")["content"]


def test_the_prompt_names_what_can_be_loaded(wire: Wire, api: MessagesApi) -> None:
    (body,) = bodies(api, wire, "hello")
    assert "git_{log,diff,changed_files,commit,pull,push,create_branch,merge,create_pr}" in json.dumps(
        body["system"]
    )


def test_the_first_request_is_little_more_than_a_quarter_of_the_same_with_all_tools(
    wire: Wire, api: MessagesApi, place: Site
) -> None:
    (few,) = bodies(api, wire, "hello", session_id="first")
    place.workers[-1].drain()
    place.up("chatter", TOOL_MODE="full")
    (every,) = bodies(api, wire, "hello", session_id="other")
    assert len(few["messages"]) == len(every["messages"]) == 1
    assert len(every["tools"]) > 80 and "load_tools" in names(every)
    assert len(json.dumps(few)) <= 0.27 * len(json.dumps(every))
