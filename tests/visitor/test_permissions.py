"""Permission profiles by name, and what they would have said of what happened."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from shared.errors import ConfigurationError, UsageError
from shared.settings import Settings
from shared.store.records import Audit, Profile
from shared.store.sqlite import SqliteStore
from shared.visitor import Visitor, permissions

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
    async with Visitor(settings) as visitor:
        locked = await permissions.named(visitor, "locked")
        began = time.process_time()  # of ours alone: others may have the machine
        told = await permissions.simulate(visitor, locked)
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
    await store.insert(Profile(slug="careful", name="Careful", permissions={"deny": ["tool:bash:.*"]}))
    await store.close()
    async with Visitor(settings) as visitor:
        found = {one["name"]: one["source"] for one in await permissions.listing(visitor)}
        assert {
            "standard": "preset",
            "planner": "agent",
            "tester": "agent",
            "careful": "profile",
        }.items() <= found.items()
        tester = await permissions.named(visitor, "tester")
        assert tester.policy.decide("bash", "coding", ("make test",)).vote == "allow"
        assert "create_file" in permissions.shown(tester)["tools"]["deny"]
        careful = await permissions.named(visitor, "careful")
        assert "bash" in permissions.shown(careful)["tools"]["deny"]
        assert "create_task" in permissions.shown(careful)["tools"]["allow"]
        with pytest.raises(UsageError):
            await permissions.named(visitor, "nobody")


async def test_a_profile_that_cannot_be_read_is_said_with_its_file(settings: Settings) -> None:
    folder = settings.home / "agents" / "broken"
    folder.mkdir(parents=True)
    (folder / "profile.toml").write_text('permissions = { allow = ["tool:("] }\n')
    async with Visitor(settings) as visitor:
        with pytest.raises(ConfigurationError, match="broken"):
            await permissions.named(visitor, "broken")
