"""An agent changes itself: as far as the person behind its turn may grant it, and never another agent."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from shared.guard.permissions.presets import Policies, Preset
from shared.profiles.overrides import over
from shared.profiles.profile import Profile as Agent
from shared.store.records import ProfileRow
from shared.tools.agents.own import permissions, slug
from shared.tools.agents.self_edit import category
from shared.tools.context import Own
from tests.tools.bench import Bench, Result


@dataclass
class Person:
    """A bench whose agent works at a person's request; `told` are the agents whose workers read themselves anew."""

    bench: Bench
    folder: Policies = field(default_factory=lambda: Policies(preset="standard"))
    told: list[str] = field(default_factory=list)

    def own(self, person: str = "ada", approver: bool = False, **more: Any) -> Own:
        async def tell(agent: str) -> None:
            self.told.append(agent)

        return Own(self.folder, person, approver, tell, **more)

    async def run(
        self, tool: str, /, *, own: Own | None = None, who: str = "backend", **arguments: Any
    ) -> Result:
        step = str(arguments.pop("step", ""))
        here = {"agent": who, "own": own or self.own()}
        return await self.bench.run(tool, step=step, here=here, **arguments)

    async def refused(self, tool: str, /, **arguments: Any) -> str:
        told = await self.run(tool, **arguments)
        assert "error" in told and told["error"] != f"{tool} failed", told
        return f"{told['error']} | {told.get('why')}"

    async def now(self, agent: str = "backend") -> Agent:
        """The agent as its next turn finds it."""
        shipped = Agent(name=agent, prompt="As shipped.", permissions=self.folder)
        found = await self.bench.store.select(ProfileRow, {"slug": slug(agent)})
        return over(shipped, found[0]) if found else shipped


@pytest.fixture
def ada(bench: Bench) -> Person:
    return Person(bench)


async def test_prompt_docs_and_model_are_changed_with_a_version_and_what_stood_there(ada: Person) -> None:
    first = await ada.run("self_edit_system_prompt", new_prompt="Be brief.")
    assert (first["updated"], first["before"]) == ("backend", None)
    second = await ada.run("self_edit_system_prompt", new_prompt="Be brief and kind.")
    assert (second["before"], second["version"]) == ("Be brief.", first["version"] + 1)
    assert (await ada.run("self_edit_docs", path="style/python.md", content="Use ruff."))["field"]
    assert "error" not in await ada.run("self_edit_model", new_model="claude-opus-5")
    now = await ada.now()
    assert now.prompt == "Be brief and kind.\n\n# Your own docs\n\n## style/python.md\n\nUse ruff."
    assert now.chosen_model == "claude-opus-5"
    assert ada.told == ["backend"] * 4
    shown = await ada.bench.ok("get_profile", profile_id="self:backend")
    assert shown["model"] == "claude-opus-5"


async def test_what_is_set_to_nothing_is_what_was_shipped(ada: Person) -> None:
    await ada.run("self_edit_system_prompt", new_prompt="Be brief.")
    await ada.run("self_edit_docs", path="a.md", content="x")
    await ada.run("self_edit_model", new_model="claude-opus-5")
    nothing: dict[str, dict[str, Any]] = {
        "self_edit_system_prompt": {"new_prompt": ""},
        "self_edit_docs": {"path": "a.md", "content": ""},
        "self_edit_model": {"new_model": ""},
    }
    for tool, arguments in nothing.items():
        assert (await ada.run(tool, **arguments))["before"]
    now = await ada.now()
    assert (now.prompt, now.chosen_model, now.permissions) == ("As shipped.", None, ada.folder)


async def test_a_change_that_is_made_again_after_a_crash_is_one_version(ada: Person) -> None:
    first = await ada.run("self_edit_system_prompt", step="s", new_prompt="One.")
    assert await ada.run("self_edit_system_prompt", step="s", new_prompt="One.") == first
    assert (await ada.run("self_edit_system_prompt", new_prompt="Two."))["version"] == first["version"] + 1


async def test_nobody_s_request_changes_no_agent(ada: Person) -> None:
    nobody = replace(ada.own(), person="")
    for tool in category.tools:
        wrong = {"new_prompt": "x", "path": "a", "content": "x", "new_model": "m", "new_profile": "locked"}
        given = {name: wrong[name] for name in tool.schema["required"]}
        assert "a person's request only" in await ada.refused(tool.name, own=nobody, **given)
        assert "a person's request only" in await ada.bench.no(tool.name, **given), "nor outside of a turn"
        assert "only an agent can" in await ada.refused(tool.name, who="person", **given)
        assert tool.ready is not None, "nobody is asked for what cannot be"
    assert await ada.bench.store.count(ProfileRow) == 0


