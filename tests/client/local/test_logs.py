"""Which lines of the logs are shown."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from shared.client import Client
from shared.client.local import logs
from shared.client.text.times import back

NOW = datetime.now(UTC)


@pytest.fixture
def client(tmp_path: Path) -> Client:
    """Somebody in a home whose two agents logged something each hour."""
    (tmp_path / "logs").mkdir()
    for agent in ("chatter", "planner"):
        lines = [
            {
                "timestamp": (NOW - timedelta(hours=hours)).isoformat(),
                "level": level,
                "event": f"{level} {hours}",
            }
            for hours, level in ((3, "error"), (2, "info"), (1, "warning"), (0, "debug"))
        ]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (tmp_path / "logs" / f"{agent}.log").write_text(text)
    return cast(Client, SimpleNamespace(settings=SimpleNamespace(home=tmp_path)))


async def shown(client: Client, **wanted: object) -> list[str]:
    """What they say of the Planner."""
    found = await logs.last(client, logs.Wanted("planner", **wanted))  # type: ignore[arg-type]
    return [str(line["event"]) for line in found]


async def test_lines_are_those_of_a_level_and_above(client: Client) -> None:
    assert await shown(client, level="warning") == ["error 3", "warning 1"]
    assert await shown(client, level="warning", count=1) == ["warning 1"]


async def test_lines_are_those_since_a_moment(client: Client) -> None:
    assert await shown(client, since=back("90m")) == ["warning 1", "debug 0"]
    assert len(await shown(client)) == 4
