"""A small MCP server over stdio that behaves as its first argument says: well, or as badly as one can.

    python mcp_server.py [well | silent | mute | flood | huge | lies | prints | dies | many | breaks] [FILE]

It speaks the protocol by hand, so that it can break it. FILE, where given, gets a line for each call, and holds in
its second line the names of the tools to list.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

MODE = sys.argv[1] if len(sys.argv) > 1 else "well"
NOTES = Path(sys.argv[2]) if len(sys.argv) > 2 else None
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def tools() -> list[dict[str, Any]]:
    if MODE == "lies":
        return [
            {"name": "good", "description": "Works.", "inputSchema": TEXT},
            {"name": "not_valid", "inputSchema": {"type": "object", "properties": {"a": {"type": "bogus"}}}},
            {"name": "odd", "inputSchema": {"type": "object", "properties": {"a b": {"type": "string"}}}},
            {"name": "large", "inputSchema": {"type": "object", "description": "x" * 20_000}},
            {
                "name": "answers",
                "inputSchema": {"type": "object"},
                "outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}},
                "annotations": {"readOnlyHint": True},
            },
        ]
    if MODE == "many":
        return [{"name": f"tool{n}", "inputSchema": TEXT} for n in range(1000)]
    if MODE == "breaks":
        return [{"name": "no_object", "inputSchema": {"type": "string"}}]
    names = NOTES.with_suffix(".tools").read_text().split() if NOTES else ["echo", "look", "slow", "die"]
    hints = {"look": {"readOnlyHint": True}, "again": {"idempotentHint": True}}
    return [
        {"name": name, "description": f"{name} it.", "inputSchema": TEXT, "annotations": hints.get(name, {})}
        for name in names
    ]


def called(number: Any, name: str, arguments: dict[str, Any]) -> None:
    if NOTES:
        with NOTES.open("a") as out:
            out.write(f"{name}\n")
    text = str(arguments.get("text", ""))
    if MODE == "huge":
        for _ in range(100):
            sys.stdout.write("x" * 1024 * 1024)
        sys.stdout.flush()
    if MODE == "flood":
        line = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info"}})
        while True:
            sys.stdout.write((line + "\n") * 1000)
    if MODE == "mute":
        time.sleep(600)
    if name == "answers":
        send({"id": number, "result": {"content": [], "structuredContent": {"n": "no number"}}})
        return
    if name == "slow":
        for step in range(3):
            send({"method": "notifications/progress", "params": {"progressToken": number, "progress": step}})
            time.sleep(0.2)
    if name == "die" or (name == "once_dead" and NOTES and NOTES.read_text().split().count(name) == 1):
        os._exit(3)
    if name == "env":
        text = json.dumps(dict(os.environ))
    if name == "touch":
        try:
            Path(text).write_text("here")
        except OSError as error:
            text = f"refused: {error.strerror}"
    if name == "child":
        text = str(subprocess.Popen(["sleep", "600"], start_new_session=True).pid)
    if name == "fail":
        send({"id": number, "result": {"content": [{"type": "text", "text": text}], "isError": True}})
        return
    if name == "odd":
        send({"id": number, "result": {"content": "no list"}})
        return
    send({"id": number, "result": {"content": [{"type": "text", "text": text}]}})


def main() -> None:
    if MODE == "silent":
        time.sleep(600)
    if MODE == "dies":
        print("there is no such file", file=sys.stderr)
        sys.exit(7)
    if MODE == "prints":
        print("Welcome to my server!")
        print("\x1b[31mnot json at all {")
    for line in sys.stdin:
        message = json.loads(line)
        number, method = message.get("id"), message.get("method", "")
        params = message.get("params") or {}
        if method == "initialize":
            info = {"name": "tester", "version": "1"}
            has: dict[str, Any] = {"tools": {"listChanged": True}, "resources": {}, "prompts": {}}
            send(
                {
                    "id": number,
                    "result": {"protocolVersion": "2025-06-18", "capabilities": has, "serverInfo": info},
                }
            )
        elif method == "tools/list":
            send({"id": number, "result": {"tools": tools()}})
        elif method == "tools/call":
            called(number, params["name"], params.get("arguments") or {})
            if NOTES and NOTES.with_suffix(".changed").exists():
                NOTES.with_suffix(".changed").unlink()
                send({"method": "notifications/tools/list_changed"})
        elif method == "resources/list":
            send({"id": number, "result": {"resources": [{"uri": "note://a", "name": "a"}]}})
        elif method == "resources/templates/list":
            send({"id": number, "result": {"resourceTemplates": []}})
        elif method == "resources/read":
            part = {"uri": params["uri"], "text": "what the note says"}
            send({"id": number, "result": {"contents": [part]}})
        elif method == "prompts/list":
            arguments = [{"name": "who", "required": True}]
            send({"id": number, "result": {"prompts": [{"name": "greet", "arguments": arguments}]}})
        elif method == "prompts/get":
            said = {
                "role": "user",
                "content": {"type": "text", "text": f"Greet {params['arguments']['who']}"},
            }
            send({"id": number, "result": {"messages": [said]}})
        elif number is not None:
            send({"id": number, "error": {"code": -32601, "message": f"no {method} here"}})


if __name__ == "__main__":
    main()
