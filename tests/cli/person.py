"""A person at a shell: a folder, an environment without our settings, and the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.house.tree import ROOT, variables
from tests.support.forked import Done, run

PATIENCE = 60.0  # seconds; a bound for machines that are busy


@dataclass
class Person:
    """Types `promptdock …` in `folder`; the data is in `folder/home`."""

    folder: Path

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
        return run(["gateways.cli", *words], self.folder, self.environment(**settings), stdin)

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
