"""What doctor finds on this machine and on this Redis."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.settings import Settings
from shared.visitor import Visitor, doctor, look, machine


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


async def _findings(visitor: Visitor) -> dict[str, str]:
    return {finding.name: finding.fix async for finding in doctor.examine(visitor, Path(".env"))}


async def test_two_homes_with_a_sqlite_each_on_one_redis_are_found(visitor: Visitor) -> None:
    await visitor.reach()
    await visitor.presence.beat("chatter", "a", {"store": "sqlite", "home": "one"})
    await visitor.presence.beat("planner", "b", {"store": "sqlite", "home": "one"})
    assert "homes" not in await _findings(visitor)
    await visitor.presence.beat("chatter", "c", {"store": "sqlite", "home": "two"})
    assert "PROMPTDOCK_NAMESPACE" in (await _findings(visitor))["homes"]


async def test_homes_that_share_a_supabase_are_well(visitor: Visitor) -> None:
    await visitor.reach()
    for home in ("one", "two"):
        await visitor.presence.beat("chatter", home, {"store": "supabase", "home": home})
    assert look.other_homes(await visitor.presence.here()) is None
