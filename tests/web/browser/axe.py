"""axe-core, as it is published: fetched once into the user's cache; without it the tests that need it are skipped."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

_VERSION = "4.14.1"
_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
_SERIOUS = ("serious", "critical")


def source() -> str:
    """Its script; the test is skipped where it cannot be had."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "promptdock-tests"
    file = cache / f"axe-core-{_VERSION}.js"
    if not file.exists():
        cache.mkdir(parents=True, exist_ok=True)
        try:
            subprocess.run(
                [*_npm(), "pack", "--silent", f"axe-core@{_VERSION}"],
                cwd=cache,
                check=True,
                capture_output=True,
                timeout=60,
            )
            with tarfile.open(cache / f"axe-core-{_VERSION}.tgz") as packed:
                found = packed.extractfile("package/axe.min.js")
                assert found is not None
                file.write_bytes(found.read())
        except (OSError, subprocess.SubprocessError, tarfile.TarError, KeyError) as error:
            pytest.skip(f"axe-core cannot be fetched: {error}")
    return file.read_text("utf-8")


def _npm() -> list[str]:
    """The system's npm, else that of the wheel that brings Node."""
    if found := shutil.which("npm"):
        return [found]
    beside = Path(sys.executable).parent / "npm"
    scripts = Path(sysconfig.get_path("scripts")) / "npm"
    return [str(beside if beside.exists() else scripts)]


def violations(page: Page, within: str, contrast_only: bool = False) -> list[str]:
    """What axe, whose script was run here, calls serious or critical in that part of the page, in words."""
    only = (
        {"type": "rule", "values": ["color-contrast"]} if contrast_only else {"type": "tag", "values": _TAGS}
    )
    told: dict[str, Any] = page.evaluate(
        "([within, only]) => axe.run(within, {runOnly: only, resultTypes: ['violations']})", [within, only]
    )
    return [_told(one) for one in told["violations"] if one["impact"] in _SERIOUS]


def _told(one: dict[str, Any]) -> str:
    nodes = one["nodes"]
    return f"{one['id']}: {json.dumps([node['html'][:160] for node in nodes[:3]])} {nodes[0]['failureSummary'][:300]}"
