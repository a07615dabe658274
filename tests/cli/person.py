"""A person at a shell: a folder, an environment without our settings, and the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.house.tree import ROOT, variables

PATIENCE = 60.0  # seconds; a bound for machines that are busy


@dataclass
class Person:
    """Types `promptdock …` in `folder`; `settings` is what they exported."""

    folder: Path
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def environment(self, **settings: str) -> dict[str, str]:
        """What a process of theirs inherits."""
        kept = {name: value for name, value in os.environ.items() if name not in variables()}
        place = {"PYTHONPATH": str(ROOT), "PROMPTDOCK_HOME": str(self.home), "COLUMNS": "160"}
        return kept | place | self.settings | settings

    def start(self, *words: str, **settings: str) -> subprocess.Popen[str]:
        """`promptdock words…` without waiting for it."""
        return subprocess.Popen(
            command(words),
            cwd=self.folder,
            env=self.environment(**settings),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def types(self, *words: str, stdin: str = "", **settings: str) -> subprocess.CompletedProcess[str]:
        """`promptdock words…`, whatever comes of it."""
        return subprocess.run(
            command(words),
            cwd=self.folder,
            env=self.environment(**settings),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def does(self, *words: str, stdin: str = "") -> str:
        """`promptdock words…`, which works; its stdout."""
        done = self.types(*words, stdin=stdin)
        assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def reads(self, *words: str) -> dict[str, Any]:
        """The one JSON document of `promptdock words… --json`."""
        found: dict[str, Any] = json.loads(self.does(*words, "--json"))
        return found

    def is_refused(self, code: int, *words: str, stdin: str = "", **settings: str) -> str:
        """`promptdock words…` ends with this code, and says so without a traceback; its stderr."""
        done = self.types(*words, stdin=stdin, **settings)
        assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        assert done.stdout == ""
        return done.stderr


def command(words: Sequence[str]) -> list[str]:
    """The command line as it is called where `promptdock` is not on the path."""
    return [sys.executable, "-m", "gateways.cli", *words]