async def test_no_argument_names_another_agent(ada: Person) -> None:
    for name in ("agent", "agent_id", "name", "profile_id"):
        named: dict[str, Any] = {"new_profile": "locked", name: "chatter"}
        told = await ada.run("self_edit_permissions", **named)
        assert "cannot take these arguments" in told["error"]
    for path in ("../chatter.md", "/etc/passwd", "a/../../b", "a\0b", "", "x" * 300, "a//b"):
        assert "error" in await ada.run("self_edit_docs", path=path, content="x"), path
    for profile in ("self:chatter", "self:backend"):
        assert "no permission profile" in await ada.refused("self_edit_permissions", new_profile=profile)
    assert (await ada.now("chatter")).permissions == ada.folder


@pytest.mark.parametrize(
    "wanted",
    [
        {"new_profile": "open"},
        {"new_profile": "guarded"},
        {"new_profile": "builder"},
        {"new_profile": "standard", "allow": ["(?s).*"]},
        {"new_profile": "standard", "allow": [".*"]},
        {"new_profile": "locked", "allow": ["tool:bash:.*"]},
        {"new_profile": "locked", "ask": ["tool:set_task_status:.*"]},
        {"new_profile": "mine"},
    ],
)
async def test_a_person_without_the_role_makes_no_agent_more_powerful(
    ada: Person, wanted: dict[str, Any]
) -> None:
    made = {
        "id": "mine",
        "name": "Mine",
        "permission_mode": "open",
    }  # a profile of one's own that extends open
    await ada.bench.ok("create_profile", **made)
    assert "ada may not grant this" in await ada.refused("self_edit_permissions", **wanted)
    assert (await ada.now()).permissions == ada.folder
    told = await ada.run("self_edit_permissions", own=ada.own(approver=True), **wanted)
    assert told["field"] == "permissions" and (await ada.now()).permissions != ada.folder, "the role may"


async def test_less_power_needs_no_role_and_is_not_taken_back_without_one(ada: Person) -> None:
    told = await ada.run("self_edit_permissions", new_profile="locked")
    assert told["before"]["preset"] == "standard"
    for wider in ("standard", ""):
        assert "may not grant" in await ada.refused("self_edit_permissions", new_profile=wider)
    assert "may not grant" in await ada.refused("delete_profile", profile_id="self:backend")
    assert "let the agent change it" in str(
        await ada.run("edit_profile", profile_id="self:backend", permission_mode="open")
    )
    assert (await ada.now()).permissions.preset == "locked"
    assert "error" not in await ada.run(
        "delete_profile", own=ada.own(approver=True), profile_id="self:backend"
    )
    assert (await ada.now()).permissions == ada.folder


@pytest.mark.parametrize("preset", ["locked", "standard"])
async def test_a_turn_that_began_with_more_power_restores_none(ada: Person, preset: Preset) -> None:
    """Compared is with what holds now, not with what held when the turn began."""
    await ada.run("self_edit_permissions", new_profile="locked")
    began = replace(ada, folder=Policies(preset="open"))
    told = await began.run("self_edit_permissions", new_profile=preset)
    assert ("error" in told) == (preset == "standard"), told


async def test_rules_that_cannot_be_used_are_refused_and_what_was_fixed_stays(ada: Person) -> None:
    told = await ada.refused("self_edit_permissions", new_profile="locked", deny=["(?=x)"])
    assert "RE2" in told
    assert "rules need a profile" in await ada.refused("self_edit_permissions", new_profile="", deny=["x"])
    fixed = ada.own(fixed_permissions="PERMISSION_PROFILE is locked", fixed_model="BACKEND_MODEL is x")
    told = await ada.refused("self_edit_permissions", own=fixed, new_profile="locked")
    assert "PERMISSION_PROFILE" in told
    assert "BACKEND_MODEL" in await ada.refused("self_edit_model", own=fixed, new_model="m")
    assert "no name of a model" in await ada.refused("self_edit_model", new_model="a b\n")
    for number in range(3):
        told = str(await ada.run("self_edit_docs", path=f"{number}.md", content="x" * 20_000))
    assert "your docs are full" in told


async def test_rows_that_cannot_be_read_let_an_agent_read_only(ada: Person) -> None:
    row = ProfileRow(slug="self:backend", name="x", permissions={"preset": "open", "allow": ["("]})
    assert permissions(row, ada.folder) == Policies(preset="locked")


def test_a_standing_permission_for_one_change_is_none_for_another() -> None:
    tools = {tool.name: tool for tool in category.tools}
    one, other = (
        tools["self_edit_permissions"].detail({"new_profile": "standard", "allow": rules})
        for rules in (None, [".*"])
    )
    assert one == "permissions:standard" and other != one and '".*"' in other
    prompts = {tools["self_edit_system_prompt"].detail({"new_prompt": text}) for text in ("a", "b")}
    assert len(prompts) == 2
