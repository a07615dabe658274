"""In the place of Claude Code's program: its protocol, its tools, and nothing of its care. The standard library alone.

It asks the provider what to do, asks the hook before each call, and does whatever the hook did not refuse: it opens
what a path says, and runs what a command says. So what it brings back was let through by us.
"""

from __future__ import annotations

import http.client
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

TREE = "@TREE@"  # in what the model says: the worktree, whose path it is not told
UNJUDGED = "RUN-THOUGH-NOBODY-COULD-JUDGE-IT"  # of tools that are none of ours
OFFERED = ("Read", "Write", "Edit", "Glob", "Grep", "Bash")
_MOST = 20_000  # characters of a result
_numbers = itertools.count(1)


def say(**message: Any) -> None:
    """One line to whoever started this."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def hook(event: str, **given: Any) -> dict[str, Any]:
    """What the hook says; one that fails blocks, as it was registered."""
    id = f"h{next(_numbers)}"
    request = {"subtype": "hook_callback", "callback_id": event, "input": {"hook_event_name": event, **given}}
    say(type="control_request", request_id=id, request=request)
    for line in sys.stdin:
        answer = json.loads(line)
        if answer["type"] == "control_response" and answer["response"]["request_id"] == id:
            if answer["response"]["subtype"] == "error":
                return {"permissionDecision": "deny", "permissionDecisionReason": answer["response"]["error"]}
            told: dict[str, Any] = answer["response"]["response"].get("hookSpecificOutput", {})
            return told
    raise SystemExit(1)


def ask(messages: list[Any]) -> list[Any]:
    """What the provider's model answers."""
    there = urlsplit(os.environ["ANTHROPIC_BASE_URL"])
    line = http.client.HTTPConnection(there.hostname or "", there.port, timeout=120)
    tools = [{"name": name, "input_schema": {"type": "object"}} for name in OFFERED]
    body = {"model": "claude-sonnet-5-5", "max_tokens": 1000, "messages": messages, "tools": tools}
    head = {"x-api-key": os.environ["ANTHROPIC_API_KEY"], "content-type": "application/json"}
    line.request("POST", "/v1/messages", json.dumps(body), head)
    answer = json.loads(line.getresponse().read())
    if "content" not in answer:
        raise SystemExit(f"the provider said {answer}")
    content: list[Any] = answer["content"]
    return content


def call(use: dict[str, Any]) -> dict[str, Any]:
    """One call, with the hook before and after it."""
    name, id = use["name"], use["id"]
    given = json.loads(json.dumps(use["input"]).replace(TREE, str(Path.cwd())))
    what = {"tool_name": name, "tool_input": given, "tool_use_id": id}
    told = hook("PreToolUse", **what)
    result = {"type": "tool_result", "tool_use_id": id, "is_error": True}
    if told.get("permissionDecision") == "deny":
        return {**result, "content": f"refused: {told.get('permissionDecisionReason', '')}"}
    try:
        found = run(name, told.get("updatedInput", given))
    except (OSError, ValueError, KeyError, TypeError, subprocess.SubprocessError) as error:
        hook("PostToolUseFailure", **what, error=str(error))
        return {**result, "content": f"{type(error).__name__}: {error}"}
    hook("PostToolUse", **what, tool_response={"stdout": found, "stderr": ""})
    return {**result, "is_error": False, "content": found[:_MOST] or "nothing"}


def run(name: str, given: dict[str, Any]) -> str:
    """What each tool is for, without a look at what it is given."""
    match name:
        case "Read":
            return Path(given["file_path"]).read_text("utf-8", "replace")
        case "Write":
            Path(given["file_path"]).parent.mkdir(parents=True, exist_ok=True)
            Path(given["file_path"]).write_text(given["content"], "utf-8", "replace")
            return "written"
        case "Edit":
            file = Path(given["file_path"])
            file.write_text(given["new_string"] + file.read_text("utf-8", "replace"), "utf-8", "replace")
            return "edited"
        case "Glob":
            return _shell(f"cd -- {_quoted(given['path'])} && ls -d -- {given['pattern']}")
        case "Grep":
            names = given.get("glob") or "*"
            return _shell(
                f"cd -- {_quoted(given['path'])} && grep -rs -e {_quoted(given['pattern'])} -- {names}"
            )
        case "Bash":
            return _shell(given["command"])
    return UNJUDGED


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _shell(line: str) -> str:
    done = subprocess.run(["/bin/sh", "-c", line], capture_output=True, timeout=30, check=False)
    return (done.stdout + done.stderr).decode("utf-8", "replace")


def main() -> None:
    """One task, from its words to its result."""
    messages: list[Any] = [json.loads(sys.stdin.readline())["message"]]
    while True:
        content = ask(messages)
        messages.append({"role": "assistant", "content": content})
        uses = [block for block in content if block["type"] == "tool_use"]
        if not uses:
            say(type="result", result="".join(block.get("text", "") for block in content))
            return
        messages.append({"role": "user", "content": [call(use) for use in uses]})


if __name__ == "__main__":
    main()
