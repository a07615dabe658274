"""All tools together: how many there are, how they are shown, and that none falls over what it is given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shared.tools import catalog, document
from shared.tools.categories import CORE, TIERS
from shared.tools.registry import Tool
from tests.tools.bench import Bench

COUNTS = {
    "core": 12, "git": 11, "project": 17, "agent": 17, "hooks": 6, "memory": 13, "files": 8, "system": 28,
}  # fmt: skip
OLDER = {
    "set_project_channel", "set_control_interface", "set_task_status", "add_repo", "list_repos", "create_branch",
    "commit_changes", "push_branch", "merge_branch",
}  # fmt: skip
FIRST = """
list_projects create_project pause_project resume_project edit_project delete_project set_active_project
set_project_channel set_control_interface get_project_channels get_project_for_channel list_tasks create_task
get_task edit_task stop_task restart_task delete_task approve_task skip_task get_task_result get_task_diff
get_chain_health set_task_status get_agent_error add_repo list_repos list_agents create_agent get_status
get_recent_events get_token_usage orchestrator_control restart_daemon read_file run_command search_files
git_commit git_push git_create_branch git_merge git_create_pr git_changed_files get_git_status git_log git_diff
create_branch checkout_branch commit_changes push_branch merge_branch list_notes write_note delete_note
read_note append_note compare_specs_notes create_hook list_hooks edit_hook delete_hook list_hook_runs fire_hook
""".split()  # noqa: SIM905 - a list of sixty quoted words reads worse
HOSTILE = {
    "a path that leads out": "../../../../etc/passwd",
    "an option": "--output=/tmp/promptdock-x",
    "shell and SQL": "'; drop table tasks; -- $(touch /tmp/promptdock-x)",
    "a NUL": "nul\0name",
    "half a character": "half \ud800 character",
    "nothing": "",
    "much": "y" * 5000,
    "more than a line": "{{variable}}\u202egnp.exe\nb",
}
HOOK: dict[str, Any] = {
    "project_id": "default",
    "name": "nightly",
    "trigger": {"type": "cron", "cron": "0 3 * * *"},
    "prompt_template": "Look at {{step_0}}",
}

registry = catalog.registry()


@pytest.mark.parametrize(("category", "count"), COUNTS.items())
def test_a_category_has_as_many_tools_as_it_should(category: str, count: int) -> None:
    assert len(registry.category(category)) == count
    assert set(COUNTS) == {CORE, *TIERS}


def test_the_older_names_run_but_stand_in_no_category() -> None:
    assert {tool.name for tool in registry if tool.older} == OLDER
    shown = {tool.name for name in COUNTS for tool in registry.category(name)}
    assert not shown & OLDER


def test_the_first_sixty_three_names_are_all_there() -> None:
    assert len(set(FIRST)) == 63
    assert [name for name in FIRST if name not in registry] == []


def test_every_tool_says_what_it_does_and_takes_an_object() -> None:
    for tool in registry:
        assert tool.description and tool.description[0].isupper(), tool.name
        assert tool.schema["type"] == "object" and tool.schema["additionalProperties"] is False
        assert "$ref" not in json.dumps(tool.schema) or "$defs" in tool.schema


def test_the_page_of_the_tools_is_up_to_date() -> None:
    written = Path(__file__).parents[2] / "docs" / "tools.md"
    assert written.read_text(encoding="utf-8") == document.render(registry), "run: make docs"


def _arguments(tool: Tool, text: str) -> dict[str, Any]:
    """Arguments of the right types, in which every text is this one."""
    made: dict[str, Any] = {}
    for name, field in tool.schema["properties"].items():
        kind = field.get("type")
        kinds = {*(kind if isinstance(kind, list) else [kind])}
        if "enum" in field:
            made[name] = field["enum"][0]
        elif "string" in kinds:
            made[name] = text
        elif "object" in kinds:
            made[name] = {text: text}
        elif "array" in kinds and field.get("items", {}).get("type") == "string":
            made[name] = [text]
        elif name in tool.schema.get("required", ()):
            made[name] = [{text: text}] if "array" in kinds else 1
    return made


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
async def test_no_tool_falls_over_hostile_text(bench: Bench, text: str) -> None:
    path = await bench.linked()
    there = {
        "task_id": (await bench.ok("create_task", title="a"))["created"],
        "depends_on": (await bench.ok("create_task", title="b"))["created"],
        "agent_id": (await bench.ok("create_agent", name="smith"))["created"],
        "profile_id": (await bench.ok("create_profile", id="careful", name="Careful"))["created"],
        "hook_id": (await bench.ok("create_hook", **HOOK))["created"],
        "project_id": "default",
        "workspace": "shop",
        "path": f"shop/{text}",
        "working_dir": "shop",
    }
    outside = _files(path.parent.parent)
    fallen = []
    for tool in registry:
        if tool.name in ("run_command", "bash"):
            continue  # what these run is hostile by its nature: the tests of the sandbox are for that
        arguments = {name: there.get(name, value) for name, value in _arguments(tool, text).items()}
        result = await bench.run(tool.name, **arguments)
        if result.get("error") == f"{tool.name} failed":
            fallen.append((tool.name, result["why"]))
    assert fallen == []
    inside = (path, bench.home, path.parent.parent / "remotes")
    made = _files(path.parent.parent) - outside
    assert [file for file in made if not any(map(file.is_relative_to, inside))] == []
    assert _files(Path("/tmp"), "promptdock-x") == set()


def _files(folder: Path, pattern: str = "**/*") -> set[Path]:
    return {file for file in folder.glob(pattern) if not file.name.startswith("store.db")}


async def test_every_tool_names_its_action_whatever_it_is_given() -> None:
    for tool in registry:
        for arguments in ({}, _arguments(tool, "../x"), dict.fromkeys(tool.schema["properties"])):
            if tool.category != "coding":
                assert isinstance(tool.detail(arguments), str), tool.name


@pytest.mark.parametrize("arguments", [None, [], "text", 7, {"no_such_argument": 1}])
async def test_wrong_arguments_are_refused_in_words_by_every_tool(bench: Bench, arguments: Any) -> None:
    for tool in registry:
        told = await bench.handler.execute(tool.name, arguments, bench.context(), "t1.1")
        assert "cannot take these arguments" in told["error"], tool.name


async def test_an_unknown_tool_is_an_error_and_not_an_exception(bench: Bench) -> None:
    assert "no tool called 'make_coffee'" in (await bench.run("make_coffee"))["error"]
