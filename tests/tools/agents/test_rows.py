"""Agents and their profiles."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from shared.errors import ModelUnusable
from shared.store.records import Agent, ProfileRow, Task, Workspace, project_key
from shared.tools.agents import install
from tests.tools.bench import Bench


class Company:
    """The cluster as far as these tools look at it: who is here."""

    async def roster(self) -> dict[str, str]:
        return {"backend": "writes code", "frontend": "writes pages"}

    async def status(self, agent: str) -> dict[str, Any]:
        return {"agent": agent, "online": True, "status": "working", "current": ["t9"]}

    async def works_on(self, agent: str) -> frozenset[str] | None:
        return frozenset({agent, "both"})

    async def forget(self, agent: str) -> bool:
        return agent != "frontend"

    async def send(self, agent: str, payload: dict[str, Any], key: str) -> int:
        return 0


HERE = {"cluster": Company()}


class Models:
    """Providers that have one model."""

    demo = False

    async def need(self, model: str) -> None:
        if model != "claude-sonnet-5-5":
            raise ModelUnusable(f"there is no model {model!r}", "the nearest is claude-sonnet-5-5", "")

    def warmest(self, model: str) -> float:
        return 1.0


async def test_an_agent_is_registered_once_and_listed(bench: Bench) -> None:
    await bench.linked()
    made = await bench.twice("create_agent", name="Code Smith", repo_id="shop")
    assert (made["created"], made["repo_id"]) == ("code-smith", "shop")
    assert (await bench.twice("create_agent"))["created"] == "claude-1"
    assert (await bench.ok("create_agent"))["created"] == "claude-2"
    told = (await bench.ok("list_agents"))["agents"]
    assert [(row["id"], row["type"], row["state"]) for row in told] == [
        ("claude-1", "claude", "offline"),
        ("claude-2", "claude", "offline"),
        ("code-smith", "claude", "offline"),
    ]
    assert "already" in await bench.no("create_agent", name="code smith")
    for name in ("***", "system", "größe"):
        assert "no name for an agent" in await bench.no("create_agent", name=name)
    assert "no repository" in await bench.no("create_agent", repo_id="nothing")


async def test_a_profile_keeps_no_temperature_that_its_model_would_refuse_in_each_turn(bench: Bench) -> None:
    here: dict[str, Any] = {"models": Models()}
    named = {"id": "wild", "name": "Wild", "model": "claude-sonnet-5-5"}
    refused = await bench.no("create_profile", here=here, temperature=1.5, **named)
    assert "its provider takes 0 to 1" in refused
    assert "error" not in await bench.run("create_profile", here=here, temperature=0.5, **named)
    refused = await bench.no("edit_profile", here=here, profile_id="wild", temperature=1.5)
    assert "its provider takes 0 to 1" in refused
    assert "error" not in await bench.run("edit_profile", here=here, profile_id="wild", temperature=1)


async def test_a_model_that_nobody_has_is_refused_where_it_is_set(bench: Bench) -> None:
    here: dict[str, Any] = {"models": Models()}
    for tool, named in (
        ("create_agent", {"name": "smith"}),
        ("create_profile", {"id": "careful", "name": "Careful"}),
    ):
        refused = await bench.no(tool, here=here, model="gpt-nonsense", **named)
        assert "no model 'gpt-nonsense'" in refused and "the nearest is claude-sonnet-5-5" in refused
        assert "error" not in await bench.run(tool, here=here, model="claude-sonnet-5-5", **named)
    for tool, named in (
        ("configure_agent", {"agent_id": "smith"}),
        ("edit_profile", {"profile_id": "careful"}),
    ):
        assert "no model 'm'" in await bench.no(tool, here=here, model="claude-sonnet-5-5,m", **named)


async def test_who_is_here_is_told_by_presence(bench: Bench) -> None:
    await bench.ok("create_agent", name="smith")
    told = await bench.run("list_agents", here=HERE)
    assert [(row["name"], row["state"], row["current_task"]) for row in told["agents"]] == [
        ("backend", "working", "t9"),
        ("frontend", "working", "t9"),
        ("smith", "working", "t9"),
    ]
    assert "already" in (await bench.run("create_agent", name="backend", here=HERE))["error"]


async def test_a_paused_agent_is_given_no_task_until_it_is_resumed(bench: Bench) -> None:
    await bench.run("pause_agent", agent_id="backend", here=HERE)
    answered = {**HERE, "force": True}
    task = {"agent": "backend", "command_file": "# Do it"}
    assert "takes no new tasks" in (await bench.run("assign_task", here=answered, **task))["error"]
    assert (await bench.run("list_agents", here=HERE))["agents"][0]["state"] == "paused"
    assert (await bench.run("resume_agent", agent_id="backend", here=HERE))["resumed"] == "backend"
    assert "takes no new" not in str(await bench.run("assign_task", here=answered, **task))
    assert "no agent called" in await bench.no("pause_agent", agent_id="nobody")


class Nobody(Company):
    """Nobody is here."""

    async def works_on(self, agent: str) -> frozenset[str] | None:
        return None

    async def status(self, agent: str) -> dict[str, Any]:
        return {"agent": agent, "online": False, "status": "offline"}


async def test_an_agent_that_is_a_row_takes_tasks_by_its_profile_also_while_it_is_away(bench: Bench) -> None:
    await bench.linked()
    away = {"cluster": Nobody(), "force": True}
    await bench.ok("create_agent", name="smith", kind="coding", repo_id="shop")
    await bench.ok("create_agent", name="sage", kind="consult")
    given = await bench.run("assign_task", here=away, agent="smith", command_file="# Do it", repo="shop")
    assert given["status"] == "assigned" and "offline" in given["warning"]
    [task] = await bench.store.select(Task, {"slug": given["task_id"]})
    assert (task.assignee, task.status) == ("smith", "ASSIGNED")
    refused = await bench.run("assign_task", here=away, agent="sage", command_file="# Do it", repo="shop")
    assert refused["error"] == "sage takes no tasks"
    unknown = await bench.run("assign_task", here=away, agent="ghost", command_file="# Do it", repo="shop")
    assert "no agent called" in unknown["error"]


async def test_an_agent_is_renamed_and_deleted_when_it_works_on_nothing(bench: Bench) -> None:
    await bench.ok("create_agent", name="smith")
    assert (await bench.ok("edit_agent", agent_id="smith", name="Jones"))["updated"] == "jones"
    await bench.ok("create_agent", name="smith")
    assert "already" in await bench.no("edit_agent", agent_id="jones", name="smith")
    assert "at least one" in await bench.no("edit_agent", agent_id="jones")
    made = (await bench.ok("create_task", title="x"))["created"]
    from shared.store.records import Task

    await bench.store.update(Task, {"assignee": "jones", "status": "IN_PROGRESS"}, {"slug": made})
    assert made in await bench.no("delete_agent", agent_id="jones")
    await bench.store.update(Task, {"status": "COMPLETED"}, {"slug": made})
    space = Workspace(project_id=project_key("default"), name="one", path="/x", agent="jones")
    await bench.store.insert(space)
    assert (await bench.ok("delete_agent", agent_id="jones"))["workspaces_freed"] == ["one"]
    assert [row.name for row in await bench.store.select(Agent)] == ["smith"]


PROFILE: dict[str, Any] = {
    "id": "Careful Coder",
    "name": "Careful",
    "permission_mode": "acceptEdits",
    "allowed_tools": ["read_file", "Bash(git *)", "mcp__git__log"],
    "mcp_servers": {"git": {"command": "uvx", "args": ["mcp-server-git"], "env": {"TOKEN": "s3cret"}}},
    "system_prompt_suffix": "Be careful.",
}


async def test_a_profile_is_made_shown_edited_and_deleted(bench: Bench) -> None:
    made = await bench.twice("create_profile", **PROFILE)
    assert (made["created"], "warning" in made) == ("careful-coder", False)
    told = await bench.ok("get_profile", profile_id="careful-coder")
    assert (told["permission_mode"], told["system_prompt_suffix"]) == ("builder", "Be careful.")
    assert told["mcp_servers"]["git"]["env"] == {"TOKEN": "…"}
    changed = await bench.ok(
        "edit_profile",
        profile_id="careful-coder",
        system_prompt_suffix="",
        allowed_tools=["WebFetch", "grep"],
    )
    assert changed["fields"] == ["allowed_tools", "system_prompt_suffix"]
    assert "only Claude Code has these" in changed["warning"] and "WebFetch" in changed["warning"]
    assert (await bench.ok("get_profile", profile_id="careful-coder"))["system_prompt_suffix"] is None
    assert (await bench.ok("list_profiles"))["profiles"][0]["permission_mode"] == "builder"
    task = (await bench.ok("create_task", title="x", profile_id="careful-coder"))["created"]
    assert task in await bench.no("delete_profile", profile_id="careful-coder")
    await bench.ok("edit_task", task_id=task, profile_id=None)
    assert (await bench.ok("delete_profile", profile_id="careful-coder"))["deleted"] == "careful-coder"
    assert "no profile" in await bench.no("get_profile", profile_id="careful-coder")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"id": "***"}, "no id"),
        ({"permission_mode": "bypassPermissions"}, "no permission mode"),
        ({"mcp_servers": {"x": {"command": "a", "url": "b"}}}, "not both"),
        ({"mcp_servers": {"../x": {"command": "a"}}}, "plain name"),
        ({"mcp_servers": {"x": {"command": "a", "args": "b c"}}}, "list of words"),
        ({"allowed_tools": ["read_fil"]}, "no tool is called 'read_fil' | the nearest: read_file"),
        ({"categories": ["gitt"]}, "no category is called 'gitt' | the nearest: git"),
        ({"permissions": {"allow": ["tool:bash:("]}}, "tool:bash:("),
        ({"permissions": {"permit": ["x"]}}, "permit"),
        ({"limits": {"rounds": 0}}, "rounds"),
        ({"temperature": -2}, "temperature"),
        ({"sections": [{"name": "mood", "text": "x"}]}, "name"),
    ],
)
async def test_a_profile_that_makes_no_sense_is_refused(
    bench: Bench, change: dict[str, Any], why: str
) -> None:
    assert why in await bench.no("create_profile", **{**PROFILE, **change})
    assert await bench.store.count(ProfileRow) == 0


async def test_a_profile_travels_as_yaml_without_secrets(bench: Bench) -> None:
    await bench.ok("create_profile", **PROFILE)
    text = (await bench.ok("export_profile", profile_id="careful-coder"))["yaml"]
    assert "s3cret" not in text
    assert "already" in await bench.no("import_profile", source=text)
    told = await bench.twice("import_profile", source=text, id="copy", name="Copy")
    assert (told["imported"], told["name"], told["overwritten"]) == ("copy", "Copy", False)
    one, two = [await bench.ok("get_profile", profile_id=id) for id in ("careful-coder", "copy")]
    assert {**two, "id": one["id"], "name": one["name"]} == one
    again = await bench.ok("import_profile", source="id: copy\nname: Third\n", overwrite=True)
    assert (again["overwritten"], (await bench.ok("get_profile", profile_id="copy"))["allowed_tools"]) == (
        True,
        [],
    )


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("- just\n- a list", "no mapping"),
        ("name: [", "no YAML"),
        ("name: !!python/object/apply:os.system ['touch /tmp/x']", "no YAML"),
        ("a: &a [1]\nb: *a", "anchors"),
        ("name: x\npassword: y", "unknown fields"),
        ("name: x\ninstall: {pip: ['--index-url=http://evil', 'x']}", "manifest"),
        ("name: x\ninstall: {npm: ['git+ssh://evil/x']}", "manifest"),
        ("https://evil.example/profile.yaml", "no gist"),
        ("https://gist.github.com.evil.example/ada/0123456789abcdef", "no gist"),
        ("file:///etc/passwd", "no gist"),
    ],
)
async def test_a_profile_from_elsewhere_is_not_trusted(bench: Bench, source: str, why: str) -> None:
    assert why in await bench.no("import_profile", source=source)


def _program(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(stat.S_IRWXU)


async def test_what_a_profile_needs_is_checked_and_installed_into_its_own_folder(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs = "{npm: ['@x/tool@1.2'], pip: [pydantic], commands: [no-such-command]}"
    await bench.ok("import_profile", source=f"name: Tools\ninstall: {needs}")
    told = await bench.ok("check_profile", profile_id="tools")
    assert (told["valid"], told["missing"]) == (
        False,
        {"npm": ["@x/tool@1.2"], "commands": ["no-such-command"]},
    )
    # What stands in for npm makes what it would have made, and keeps its arguments.
    made = 'mkdir -p node_modules/@x/tool && echo "{}" > node_modules/@x/tool/package.json'
    _program(tmp_path / "bin", "npm", f'echo "$@" > words\n{made}')
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    told = await bench.ok("install_profile", profile_id="tools")
    assert (told["installed"], told["missing"]) == (["@x/tool@1.2"], {"commands": ["no-such-command"]})
    assert "--ignore-scripts" in (bench.home / "profiles" / "tools" / "words").read_text()
    assert (await bench.twice("install_profile", profile_id="tools"))["installed"] == []
    await bench.ok("import_profile", source="name: Bad\ninstall: {npm: [broken]}")
    _program(tmp_path / "bin", "npm", "echo there is no such package >&2; exit 1")
    assert "there is no such package" in await bench.no("install_profile", profile_id="bad")


def test_a_manifest_takes_plain_names_alone() -> None:
    assert install.manifest({"pip": ["a[b]==1.2"], "npm": ["@a/b@^1.0"], "commands": ["git"]})


async def test_the_tools_that_a_profile_may_name_are_listed(bench: Bench) -> None:
    told = await bench.ok("list_available_tools")
    assert "run_command" in told["tools"]["files"]
    assert "Bash" in {tool["name"] for tool in told["claude_code_tools"]}
    assert {server["name"] for server in told["mcp_servers"]} >= {"git", "filesystem"}


async def test_an_assigned_task_belongs_to_the_person_for_whom_an_agent_asks(bench: Bench) -> None:
    """Its money is theirs, its questions go to them, and its outcome is told in their conversation."""
    await bench.linked()
    task = {"agent": "backend", "command_file": "# Do it", "repo": "shop"}
    for behalf, owner in ((("bob", "talk-of-bob"), ("bob", "talk-of-bob")), (("", ""), ("ada", "talk"))):
        here = {**HERE, "force": True, "on_behalf": behalf}
        told = await bench.run("assign_task", here=here, **task)
        (row,) = await bench.store.select(Task, {"slug": told["task_id"]})
        assert (row.user_id, row.session_id) == owner


async def test_an_agent_that_only_ran_is_taken_off_the_roster_unless_it_runs(bench: Bench) -> None:
    told = await bench.run("delete_agent", agent_id="backend", here=HERE)
    assert told == {"deleted": "backend", "workspaces_freed": []}
    assert "it runs" in (await bench.run("delete_agent", agent_id="frontend", here=HERE))["why"]
    assert "no agent called" in (await bench.run("delete_agent", agent_id="nobody", here=HERE))["error"]
