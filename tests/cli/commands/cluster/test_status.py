"""Whether an agent is here, as a script asks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gateways.cli import screen
from gateways.cli.commands.cluster import status
from shared.client.views import status as look
from shared.settings import Settings


@pytest.mark.parametrize(
    ("unannounced", "code", "told"),
    [([], 1, "planner is not here"), (["planner"], 0, "served by a program that does not announce itself")],
)
async def test_an_agent_in_whose_place_a_program_listens_is_there(
    unannounced: list[str],
    code: int,
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    screen.begin([])

    async def looked(*_: object) -> dict[str, Any]:
        return {"agents": [], "offline": ["planner"], "unannounced": unannounced, "supervised": True}

    monkeypatch.setattr(look, "status", looked)
    found = await status.status(Settings(PROMPTDOCK_HOME=tmp_path), "planner", False)
    assert found == code
    assert told in capsys.readouterr().err
