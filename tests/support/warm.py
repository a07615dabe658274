"""The process that forks processes of ours: it has imported what they need, also what they load late.

`python -m tests.support.warm` reads one JSON object a line from stdin, `{argv, env, cwd, stdin, stdout, stderr}` (the
last three are files), runs `python -m argv…` in a child of its own, and writes `[pid, null]`; when the child has
ended, `[pid, code]`. Its children end with it, and it with its stdin.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import runpy
import selectors
import signal
import sys
import threading
import time
from typing import Any

from shared import failpoints

# What each kind of process imports at its start, and later inside functions.
_CLIENT = ("shared.client", "shared.bus.redis", "shared.store.sqlite", "aiosqlite", "hiredis")
_MODELS = ("shared.models.demo", "shared.models.anthropic", "anthropic.types")
_IMPORTS = {
    "agents": (
        "agents.host",
        "shared.worker",
        "shared.tools",
        *_CLIENT[1:],
        *_MODELS,
        "asyncio.subprocess",
        "uvloop",
    ),
    "gateways.cli": ("gateways.cli", *_CLIENT, "rich.console"),
    "gateways.mcp": ("gateways.mcp", *_CLIENT),
    "gateways.web": ("gateways.web", *_CLIENT, "uvicorn", "uvloop"),
}


def _load(kind: str) -> None:
    """All modules of these rooms, and these libraries; an extra that is not installed stays away."""
    for name in _IMPORTS[kind]:
        with contextlib.suppress(ImportError):
            module = importlib.import_module(name)
            ours = name.startswith(("agents", "gateways", "shared"))
            for found in pkgutil.walk_packages(getattr(module, "__path__", ()) if ours else (), f"{name}."):
                if not found.name.endswith("__main__"):
                    importlib.import_module(found.name)


class Parent:
    """Forks on request, and tells what became of its children."""

    def __init__(self) -> None:
        self._children: set[int] = set()
        self._loaded: set[str] = set()
        # What children write and read is theirs; these two stay with the parent.
        self._asked, self._told = os.dup(0), os.dup(1)
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(2, 1)
        self._heard, woken = os.pipe()
        for end in (self._heard, woken):
            os.set_blocking(end, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
        self._own = (self._asked, self._told, self._heard, woken, null)

    def serve(self) -> dict[str, Any] | None:
        """Until stdin ends; in a child, what it has to become."""
        selector = selectors.DefaultSelector()
        selector.register(self._asked, selectors.EVENT_READ)
        selector.register(self._heard, selectors.EVENT_READ)
        rest = b""
        while True:
            for key, _ in selector.select():
                if key.fd == self._heard:
                    os.read(self._heard, 4096)
                    self._reap()
                    continue
                some = os.read(self._asked, 65_536)
                if not some:
                    self._end()
                    return None
                *lines, rest = (rest + some).split(b"\n")
                for line in lines:
                    asked: dict[str, Any] = json.loads(line)
                    self._know(asked["argv"][0])
                    pid = os.fork()
                    if pid == 0:
                        selector.close()
                        self._leave()
                        return asked
                    self._children.add(pid)
                    self._tell(pid, None)

    def _know(self, module: str) -> None:
        """Import what this kind of process needs, the first time that one is wanted."""
        for kind in _IMPORTS:
            if f"{module}.".startswith(f"{kind}.") and kind not in self._loaded:
                self._loaded.add(kind)
                _load(kind)
                told = "a library starts a thread when it is imported: no child would have it"
                assert threading.active_count() == 1, told
                gc.collect()
                gc.freeze()

    def _leave(self) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number in self._own:
            os.close(number)

    def _tell(self, pid: int, code: int | None) -> None:
        with contextlib.suppress(BrokenPipeError):  # whose tests were killed: stdin ends next
            os.write(self._told, json.dumps([pid, code]).encode() + b"\n")

    def _reap(self) -> None:
        for pid in list(self._children):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                self._children.discard(pid)
                self._tell(pid, os.waitstatus_to_exitcode(status))

    def _end(self) -> None:
        for pid in self._children:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _become(asked: dict[str, Any]) -> None:
    """What `python -m` does after its start."""
    os.setsid()
    os.environ.clear()
    os.environ.update(asked["env"])
    time.tzset()
    os.chdir(asked["cwd"])
    written = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    for number, (name, how) in enumerate((("stdin", os.O_RDONLY), ("stdout", written), ("stderr", written))):
        file = os.open(asked[name], how, 0o600)
        os.dup2(file, number)
        os.close(file)
    sys.stdin, sys.stdout, sys.stderr = (open(n, "w" if n else "r", closefd=False) for n in range(3))  # noqa: SIM115
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = [place for place in given if place and place not in sys.path]
    failpoints.read()  # the parent may have asked for one of its own
    module, *words = asked["argv"]
    sys.argv = [module, *words]
    gc.enable()
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _run(asked: dict[str, Any]) -> int:
    """Its exit code; what runs at an interpreter's end has run, but the modules are not taken apart."""
    code: Any = 0
    try:
        _become(asked)
    except SystemExit as leaving:
        code = leaving.code
    except BaseException:
        code = 1
        sys.excepthook(*sys.exc_info())
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    return code or 0


def main() -> None:
    gc.disable()
    asked = Parent().serve()
    if asked is not None:
        os._exit(_run(asked))


if __name__ == "__main__":
    main()
