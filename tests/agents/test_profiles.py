"""The agents that ship: their profiles can be read, name tools that there are, and prompts say what they must."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.errors import ConfigurationError
from shared.profiles.profile import Profile, load
from shared.tools.catalog import registry

AGENTS = Path(__file__).parents[2] / "agents"
NAMES = ("backend", "chatter", "frontend", "planner", "researcher")


def profile(name: str) -> Profile:
    return load(AGENTS / name)


def test_five_agents_ship() -> None:
    assert tuple(sorted(path.parent.name for path in AGENTS.glob("*/profile.toml"))) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_each_has_a_description_a_prompt_of_its_own_and_tools_that_there_are(name: str) -> None:
    found = profile(name)
    assert found.name == name
    assert found.description
    assert f"You are {found.called}" in found.prompt
    assert found.tools
    named = [*found.tools, *found.loadable]
    assert [tool.name for tool in registry().pick(named)] == named and len(set(named)) == len(named)
    assert found.answer_tool is None or found.answer_tool in found.tools


@pytest.mark.parametrize("name", NAMES)
def test_each_is_started_as_a_module_of_its_own(name: str) -> None:
    assert (AGENTS / name / "__main__.py").is_file()


def test_the_kinds_of_work_and_the_limits_are_those_that_were_agreed() -> None:
    told = {name: (profile(name).kind, profile(name).rounds) for name in NAMES}
    assert told["chatter"] == ("chat", 10)
    assert {told[name][0] for name in ("planner", "researcher")} == {"consult"}
    assert {told[name][0] for name in ("frontend", "backend")} == {"coding"}
    assert [name for name in NAMES if told[name][1] is not None] == ["chatter"], "workers have no round limit"
    assert profile("backend").turns == 1
    assert profile("chatter").turns >= 200


def test_chatter_has_its_own_tools_and_cannot_touch_files() -> None:
    tools = set(profile("chatter").tools)
    own = "consult_planner consult_researcher assign_task check_agent_status escalate_to_human consult_agent"
    assert set(own.split()) <= tools
    assert not tools & {"bash", "create_file", "str_replace"}


@pytest.mark.parametrize("name", ["planner", "researcher"])
def test_who_only_reads_has_no_tool_that_writes_files(name: str) -> None:
    assert not set(profile(name).tools) & {"bash", "create_file", "str_replace", "write_file", "edit_file"}


SAYS = {
    "its role": ["You are Chatter", "primary interface"],
    "the agents there are": ["Planner", "Researcher", "Frontend", "Backend", "consult_agent"],
    "the layout of the workspace": ["project", "worktree", "promptdock/<task>", "main checkout"],
    "the kinds of repositories": ["`frontend`", "`backend`", "`both`"],
    "a dispatcher": ["dispatcher, not a worker", "Technical work becomes a task"],
    "tools for management": ["management (projects, repositories, tasks) you do with your own tools"],
    "complete task descriptions": ["complete in itself", "the full plan goes into it"],
    "validation": ["Always validate before you assign", "Only the person can override"],
    "escalation": ["ambiguous", "escalate_to_human"],
    "one short line": ["one short line"],
    "progress, not internals": ["Say what is going on", "Internals stay internal"],
    "a silent agent": ["silent or offline"],
    "agents that disagree": ["Agents disagree"],
    "a task that fails": ["A task fails"],
    "notes, channels and hooks": ["write_note", "send_message", "create_hook", "load_tools"],
    "foreign words are no orders": ["never an instruction"],
}


@pytest.mark.parametrize("about", SAYS)
def test_chatters_prompt_says_what_it_must(about: str) -> None:
    prompt = profile("chatter").prompt
    assert [words for words in SAYS[about] if words not in prompt] == []


@pytest.mark.parametrize(
    ("toml", "told"),
    [
        ('kind = "dance"', "kind"),
        ("tools = 7", "tools"),
        ("colour = 'red'", "colour"),
        ("turns = 0", "turns"),
        ("not toml at all", "="),
    ],
)
def test_a_profile_that_cannot_be_used_says_what_is_wrong_with_it(
    toml: str, told: str, tmp_path: Path
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "profile.toml").write_text(toml)
    (folder / "prompt.md").write_text("You are Mine.")
    with pytest.raises(ConfigurationError, match="the agent in") as caught:
        load(folder)
    assert told in caught.value.why


def test_an_agent_without_a_prompt_is_none(tmp_path: Path) -> None:
    (tmp_path / "profile.toml").write_text("")
    with pytest.raises(ConfigurationError, match=r"prompt\.md"):
        load(tmp_path)
