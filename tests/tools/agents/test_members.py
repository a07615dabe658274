"""Agents that are rows as tools make them: workspace under git, profile, channel; changed, renamed, destroyed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shared.store.records import Agent, Channel, ProfileRow
from shared.tools.agents import own
from tests.tools.bench import Bench
from tests.tools.ground import git


async def profile(bench: Bench, slug: str) -> dict[str, Any]:
    return await bench.ok("get_profile", profile_id=slug)


async def test_an_agent_gets_a_workspace_under_git_a_profile_and_a_channel(bench: Bench) -> None:
    made = await bench.twice(
        "create_agent", name="Bard", system_prompt="You are Bard.", description="writes verse"
    )
    assert (made["created"], made["profile_id"], made["channel"]) == ("bard", "bard", "promptdock:bard")
    folder = Path(made["workspace"])
    assert folder == bench.home / "agents" / "bard" / "workspace"
    assert git(folder, "log", "--format=%s").strip() == "The workspace of bard"
    assert (
        git(folder, "status", "--porcelain").strip() == ""
        and "writes verse" in (folder / "README.md").read_text()
    )
    told = await profile(bench, "bard")
    assert [part["text"] for part in told["sections"]] == ["You are Bard."]
    assert (told["permission_mode"], told["allowed_tools"][0]) == ("standard", "*")
    assert (await bench.ok("list_channels"))["channels"][0]["agent"] == "bard"
    assert await bench.store.count(Agent) == await bench.store.count(ProfileRow) == 1


async def test_a_template_of_the_owner_s_own_is_what_a_workspace_begins_with(bench: Bench) -> None:
    template = bench.home / "agents" / ".template"
    template.mkdir(parents=True)
    (template / "HOUSE.md").write_text("# House\n")
    folder = Path((await bench.ok("create_agent", name="bard"))["workspace"])
    assert git(folder, "ls-files").split() == ["HOUSE.md"]


async def test_one_that_takes_tasks_works_as_the_shipped_ones_do(bench: Bench) -> None:
    await bench.ok("create_agent", name="smith", kind="coding")
    (row,) = await bench.store.select(ProfileRow)
    assert (row.kind, row.permission_profile, row.limits, row.max_tokens) == (
        "coding",
        "builder",
        {"turns": 1},
        16000,
    )
    assert "bash" in row.tools and "*" not in row.tools


async def test_a_profile_that_there_is_may_serve_several_and_is_then_nobodys_to_change(bench: Bench) -> None:
    await bench.ok("create_profile", id="verse", name="Verse")
    for name in ("one", "two"):
        assert (await bench.ok("create_agent", name=name, profile_id="verse"))["profile_id"] == "verse"
    assert "two work by it too" in await bench.no("configure_agent", agent_id="one", model="m")
    assert "should say" in await bench.no("create_agent", name="three", profile_id="verse", model="m")
    await bench.ok("create_profile", id="own", name="Own")
    told = await bench.ok("configure_agent", agent_id="one", profile_id="own", model="m", budget=0.5)
    assert told["fields"] == ["profile_id", "model", "budget"]
    assert (await profile(bench, "own"))["model"] == "m"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"tools": ["read_fil"]}, "the nearest: read_file"),
        ({"permission_mode": "all"}, "no permission mode"),
        ({"channel": "poems"}, "is no channel"),
        ({"name": "host"}, "no name for an agent"),
        ({"profile_id": "nothing"}, "no profile"),
    ],
)
async def test_what_cannot_run_is_refused_and_leaves_nothing(
    bench: Bench, change: dict[str, Any], why: str
) -> None:
    assert why in await bench.no("create_agent", **{"name": "bard", **change})
    assert await bench.store.count(Agent) == 0 and not (bench.home / "agents" / "bard").exists()
    assert await bench.store.count(ProfileRow) == 0 and await bench.store.count(Channel) == 0


async def test_a_new_name_takes_channels_own_edits_and_folder_along(bench: Bench) -> None:
    await bench.ok("create_agent", name="bard")
    await bench.store.insert(ProfileRow(slug=own.slug("bard"), name="bard"))
    await bench.ok("edit_agent", agent_id="bard", name="skald")
    assert (bench.home / "agents" / "skald" / "workspace" / ".git").is_dir()
    assert not (bench.home / "agents" / "bard").exists()
    assert [row.agent for row in await bench.store.select(Channel)] == ["skald"]
    assert await bench.store.count(ProfileRow, {"slug": own.slug("skald")}) == 1
    (row,) = await bench.store.select(Agent)
    assert row.workspace == str(bench.home / "agents" / "skald" / "workspace")


async def test_one_that_was_destroyed_is_found_again_or_is_gone_with_its_files(bench: Bench) -> None:
    folder = Path((await bench.ok("create_agent", name="bard", system_prompt="You are Bard."))["workspace"])
    (folder / "poem.md").write_text("O")
    assert (await bench.twice("destroy_agent", agent_id="bard"))["files_kept"] is True
    assert "was destroyed" in await bench.no("destroy_agent", agent_id="bard")
    assert "was destroyed" in await bench.no("configure_agent", agent_id="bard", model="m")
    assert "was destroyed" in await bench.no("bind_channel", channel="x:1", agent="bard")
    again = await bench.ok("create_agent", name="bard")
    assert (folder / "poem.md").read_text() == "O" and again["profile_id"] == "bard"
    assert (await profile(bench, "bard"))["sections"][0]["text"] == "You are Bard."
    await bench.twice("destroy_agent", agent_id="bard", keep_files=False)
    assert not folder.parent.exists() and await bench.store.count(ProfileRow) == 0


async def test_a_folder_that_a_person_made_is_never_removed(bench: Bench) -> None:
    folder = Path((await bench.ok("create_agent", name="bard"))["workspace"])
    (folder.parent / "profile.toml").write_text("")
    assert "a person's own agent" in await bench.no("destroy_agent", agent_id="bard", keep_files=False)
    assert (folder / "README.md").read_text()
    (row,) = await bench.store.select(Agent)
    assert row.destroyed_at is None


async def test_a_channel_is_bound_to_one_thing_that_there_is(bench: Bench) -> None:
    for wrong, why in (
        ({}, "nothing is named"),
        ({"agent": "nobody"}, "no agent 'nobody'"),
        ({"agent": "planner", "note": "x"}, "both are named"),
        ({"project_id": "nowhere"}, "nowhere"),
        ({"note": "***"}, "no title"),
    ):
        assert why in await bench.no("bind_channel", channel="x:1", **wrong)
    assert (await bench.twice("bind_channel", channel="x:1", agent="planner"))["agent"] == "planner"
    assert (await bench.ok("bind_channel", channel="x:1", note="Ideas"))["project_id"] == "default"
    assert [row["agent"] for row in (await bench.ok("list_channels"))["channels"]] == [None]
    assert (await bench.twice("unbind_channel", channel="x:1"))["note"] == "Ideas"
    assert (await bench.ok("list_channels"))["channels"] == []
