"""The folder of an agent that is a row: made from a template, under git, in the data folder."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from shared.errors import ToolError
from shared.guard.files import atomic
from shared.guard.git.commands import Git
from shared.guard.sandbox.sandbox import Sandbox

NAME = "workspace"  # how its file tools call it

_README = """# {name}

{about}

This is the workspace of the agent {name}: its file tools and commands work here, and nowhere else.
"""
_TEMPLATE = {
    "README.md": _README,
    ".gitignore": "*.log\n.env\n__pycache__/\nnode_modules/\n",
    "docs/.keep": "",
}


def root(home: Path, agent: str) -> Path:
    """Everything that an agent has on this home."""
    return home / "agents" / agent


def folder(home: Path, agent: str) -> Path:
    """Where its files are."""
    return root(home, agent) / NAME


async def make(home: Path, sandbox: Sandbox, agent: str, about: str) -> Path:
    """The workspace of an agent, with a first commit; one that is there already stays as it is."""
    place = folder(home, agent)
    git = Git(place, sandbox)
    if git.is_repo() and await git.head():
        return place
    await asyncio.to_thread(_fill, place, agent, about)
    if not git.is_repo():
        await git.init()
    await git.commit_all(f"The workspace of {agent}", agent)
    return place


def _fill(place: Path, agent: str, about: str) -> None:
    template = home_template(place)
    if template is not None:
        shutil.copytree(
            template, place, dirs_exist_ok=True, symlinks=True, ignore=shutil.ignore_patterns(".git")
        )
        return
    for name, text in _TEMPLATE.items():
        file = place / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            atomic.put(file, text.format(name=agent, about=about) if name == "README.md" else text)


def home_template(place: Path) -> Path | None:
    """A template of the owner's own beside the agents: `<home>/agents/.template`."""
    found = place.parents[1] / ".template"
    return found if found.is_dir() else None


def need_ours(home: Path, agent: str) -> Path:
    """The folder of an agent that may be removed with it; ToolError where a person made it."""
    place = root(home, agent)
    if (place / "profile.toml").exists():
        raise ToolError(
            f"{place} is a folder of a person's own agent", "it holds a profile.toml", "remove it by hand"
        )
    return place


async def remove(home: Path, agent: str) -> bool:
    """Remove everything that an agent has on this home; whether there was something."""
    place = need_ours(home, agent)
    if not place.is_dir():
        return False
    await asyncio.to_thread(shutil.rmtree, place)
    return True


async def move(home: Path, old: str, new: str) -> None:
    """Take an agent's folder along when it is renamed; one that is there already stays what it is."""
    source, target = root(home, old), root(home, new)
    if source.is_dir() and not target.exists() and not (source / "profile.toml").exists():
        await asyncio.to_thread(source.rename, target)
