"""What doctor finds on this machine and on this Redis."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

import pytest

from shared.client import Client
from shared.client.doctor import examine, machine
from shared.client.findings import Finding
from shared.client.views import status
from shared.settings import Settings


@pytest.mark.parametrize(
    ("full", "scarce", "level"), [(0, 0, "ok"), (0, 1 << 62, "warn"), (1 << 62, 1 << 62, "fail")]
)
def test_a_disk_without_room_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: int, scarce: int, level: str
) -> None:
    monkeypatch.setattr(machine, "_FULL", full)
    monkeypatch.setattr(machine, "_SCARCE", scarce)
    found = machine.disk(Settings(PROMPTDOCK_HOME=tmp_path / "not" / "there" / "yet"))
    assert found.level == level
    assert ("make room" in found.fix) == (level != "ok")


async def _findings(client: Client) -> dict[str, str]:
    return {finding.name: finding.fix async for finding in examine.examine(client, Path(".env"))}


async def test_two_homes_with_a_sqlite_each_on_one_redis_are_found(client: Client) -> None:
    await client.reach()
    await client.presence.beat("chatter", "a", {"store": "sqlite", "home": "one"})
    await client.presence.beat("planner", "b", {"store": "sqlite", "home": "one"})
    assert "homes" not in await _findings(client)
    await client.presence.beat("chatter", "c", {"store": "sqlite", "home": "two"})
    assert "PROMPTDOCK_NAMESPACE" in (await _findings(client))["homes"]


async def test_homes_that_share_a_supabase_are_well(client: Client) -> None:
    await client.reach()
    for home in ("one", "two"):
        await client.presence.beat("chatter", home, {"store": "supabase", "home": home})
    assert status.other_homes(await client.presence.here()) is None


def _named(found: Iterable[Finding]) -> dict[str, Finding]:
    return {finding.name: finding for finding in found}


def test_a_misspelt_setting_is_found_where_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(PROMPTDOCK_HOME=tmp_path)
    assert list(machine.written(settings)) == []
    monkeypatch.setenv("ANTROPIC_API_KEY", "x")
    monkeypatch.setenv("REVIEWER_MODEL", "x")
    (found,) = machine.written(settings)
    assert "ANTROPIC_API_KEY in the environment" in found.told and "ANTHROPIC_API_KEY" in found.fix
    monkeypatch.delenv("ANTROPIC_API_KEY")
    (tmp_path / ".env").write_text("REDIS_ULR=x\nwhat is this\nMY_OWN=1\n")
    line, slip = machine.written(settings)
    assert line.told == f"{tmp_path / '.env'}: line 2 is no NAME=value"
    assert f"REDIS_ULR in {tmp_path / '.env'}" in slip.told and "REDIS_URL" in slip.fix


def test_a_data_folder_that_cannot_be_is_found(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/nothing")):
        found = _named(machine.files(Settings(PROMPTDOCK_HOME=place), tmp_path / ".env"))
        assert (found["home"].level, "PROMPTDOCK_HOME" in found["home"].fix) == ("fail", True)
    fresh = _named(machine.files(Settings(PROMPTDOCK_HOME=tmp_path / "new"), tmp_path / ".env"))
    assert fresh["home"].level == "ok"


async def test_a_redis_without_a_password_fails_unless_its_network_is_private(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()

    async def resolved(host: str, port: int) -> list[tuple[int, int, int, str, tuple[str, int]]]:
        return [(0, 0, 0, "", ({"redis": "172.18.0.2"}.get(host, "8.8.8.8"), port))]

    monkeypatch.setattr(loop, "getaddrinfo", resolved)
    monkeypatch.setattr(Client, "url", "redis://redis:6379/0")
    inside = await examine._password(client)
    monkeypatch.setattr(Client, "url", "redis://redis.example.com:6379/0")
    outside = await examine._password(client)
    assert inside is not None and outside is not None
    assert (inside.level, outside.level) == ("warn", "fail")


async def test_who_should_be_here_and_is_not_is_found_and_chatter_above_all(client: Client) -> None:
    await client.reach()
    for agent in ("planner", "passer-by"):
        await client.presence.beat(agent, "a", {})
        await client.presence.leave(agent, "a")
    found = await examine._present(client)
    assert (found.level, "Chatter is not here" in found.told) == ("fail", True)
    await client.presence.beat("chatter", "a", {})
    found = await examine._present(client)
    assert (found.level, found.told) == ("warn", "not here: planner")
    assert found.fix == "python -m agents --name planner", "nothing supervises it in this home"
    await client.presence.beat("planner", "b", {})
    assert (await examine._present(client)).level == "ok"


def test_an_executor_that_is_not_installed_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    settings = Settings(PROMPTDOCK_HOME=tmp_path, PROMPTDOCK_EXECUTOR="claude-code")
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    found = machine.executor(settings)
    assert found is not None and found.level == "fail"
    assert "-m pip install" in found.fix and "[claude-code]" in found.fix
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: object())
    assert machine.executor(settings) is None
    monkeypatch.undo()
    assert machine.executor(Settings(PROMPTDOCK_HOME=tmp_path)) is None
