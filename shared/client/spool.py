"""The outbox: what was said and is not acknowledged yet, on disk in the home.

One file a message, written before the first try and removed when the server has it on disk. A message that is
posted again is recognised by its id, so a letter may go out twice, and by two processes, without harm.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shared import log
from shared.client.types import Sent
from shared.errors import PromptDockError
from shared.guard.files import atomic

LEFT_AFTER = 10.0  # seconds after which another process's letter counts as left behind
LIFE = 86_400.0  # seconds: so long an id is recognised, so after that a letter might be answered twice


@dataclass(eq=False)
class Letter:
    """One message on its way. `channel` is the contract's name of it."""

    path: Path
    channel: str
    message: dict[str, Any]
    outcome: Sent | PromptDockError | None = field(default=None)


class Spool:
    """The letters of one home to one cluster, which `line` names."""

    def __init__(self, folder: Path, line: str) -> None:
        self.folder = folder
        self._line = hashlib.sha256(line.encode()).hexdigest()[:16]
        self._last = 0

    def put(self, channel: str, message: dict[str, Any]) -> Letter:
        """Write a letter to disk; PromptDockError where that is not possible."""
        try:
            return self._write(channel, message)
        except OSError as error:
            raise PromptDockError(
                "the message was not sent",
                f"it cannot be kept in {self.folder}: {error.strerror or error}",
                "make room on that disk, or make the folder writable, and say it again",
            ) from error

    def _write(self, channel: str, message: dict[str, Any]) -> Letter:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._last = max(time.time_ns(), self._last + 1)
        name = hashlib.sha256(str(message["id"]).encode()).hexdigest()[:16]
        path = self.folder / f"{self._last:020d}-{name}.json"
        text = json.dumps({"line": self._line, "channel": channel, "message": message})
        atomic.put(path, text)
        return Letter(path, channel, message)

    def remove(self, letter: Letter) -> None:
        """It arrived, or was refused to its sender's face."""
        letter.path.unlink(missing_ok=True)

    def left(self) -> list[Letter]:
        """Letters that an earlier process left behind, in their order; the too old ones are thrown away."""
        found = []
        for path in sorted(self.folder.glob("*.json")):
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                age = time.time() - int(path.name[:20]) / 1e9
                kept = json.loads(path.read_text())
                if age > LIFE:
                    path.unlink(missing_ok=True)
                    log.get().warning(
                        "A message in the outbox was too old to be sent", id=kept["message"]["id"]
                    )
                elif age > LEFT_AFTER and kept["line"] == self._line:
                    found.append(Letter(path, str(kept["channel"]), dict(kept["message"])))
        return found
