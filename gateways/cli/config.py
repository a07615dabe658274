"""`config`: the settings in force."""

from __future__ import annotations

from pathlib import Path

from gateways.cli import screen
from shared.settings import Settings
from shared.visitor.facts import facts


async def show(settings: Settings, env_file: Path, as_json: bool) -> None:
    """Each with where it comes from; secrets only as set."""
    rows = facts(settings, env_file)
    if as_json:
        screen.document("config", settings=rows)
        return
    screen.table(
        [(r["name"], r["source"], "" if r["value"] in (None, []) else r["value"]) for r in rows],
        ("name", "from", "value"),
    )
