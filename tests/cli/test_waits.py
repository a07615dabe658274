"""What a command says while it waits."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from gateways.cli.calling import tell_waits
from shared.client import Client
from shared.client.views import pending
from shared.errors import BusUnreachable
from tests.support.valkey import until

BEHIND, LEAVE = "message m-1: merge_task", "permission of ada: merge promptdock/otter into main"


async def test_a_command_that_waits_says_for_what_whenever_that_is_something_else(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    looks: list[str | None] = [BEHIND, BEHIND, None, "", LEAVE, LEAVE]

    async def found(_client: Client) -> list[dict[str, Any]]:
        waits = looks.pop(0)
        if waits is None:
            raise BusUnreachable("Redis does not answer")
        if not looks:
            looks.append(waits)
            done.set()
        return [{"id": "m-1", "waits_for": "a free worker"}, {"id": "m-2", "waits_for": waits}]

    done = asyncio.Event()
    monkeypatch.setattr(pending, "pending", found)
    task = asyncio.create_task(tell_waits(cast(Client, None), "m-2", quiet=0.001))
    await until(done.is_set, 10)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert capsys.readouterr().err.splitlines() == [f"… it waits for {BEHIND}", f"… it waits for {LEAVE}"]
