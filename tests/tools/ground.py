"""What the tests of reading tools stand on: real repositories, and calls as the executor makes them."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from shared.store.base import Store
from shared.tools.context import Context, Root
from shared.tools.registry import Category, Registry

ENVIRONMENT = {
    "PATH": "/usr/bin:/bin:/usr/local/bin",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.invalid",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.invalid",
}


def git(path: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=path, env=ENVIRONMENT, check=True, capture_output=True, text=True, timeout=60
    )
    return done.stdout.strip()


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


def repository(path: Path, files: Mapping[str, str], kind: str = "both") -> Root:
    """A git repository with these files in one commit; its name is that of the folder."""
    path.mkdir(parents=True, exist_ok=True)
    git(path, "init", "--quiet", "--initial-branch=main")
    write(path, files)
    commit(path, "the first commit")
    return Root(path.name, path, kind, commit=git(path, "rev-parse", "HEAD"))


def commit(path: Path, message: str) -> str:
    git(path, "add", "--all")
    git(path, "commit", "--quiet", "--allow-empty", "-m", message)
    return git(path, "rev-parse", "HEAD")


def package(name: str, path: Path) -> Root:
    """The source of an installed package in a git repository of its own."""
    spec = importlib.util.find_spec(name)
    assert spec and spec.submodule_search_locations
    source = Path(next(iter(spec.submodule_search_locations)))
    shutil.copytree(source, path / name, ignore=shutil.ignore_patterns("__pycache__"))
    return repository(path, {"README.md": f"# {name}\n"}, "backend")


def context(*roots: Root, store: Store | None = None, **more: Any) -> Context:
    fields: dict[str, Any] = {"agent": "researcher", "session_id": "s", "turn_id": "t"} | more
    return Context(store=cast(Store, store), roots={root.name: root for root in roots}, **fields)


async def call(category: Category, name: str, here: Context, /, **arguments: Any) -> dict[str, Any]:
    """Run a tool as its executor does: arguments checked, and the result a JSON object."""
    tool = Registry([category]).get(name)
    result = await tool.function(here, **tool.check(arguments))
    return cast(dict[str, Any], json.loads(json.dumps(result)))
