"""A person at a shell: a folder, an environment without our settings, and the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.house.tree import ROOT, variables

PATIENCE = 60.0  # seconds; a bound for machines that are busy


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


class Warm:
    """Runs commands one after the other in processes that have their imports already (warm.py)."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.cli.warm"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, words: Sequence[str], folder: Path, environment: dict[str, str], stdin: str) -> Done:
        """One command, to its end."""
        assert self._process.stdin is not None and self._process.stdout is not None
        files = {name: folder / f".{name}" for name in ("stdin", "stdout", "stderr")}
        for name, file in files.items():
            file.write_text(stdin if name == "stdin" else "")
        asked = {name: str(file) for name, file in files.items()}
        print(
            json.dumps({"argv": list(words), "env": environment, "cwd": str(folder), **asked}),
            file=self._process.stdin,
            flush=True,
        )
        code = int(self._process.stdout.readline())
        return Done(code, files["stdout"].read_text(), files["stderr"].read_text())

    def close(self) -> None:
        """No command runs any more."""
        self._process.communicate(timeout=PATIENCE)


@dataclass
class Person:
    """Types `promptdock …` in `folder`; the data is in `folder/home`."""

    folder: Path
    warm: Warm

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def environment(self, **settings: str) -> dict[str, str]:
        """What a process of theirs inherits."""
        kept = {name: value for name, value in os.environ.items() if name not in variables()}
        place = {"PYTHONPATH": str(ROOT), "PROMPTDOCK_HOME": str(self.home), "COLUMNS": "160"}
        return kept | place | settings

    def start(self, *words: str) -> subprocess.Popen[str]:
        """`promptdock words…` from cold, without waiting for it."""
        return subprocess.Popen(
            [sys.executable, "-m", "gateways.cli", *words],
            cwd=self.folder,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def types(self, *words: str, stdin: str = "", **settings: str) -> Done:
        """`promptdock words…`, whatever comes of it; `settings` are exported for it alone."""
        return self.warm.run(words, self.folder, self.environment(**settings), stdin)

    def does(self, *words: str, stdin: str = "") -> str:
        """`promptdock words…`, which works; its stdout."""
        done = self.types(*words, stdin=stdin)
        assert done.returncode == 0, f"{words}: {done}"
        return done.stdout

    def reads(self, *words: str) -> dict[str, Any]:
        """The one JSON document of `promptdock words… --json`."""
        found: dict[str, Any] = json.loads(self.does(*words, "--json"))
        return found

    def is_refused(self, code: int, *words: str, stdin: str = "", **settings: str) -> str:
        """`promptdock words…` ends with this code, and says so without a traceback; its stderr."""
        done = self.types(*words, stdin=stdin, **settings)
        assert done.returncode == code, f"{words}: {done}"
        assert "Traceback" not in done.stderr
        assert done.stdout == ""
        return done.stderr
