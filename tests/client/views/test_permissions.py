"""Permission profiles by name, and what they would have said of what happened."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from shared.client import Client
from shared.client.views.permissions import profiles, replay
from shared.errors import ConfigurationError, UsageError
from shared.guard.permissions.presets import preset
from shared.settings import Settings
from shared.store.records import Audit, ProfileRow, TurnStep
from shared.store.sqlite import SqliteStore
from shared.tools import catalog

COMMANDS = ("git status", "make test && git push", "rm -rf build", "curl x | sh", "ls $(id)")


def audit(number: int) -> Audit:
    command = COMMANDS[number % len(COMMANDS)]
    return Audit(
        agent="backend",
        action=f"tool:bash:{command} {number}" if number % 2 else f"tool:create_file:src/{number}.py",
        decision="allow" if number % 3 else "ask_denied",
        detail={"category": "coding"},
    )


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(PROMPTDOCK_HOME=tmp_path / "home")


async def test_a_thousand_checks_are_replayed_within_a_second(settings: Settings) -> None:
    settings.home.mkdir()
    store = SqliteStore(settings.home / "promptdock.db")
    await store.open()
    await store.upsert([audit(number) for number in range(1000)])
    await store.close()
    async with Client(settings) as client:
        locked = await profiles.named(client, "locked")
        began = time.process_time()  # of ours alone: others may have the machine
        told = await profiles.simulate(client, locked)
        assert time.process_time() - began < 1
    assert (told["checks"], told["votes"]) == (1000, {"deny": 1000})
    assert len(told["changed"]) == 1000
    assert {one["was"] for one in told["changed"]} == {"allow", "ask_denied"}


async def test_presets_agents_and_stored_profiles_are_all_named(settings: Settings) -> None:
    folder = settings.home / "agents" / "tester"
    folder.mkdir(parents=True)
    (folder / "profile.toml").write_text(
        'permissions = { preset = "locked", allow = ["tool:bash:make test"] }\n'
    )
    store = SqliteStore(settings.home / "promptdock.db")
    await store.open()
    await store.insert(ProfileRow(slug="careful", name="Careful", permissions={"deny": ["tool:bash:.*"]}))
    await store.close()
    async with Client(settings) as client:
        found = {one["name"]: one["source"] for one in await profiles.listing(client)}
        assert {
            "standard": "preset",
            "planner": "agent",
            "tester": "agent",
            "careful": "profile",
        }.items() <= found.items()
        tester = await profiles.named(client, "tester")
        assert tester.policy.decide("bash", "coding", ("make test",)).vote == "allow"
        assert "create_file" in profiles.shown(tester)["tools"]["deny"]
        careful = await profiles.named(client, "careful")
        assert "bash" in profiles.shown(careful)["tools"]["deny"]
        assert "create_task" in profiles.shown(careful)["tools"]["allow"]
        with pytest.raises(UsageError):
            await profiles.named(client, "nobody")


async def test_a_profile_that_cannot_be_read_is_said_with_its_file(settings: Settings) -> None:
    folder = settings.home / "agents" / "broken"
    folder.mkdir(parents=True)
    (folder / "profile.toml").write_text('permissions = { allow = ["tool:("] }\n')
    async with Client(settings) as client:
        with pytest.raises(ConfigurationError, match="broken"):
            await profiles.named(client, "broken")


OLD = "tool:(list_[a-z_]+|edit_task|edit_project|add_repo):.*"  # a rule as the release before had them


def _old(tool: str, detail: str, number: int, decision: str = "allow", turn: str = "t") -> Audit:
    """A check of the release before: nothing in it says what was touched."""
    kept = {"category": "core", "call": f"{turn}.1.{number}", "rule": OLD}
    return Audit(
        agent="chatter", action=f"tool:{tool}:{detail}", decision=decision, turn_id=turn, detail=kept
    )


def _asked(turn: str, *calls: tuple[str, dict[str, object]]) -> TurnStep:
    blocks = [
        {"type": "tool_use", "id": str(n), "name": name, "input": given}
        for n, (name, given) in enumerate(calls)
    ]
    return TurnStep(turn_id=turn, agent="chatter", number=1, kind="model", detail={"content": blocks})


async def test_what_a_release_changes_is_shown_with_the_reason_in_words(settings: Settings) -> None:
    settings.home.mkdir()
    store = SqliteStore(settings.home / "promptdock.db")
    await store.open()
    calls: list[tuple[str, dict[str, object]]] = [
        ("edit_task", {"task_id": "a", "title": "t"}),
        ("edit_task", {"task_id": "a", "budget": 5}),
        ("edit_project", {"project_id": "p", "budget_limit": None}),
        ("add_repo", {"source": "link", "path": "/srv/x", "name": "x"}),
        ("list_tasks", {}),
    ]
    details = ("a", "a", "p", "x", "")
    rows = [
        _old(name, detail, n) for n, ((name, _), detail) in enumerate(zip(calls, details, strict=True), 1)
    ]
    rows.append(_old("add_repo", "mine", 1, turn="own"))  # a person's own command: no model was asked
    rows.append(_old("git_push", "push origin main", 6, "ask_approved"))
    await store.upsert([*rows, _asked("t", *calls)])
    await store.close()
    async with Client(settings) as client:
        told = await profiles.simulate(client, await profiles.named(client, "standard"))
    changed = {one["action"]: one for one in told["changed"]}
    assert {(one["action"], one["why"]) for one in told["changed"]} == {
        ("tool:edit_task:a", "it changes what may be spent"),
        ("tool:edit_project:p", "it changes what may be spent"),
        ("tool:add_repo:x", "it opens a folder of this machine"),
    }
    assert len(told["changed"]) == 3, "an edited title is not asked, and what was asked is asked again"
    one = changed["tool:add_repo:x"]
    assert (one["was"], one["was_by"], one["would_be"], one["by"]) == ("allow", OLD, "ask", "tool:@.*")
    assert one["touches"] == ["tool:@widen:root"]
    reasons = {
        (one["tool"], one["was"], one["would_be"], one["why"], one["checks"]) for one in told["reasons"]
    }
    assert ("edit_task", "allow", "ask", "it changes what may be spent", 1) in reasons and len(reasons) == 3


def test_rows_that_say_what_was_touched_are_believed() -> None:
    kept = {"category": "core", "touches": "tool:@change:records tool:@widen:money"}
    row = Audit(agent="chatter", action="tool:edit_task:x", decision="allow", detail=kept)
    (one,) = replay.replay(preset("standard"), [row], catalog.registry())["changed"]
    assert (one["would_be"], one["why"]) == ("ask", "it changes what may be spent")
    other = row.model_copy(update={"action": "tool:mcp__x__y:x/y", "detail": {"category": "mcp"}})
    (one,) = replay.replay(preset("guarded"), [other], catalog.registry())["changed"]
    assert one["why"] == "it connects to an address"
    gone = row.model_copy(update={"action": "tool:of_long_ago:x", "decision": "deny", "detail": {}})
    assert replay.replay(preset("standard"), [gone], catalog.registry())["changed"] == []
    query = row.model_copy(update={"action": "tool:named_query:open_tasks", "agent": "hooks", "detail": {}})
    assert replay.replay(preset("standard"), [query], catalog.registry())["changed"] == []
