"""`doctor`: what is wrong, and the remedy."""

from __future__ import annotations

import contextlib
from dataclasses import asdict
from pathlib import Path

from gateways.cli import screen
from shared.client import Client
from shared.client.doctor import examine as examination
from shared.client.local.typed import runnable
from shared.settings import Settings

_MARKS = {"ok": screen.good("ok  "), "warn": screen.warning("!   "), "fail": screen.bad("FAIL")}


async def doctor(settings: Settings, env_file: Path, as_json: bool) -> int:
    """1 where something fails, else 0."""
    found = []
    async with (
        Client(settings) as client,
        contextlib.aclosing(examination.examine(client, env_file)) as findings,
    ):
        async for finding in findings:
            found.append(finding)
            if not as_json:
                screen.out(_MARKS[finding.level], f" {finding.name:12} {finding.told}")
                if finding.fix:
                    screen.out(f"{'':17} do: {runnable(finding.fix)}")
    failed = any(finding.level == "fail" for finding in found)
    if as_json:
        screen.document("doctor", ok=not failed, findings=[asdict(finding) for finding in found])
    return 1 if failed else 0
