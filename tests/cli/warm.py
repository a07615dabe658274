"""Processes of the command line without the wait for its imports: one that has them forks for each command.

`python -m tests.cli.warm` reads one JSON object a line from stdin, `{argv, env, cwd, stdin, stdout, stderr}`
(the last three are files), runs the command in a child of its own, and writes the child's exit code.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import sys
from typing import Any

import gateways.cli
from gateways.cli.__main__ import main as command_line


def _load() -> None:
    """All modules of the command line, and what they import late."""
    late = (
        "bus.redis",
        "store.sqlite",
        "store.supabase",
        "models.anthropic",
        "client.views.tasks.tasks",
        "client.doctor.examine",
    )
    ours = (found.name for found in pkgutil.walk_packages(gateways.cli.__path__, "gateways.cli."))
    for name in (
        *(f"shared.{name}" for name in late),
        *(name for name in ours if not name.endswith("__main__")),
    ):
        importlib.import_module(name)


def _become(asked: dict[str, Any]) -> None:
    os.environ.clear()
    os.environ.update(asked["env"])
    os.chdir(asked["cwd"])
    for number, (name, how) in enumerate(
        (("stdin", os.O_RDONLY), ("stdout", os.O_WRONLY), ("stderr", os.O_WRONLY))
    ):
        os.dup2(os.open(asked[name], how), number)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
    sys.argv = [gateways.cli.__path__[0] + "/__main__.py", *asked["argv"]]
    sys.exit(command_line())


def main() -> None:
    """Until stdin ends."""
    _load()
    for line in sys.stdin:
        asked = json.loads(line)
        pid = os.fork()
        if pid == 0:
            code: Any = 1
            try:
                _become(asked)
            except SystemExit as leaving:
                code = leaving.code or 0
            except BaseException:
                sys.excepthook(*sys.exc_info())
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code if isinstance(code, int) else 1)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
