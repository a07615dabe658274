"""A restart is asked of the workers where they would obey, and refused in words where they would not."""

from __future__ import annotations

from typing import Any, cast

import pytest

from shared.bus.base import Bus
from shared.bus.keys import Names
from shared.bus.signing import Signer
from shared.errors import ToolError
from shared.settings import Settings
from shared.worker.connection import Connection
from shared.worker.runners.peers import Peers


class _Bus:
    """Notes what was published."""

    def __init__(self) -> None:
        self.said: list[bytes] = []

    async def listeners(self, _channel: str) -> int:
        return 5

    async def publish(self, _channel: str, data: bytes) -> None:
        self.said.append(data)


def _colleagues(bus: _Bus, who: dict[str, Any], approvers: str) -> Peers:
    settings = Settings.model_validate({"APPROVER_ROLES": approvers})
    connection = Connection(cast(Bus, bus), Names(), Signer("x" * 64), 12_000)
    return Peers(connection, settings, "chatter", cast(Any, None), who, 0, cast(Any, None), cast(Any, None))


@pytest.mark.parametrize(
    ("who", "approvers", "why"),
    [
        ({"user_id": "ada"}, "lead", "for the roles lead"),
        ({"user_id": "ada", "roles": ["guest"]}, "lead", "for the roles lead"),
        ({}, "", "no person"),
    ],
)
async def test_who_may_not_restart_is_told_and_nothing_is_sent(
    who: dict[str, Any], approvers: str, why: str
) -> None:
    bus = _Bus()
    with pytest.raises(ToolError) as told:
        await _colleagues(bus, who, approvers).restart("new release")
    assert why in told.value.why
    assert bus.said == []


async def test_an_approver_restarts_all_workers() -> None:
    bus = _Bus()
    assert await _colleagues(bus, {"user_id": "ada", "roles": ["lead"]}, "lead").restart("new release") == 5
    assert b"shutdown" in bus.said[0]
