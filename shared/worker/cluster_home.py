"""The data folder of a running cluster: made for its owner alone, held by one supervisor, with its workers' logs."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from shared.errors import ConfigurationError, UsageError, sentences
from shared.folders import HOME_NAME, private


def make(home: Path) -> None:
    """The data folder, for its owner alone."""
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise ConfigurationError(
            f"the data folder {home} cannot be made",
            error.strerror or str(error),
            "name another: PROMPTDOCK_HOME",
        ) from error
    if home.name == HOME_NAME and not (home / ".gitignore").exists():
        (home / ".gitignore").write_text("*\n")  # it lies in a folder of people


@contextlib.contextmanager
def only_one(home: Path) -> Iterator[TextIO]:
    """One supervisor a home; a second one says so and leaves."""
    with open(home / "cluster.lock", "w", opener=private) as file:
        for _ in range(5):  # a command that only looks whether somebody is here has it for a moment
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            time.sleep(0.02)
        else:
            raise UsageError(
                "the cluster is running already",
                f"in {home}",
                "see promptdock status; end it with promptdock down",
            )
        yield file


def is_ours(lock: TextIO, home: Path) -> bool:
    """Whether the home is still the one that we locked."""
    try:
        there = (home / "cluster.lock").stat()
    except OSError:
        return False
    return os.path.samestat(there, os.fstat(lock.fileno()))


def last_error(file: Path) -> str:
    """The last line of level error in a worker's log."""
    with contextlib.suppress(OSError):
        for line in reversed(file.read_text("utf-8", "replace").splitlines()[-50:]):
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if event.get("level") == "error":
                return sentences(*(str(event.get(key) or "") for key in ("event", "why", "fix")))
    return "it ended with a configuration error"
