"""What a yes to a command, or to a change of the roots, is bound to; of git's tools, see gitwork and review."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from shared.guard.git import digest
from shared.tools import checkouts
from shared.tools.context import Context, Root


async def checkout(here: Context, root: Root, inner: str = "") -> dict[str, str]:
    """The folder in which a command would run, and what the checkout holds."""
    folder = root.path / inner if inner else root.path
    return {"folder": str(folder), "files": await digest.digest(root.path, checkouts.sandbox(here))}


async def repository(_here: Context, **arguments: Any) -> dict[str, str]:
    """Where a repository that is to be registered really lies: links and `..` are what they lead to."""
    facts = {}
    if url := arguments.get("url"):
        facts["address"] = str(url)
    if path := arguments.get("path"):
        facts["folder"] = await asyncio.to_thread(_real, str(path))
    return facts


def _real(path: str) -> str:
    return str(Path(path).expanduser().resolve())
