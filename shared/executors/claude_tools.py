"""Claude Code's tools, seen as tools of ours: what one of its calls would be here, and so what permission it needs.

What is not listed is not allowed. A path is checked where it really leads, and a command is run by us, in a
sandbox of its own: what Claude Code is left to run in its place only asks for that.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared import failpoints
from shared.errors import ToolError
from shared.executors.base import TaskWork
from shared.guard.files.jail import Jail

QUESTION = "AskUserQuestion"
TOOLS = ("Read", "Write", "Edit", "Glob", "Grep", "Bash", QUESTION)
SECONDS = 590.0  # of a command, at most; it ends its own shell after 600
_USUAL = 120.0  # seconds, where no time is asked for
_TELL = 5000  # milliseconds more, in which it is told that a command took too long

_APART = re.compile(r"[{},()|]")  # between the choices of a pattern
_MENTION = re.compile(r"(?<![\w.+-])@")  # not that of an address, which it does not take for a file

Input = dict[str, Any]


@dataclass(frozen=True)
class ToolUse:
    """One of its calls, as ours; `changed` is the input that it is to be run with."""

    tool: str
    arguments: dict[str, Any]
    changed: Input


def translate(name: str, given: Input, work: TaskWork) -> ToolUse:
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
            _pattern(str(given.get("glob" if name == "Grep" else "pattern") or ""))
            changed = {**given, "path": str(folder / path)}
            return ToolUse("grep", {"pattern": str(given.get("pattern", "")), "path": path}, changed)
        case "Bash":
            return _command(given)
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


def _file(tool: str, given: Input, folder: Path, more: dict[str, Any], write: bool) -> ToolUse:
    path = _inside(str(given.get("file_path", "")), folder)
    if write:
        Jail(folder, writable=True).may_write(path)
    elif Jail(folder).exists(path):
        Jail(folder).stat(path)
    return ToolUse(tool, {"path": path, **more}, {**given, "file_path": str(folder / path)})


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


def _command(given: Input) -> ToolUse:
    text = str(given.get("command", ""))
    if "\0" in text or not text.strip():
        raise ToolError("the command was not run", "it is empty, or holds a NUL", "")
    if given.get("run_in_background"):
        raise ToolError("nothing may be left running in the background", "", "run it in the foreground")
    seconds = _seconds(given.get("timeout"))
    changed = {
        "timeout": int(seconds * 1000) + _TELL,
        "description": str(given.get("description") or "a command, confined")[:200],
    }
    return ToolUse("bash", {"command": text, "timeout": max(1, int(seconds))}, changed)


def _seconds(asked: Any) -> float:
    """How long a command may run; it is asked for in ms. ToolError for what is no such number."""
    if asked is None:
        return _USUAL
    if isinstance(asked, bool) or not isinstance(asked, int | float) or not 0 < asked < float("inf"):
        raise ToolError("the command was not run", "its timeout is no number of milliseconds", "")
    return float(min(asked, SECONDS * 1000)) / 1000


def _pattern(text: str) -> None:
    """ToolError for a pattern of names that leads out of the folder in which it is looked for."""
    if failpoints.without("claude-sandbox"):
        return
    for part in _APART.split(text):
        if part.startswith(("/", "~")) or ".." in part.replace("\\", "/").split("/"):
            why, fix = "it leads outside of the worktree", "give it relative to the worktree"
            raise ToolError(f"{text[:200]!r} cannot be used", why, fix)


def inert(words: Sequence[str]) -> str:
    """Words for it in which nothing is done before the model reads them: no file put in, no command of its own."""
    text = "\n\n".join(words)
    if failpoints.without("claude-mentions"):
        return text
    shown = _MENTION.sub(r"\\@", text)
    if shown != text:
        shown += "\n\n[Here each \\@ stands for an @ alone; write it without the backslash.]"
    return f"[message]\n{shown}" if shown.lstrip().startswith(("/", "!", "#")) else shown
