"""How an MCP server of a person's is started here: with few variables, and so that nothing of it outlives us."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from shared import failpoints
from shared.errors import ToolError
from shared.guard.processes.process import environment
from shared.guard.sandbox import landlock
from shared.guard.sandbox.sandbox import Sandbox
from shared.mcp.config import PROFILES, Server
from shared.mcp.stdio import Start


def launching(home: Path, sandbox: Callable[[], Sandbox]) -> Callable[[Server], Start]:
    """A launcher for the servers of this data folder; the sandbox is looked at where one asks for it."""

    def launch(server: Server) -> Start:
        return _start(server, home, sandbox)

    return launch


def _start(server: Server, home: Path, sandbox: Callable[[], Sandbox]) -> Start:
    spec = server.spec
    folder = _folder(server, home)
    env = environment(os.path.expanduser("~"), {"TMPDIR": tempfile.gettempdir(), **spec.env})  # noqa: PTH111
    argv = [_command(spec.command, folder), *spec.args]
    if not spec.sandbox:
        return Start(_tended(argv, folder, env), env, str(folder))
    # Its own surroundings are those of the sandbox; what a file says beside them is set inside.
    inside = ["/usr/bin/env", *(f"{name}={value}" for name, value in spec.env.items()), *argv]
    wrapped = sandbox().wrap(inside if spec.env else argv, folder, True, network=spec.network, protect=())
    return Start(wrapped, environment(), str(folder))


def _folder(server: Server, home: Path) -> Path:
    """Where it starts: as the file says, else beside a file of a person's folder, else in a folder of its own."""
    if server.spec.cwd:
        folder = (server.folder / Path(server.spec.cwd).expanduser()).resolve()
        if not folder.is_dir():
            raise ToolError(f"{server.name} cannot be started", f"there is no folder {folder}", "correct cwd")
        return folder
    if server.folder not in (home, PROFILES.parent):
        return server.folder
    folder = home / "mcp" / server.name
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def _command(command: str, folder: Path) -> str:
    """A program of the search path by its name; one with a path is meant from the folder."""
    if "/" not in command:
        return command
    return str(folder / Path(command).expanduser())


def _tended(argv: list[str], folder: Path, env: dict[str, str]) -> list[str]:
    """With two small processes above it, which end all that it left running when it ends, or when we are killed."""
    if not sys.platform.startswith("linux") or failpoints.without("leftovers"):
        return argv
    plan = {
        "start": str(folder),
        "confine": False,
        "network": True,
        "read": [],
        "write": [],
        "scratch": env["HOME"],
        "fresh": False,
        "tend": True,
        "filter": "",
        "processes": 1 << 20,
        "limits": {"CORE": 0},
    }
    helper = [sys.executable, "-I", "-S", str(Path(landlock.__file__)), json.dumps(plan)]
    return [*helper, "/usr/bin/env", f"TMPDIR={env['TMPDIR']}", *argv]
