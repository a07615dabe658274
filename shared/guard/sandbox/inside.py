"""What runs inside a sandbox beside a program that has one way out: that way, and commands that it has run outside.

Nothing of the package is importable there, so this file stands alone: `python -I -S inside.py`

    start PLAN PROGRAM ARGUMENT…   lets the program reach the one socket as if it were an address of its own
    run PLAN COMMAND               has a command run that was allowed, by the name that it got, and prints what it did

PLAN is a JSON file: {socket, port, token, environment}. Without a socket the port is one of the host's.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from typing import Any

HERE = "127.0.0.1"
_PIECE = 64 * 1024


def start(plan: dict[str, Any], argv: list[str]) -> int:
    """Run the program to its end; its exit code."""
    environment = {**os.environ, **plan["environment"]}
    if not plan["socket"]:
        os.execve(argv[0], argv, environment)
    listener = socket.create_server((HERE, plan["port"]))
    threading.Thread(target=_accept, args=(listener, plan), daemon=True).start()
    program = subprocess.Popen(argv, env=environment)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda got, _frame: program.send_signal(got))
    code = program.wait()
    return 128 - code if code < 0 else code


def _accept(listener: socket.socket, plan: dict[str, Any]) -> None:
    while True:
        near = listener.accept()[0]
        try:
            far = _reach(plan)
        except OSError:
            near.close()
            continue
        for one, other in ((near, far), (far, near)):
            threading.Thread(target=_pass, args=(one, other), daemon=True).start()


def _pass(one: socket.socket, other: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := one.recv(_PIECE):
            other.sendall(data)
    for end in (one, other):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def _reach(plan: dict[str, Any]) -> socket.socket:
    if not plan["socket"]:
        return socket.create_connection((HERE, plan["port"]))
    there = socket.socket(socket.AF_UNIX)
    there.connect(plan["socket"])
    return there


def run(plan: dict[str, Any], name: str) -> int:
    """Ask for the command to be run outside, in a sandbox of its own; its exit code."""
    head = f"POST /run/{name} HTTP/1.1\r\nhost: {HERE}\r\nx-api-key: {plan['token']}\r\ncontent-length: 0\r\n\r\n"
    with _reach(plan) as there:
        there.sendall(head.encode())
        answer = b""
        while data := there.recv(_PIECE):
            answer += data
    _, _, body = answer.partition(b"\r\n\r\n")
    done = json.loads(body)
    sys.stdout.write(done["stdout"])
    sys.stderr.write(done["stderr"])
    return int(done["exit_code"])


def main() -> int:
    """As the arguments say."""
    what, file, *rest = sys.argv[1:]
    with open(file, encoding="utf-8") as text:  # noqa: PTH123 - nothing is imported that need not be
        plan = json.load(text)
    return start(plan, rest) if what == "start" else run(plan, rest[0])


if __name__ == "__main__":
    sys.exit(main())
