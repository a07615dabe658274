"""What a tool advises in its own words, as a person at a shell reads it."""

from __future__ import annotations

from typing import Any

import pytest

from gateways.cli.calling import _refusal
from gateways.cli.remedy import routed, typed


@pytest.mark.parametrize(
    ("advice", "arguments", "command"),
    [
        ("list_projects shows them", {"project_id": "nope"}, "promptdock project list"),
        ("list_hooks shows them", {"hook_id": "nope"}, "promptdock hooks list"),
        ("list_agents shows them", {"agent_id": "nope"}, "promptdock agents list"),
        ("list_tasks shows them", {"task_id": "nope"}, "promptdock tasks list"),
        ("see list_notes", {"project_id": "a b"}, "promptdock notes list --project 'a b'"),
        ("see list_hook_runs", {"hook_id": "red-tests"}, "promptdock hooks runs red-tests"),
        (
            "see list_workspaces",
            {"project_id": "a b"},
            'promptdock tools call list_workspaces \'{"project_id": "a b"}\'',
        ),
        ("get_task shows what it does", {"task_id": "calm-otter"}, "promptdock tasks show calm-otter"),
        ("stop it first with stop_task", {"task_id": "calm-otter"}, "promptdock tasks stop calm-otter"),
        ("begin it again with restart_task", {"task_id": "$(x)"}, "promptdock tasks restart '$(x)'"),
    ],
)
def test_a_tool_that_a_remedy_names_becomes_the_command_that_does_the_same(
    advice: str, arguments: dict[str, Any], command: str
) -> None:
    assert command in typed(advice, arguments)


def test_a_tool_that_only_the_command_knows_means_workers_of_an_earlier_release() -> None:
    told = _refusal({"error": "there is no tool called 'count_notes'", "fix": "use one that was listed"}, {})
    assert told.fix == "promptdock restart"
    assert _refusal({"error": "there is no note called 'x'", "fix": "look"}, {}).fix == "look"


@pytest.mark.parametrize("advice", ["name the project_id", "promptdock tasks list shows them", ""])
def test_advice_that_names_no_tool_stays_as_it_is(advice: str) -> None:
    assert typed(advice, {"task_id": "calm-otter"}) == advice


@pytest.mark.parametrize(
    ("noun", "command"), [("webhooks", "webhook"), ("notifications", "notify"), ("tasks", "tasks")]
)
def test_a_route_of_the_page_is_told_as_the_command_that_does_the_same(noun: str, command: str) -> None:
    assert routed(f"GET /api/{noun} lists them") == f"promptdock {command} list lists them"
