"""Claude Code's tools, seen as tools of ours: what one of its calls would be here, and so what leave it needs.

What is not listed is not allowed. A path is checked where it really leads, and a command runs in our sandbox
whatever Claude Code makes of it: its text is wrapped before it is run.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.errors import ToolError
from shared.executors.base import Work
from shared.guard import starts
from shared.guard.jail import Jail

QUESTION = "AskUserQuestion"
TOOLS = ("Read", "Write", "Edit", "Glob", "Grep", "Bash", QUESTION)
SECONDS = 600.0  # of a command, at most

Input = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """One of its calls, as ours; `changed` is the input that it is to be run with."""

    tool: str
    arguments: dict[str, Any]
    changed: Input


def translate(name: str, given: Input, work: Work) -> Call:
    """The call of ours that this is; ToolError where there is none, or where it may not be made at all."""
    folder = work.path
    match name:
        case "Read":
            return _file("view", given, folder, {}, write=False)
        case "Write":
            return _file("create_file", given, folder, {"content": str(given.get("content", ""))}, write=True)
        case "Edit":
            texts = {"old_str": str(given.get("old_string", "")), "new_str": str(given.get("new_string", ""))}
            return _file("str_replace", given, folder, texts, write=True)
        case "Glob" | "Grep":
            path = _inside(str(given.get("path") or "."), folder)
            Jail(folder).stat(path)
            changed = {**given, "path": str(folder / path)}
            return Call("grep", {"pattern": str(given.get("pattern", "")), "path": path}, changed)
        case "Bash":
            return _command(given, work)
    raise ToolError(f"{name} cannot be used here", f"there are: {', '.join(TOOLS)}", "")


def questions(given: Input) -> list[dict[str, Any]]:
    """What it asks the person, in our form."""
    found = given.get("questions")
    asked = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    return [
        {
            "asked": str(one.get("question", "")),
            "options": [str(o.get("label", "")) for o in one.get("options") or [] if isinstance(o, dict)],
        }
        for one in asked[:4]
    ]


def _file(tool: str, given: Input, folder: Path, more: dict[str, Any], write: bool) -> Call:
    path = _inside(str(given.get("file_path", "")), folder)
    if write:
        Jail(folder, writable=True).may_write(path)
    elif Jail(folder).exists(path):
        Jail(folder).stat(path)
    return Call(tool, {"path": path, **more}, {**given, "file_path": str(folder / path)})


def _inside(path: str, folder: Path) -> str:
    """The path relative to the worktree; ToolError for one that lies elsewhere."""
    pure = Path(path)
    if not pure.is_absolute():
        return path or "."
    try:
        return str(pure.relative_to(folder))
    except ValueError:
        raise ToolError(
            f"{path[:200]!r} cannot be used", "it lies outside of the worktree", f"stay in {folder}"
        ) from None


def _command(given: Input, work: Work) -> Call:
    text = str(given.get("command", ""))
    if "\0" in text or not text.strip():
        raise ToolError("the command was not run", "it is empty, or holds a NUL", "")
    if given.get("run_in_background"):
        raise ToolError("nothing may be left running in the background", "", "run it in the foreground")
    seconds = min(float(given.get("timeout") or 120_000) / 1000, SECONDS)
    # An empty environment for the sandbox's own first process too: a command could read it in /proc.
    argv = ["/usr/bin/env", "-i", *work.sandbox.wrap(["bash", "-c", text], work.path, writable=True)]
    changed = {
        "command": _held(work.lease, shlex.join(argv)),
        "timeout": int(seconds * 1000),
        "description": str(given.get("description") or "a command, confined")[:200],
    }
    return Call("bash", {"command": text, "timeout": max(1, int(seconds))}, changed)


def _held(lease: Path, command: str) -> str:
    """The command as one that holds the lease: a successor ends it, whichever process has started it."""
    if starts.program("flock") is None:
        return command
    return f"exec 9<{shlex.quote(str(lease))} && flock -s 9 && {command}"
