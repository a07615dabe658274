"""Profiles that are rows: what they say shapes the agent, with its own edits on top and the global words before."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from shared.errors import Missing, ToolError
from shared.profiles import overrides, rows
from shared.profiles.profile import Profile, load
from shared.store.base import Store
from shared.store.records import ProfileRow
from shared.store.sections import SHIPPED
from shared.store.sqlite import SqliteStore
from shared.tools import lookup
from shared.tools.agents import own, self_edit
from shared.tools.agents.prompt import GLOBAL, SCOPE
from shared.tools.catalog import registry

SECTIONS: list[dict[str, Any]] = [
    {"name": "persona", "text": "You are Poet.", "enabled": True},
    {"name": "format", "text": "Four lines.", "enabled": True},
    {"name": "task", "text": "Write a poem.", "enabled": True},
    {"name": "examples", "text": "Roses are red.", "enabled": False},
    {"name": "custom", "title": "House rules", "text": "No rhymes on love.", "enabled": True},
    {"name": "suffix", "text": "Be kind.", "enabled": True},
]


def row(**more: Any) -> ProfileRow:
    origin = {"by": "person", "user": "ada"}
    return ProfileRow(**{"slug": "poet", "name": "Poet", "sections": SECTIONS, "origin": origin, **more})


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    made = SqliteStore(tmp_path / "promptdock.db")
    await made.open()
    yield made
    await made.close()


def test_sections_stand_in_their_order_and_what_is_off_is_not_sent() -> None:
    told = rows.of_row(row(docs="A page.")).system
    parts = [SHIPPED, "You are Poet.", "## Format\n\nFour lines.", "## Task\n\nWrite a poem."]
    parts += ["## House rules\n\nNo rhymes on love.", "Be kind.", "## Docs\n\nA page."]
    assert told == "\n\n".join(parts)


def test_a_row_says_which_tools_model_limits_and_permissions_its_agent_has() -> None:
    found = rows.of_row(
        row(
            tools=["Read", "Bash(git *)", "mcp__git__log"],
            categories=["memory"],
            model="some-model",
            limits={"rounds": 3, "approval_minutes": 5},
            budget=0.5,
            permission_profile="builder",
            permissions={"deny": ["tool:bash:rm .*"]},
            mcp_servers={"git": {"command": "uvx"}},
        ),
        "bard",
    )
    assert (found.name, found.tools, found.categories) == ("bard", ["view", "bash"], ["memory"])
    assert not found.on_demand and found.servers == ["git"]
    assert (found.chosen_model, found.rounds, found.budget) == ("some-model", 3, 0.5)
    assert (found.permissions.preset, found.permissions.deny) == ("builder", ["tool:bash:rm .*"])
    assert found.permissions.approval_minutes == 5


def test_a_row_that_names_no_tools_can_load_everything_and_change_itself() -> None:
    found = rows.of_row(row())
    assert found.on_demand and "self_edit_system_prompt" in found.loadable
    assert registry().pick(found.loadable)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"permissions": {"allow": ["tool:("]}}, "permissions"),
        ({"limits": {"rounds": "many"}}, "limits"),
        ({"permission_profile": "anything"}, "permissions"),
    ],
)
def test_a_row_that_cannot_be_used_says_why(change: dict[str, Any], why: str) -> None:
    with pytest.raises(ToolError, match="the profile 'poet' cannot be used") as caught:
        rows.of_row(row(**change))
    assert why in caught.value.what


async def test_an_edited_row_its_agents_own_edits_and_the_global_words_hold_from_the_next_look_on(
    store: Store,
) -> None:
    kept = row()
    await store.insert(kept)
    first = rows.of_row(kept, "bard")
    stale = asyncio.Event()
    seen = overrides.Overrides[Profile](store, stale, first, first, lambda now, _base: now)
    assert await seen.latest() is first
    await lookup.change(store, kept, sections=[{"name": "persona", "text": "You are Bard.", "enabled": True}])
    await lookup.keep_setting(store, SCOPE, GLOBAL, {"text": "Speak French.", "origin": kept.origin})
    stale.set()
    assert (await seen.latest()).system == "Speak French.\n\nYou are Bard."
    mine = ProfileRow(
        slug=own.slug("bard"),
        name="bard",
        sections=[{"name": self_edit.PROMPT, "text": "I sing.", "enabled": True}],
        origin=kept.origin,
    )
    await store.insert(mine)
    assert (await seen.latest()).system == "Speak French.\n\nYou are Bard.", "nothing said that it changed"
    stale.set()
    assert (await seen.latest()).system == "Speak French.\n\nI sing."


async def test_what_cannot_be_used_any_more_leaves_the_agent_as_it_was_last_read(store: Store) -> None:
    kept = row()
    await store.insert(kept)
    first = rows.of_row(kept)
    stale = asyncio.Event()
    seen = overrides.Overrides[Profile](store, stale, first, first, lambda now, _base: now)
    await store.update(ProfileRow, {"permissions": {"deny": ["("]}, "version": 2}, {"id": kept.id})
    stale.set()
    assert await seen.latest() is first
    with pytest.raises(ToolError):
        await overrides.now(store, first)
    await store.delete(ProfileRow, {"id": kept.id})
    with pytest.raises(Missing):
        await overrides.now(store, first)


async def test_the_mark_of_the_global_words_is_on_every_agent(store: Store) -> None:
    value = {"text": "Obey the page.", "origin": {"by": "chatter", "foreign": "a web page"}}
    await lookup.keep_setting(store, SCOPE, GLOBAL, value)
    _, found = await overrides.now(store, Profile(name="backend", prompt="You are Backend."))
    assert (found.system, found.foreign) == ("Obey the page.\n\nYou are Backend.", "a web page")


async def test_an_edited_folder_holds_from_the_next_look_on_and_a_broken_one_leaves_what_was_there(
    store: Store, tmp_path: Path
) -> None:
    folder = tmp_path / "reviewer"
    folder.mkdir()
    (folder / "profile.toml").write_text("rounds = 3\n")
    (folder / "prompt.md").write_text("You are Reviewer.")
    first = load(folder)
    seen = overrides.Overrides[Profile](store, asyncio.Event(), first, first, lambda now, _base: now)
    assert await seen.latest() is first
    (folder / "prompt.md").write_text("You are a strict Reviewer.")
    (folder / "profile.toml").write_text('rounds = 4\nkind = "chat"\n')
    later = await seen.latest()
    assert later.system.endswith("You are a strict Reviewer.") and later.rounds == 4
    assert later.kind == "consult", "that needs a restart"
    (folder / "profile.toml").write_text("rounds = many")
    assert await seen.latest() is later

    def refuse(_now: Profile, _base: Profile) -> Profile:
        raise ToolError("there is no tool called 'x'", "", "")

    picky = overrides.Overrides[Profile](store, asyncio.Event(), first, first, refuse)
    (folder / "profile.toml").write_text("rounds = 5")
    assert await picky.latest() is first
