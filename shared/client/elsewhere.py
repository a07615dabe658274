"""The cluster of another data folder that knows the repository in which a person stands.

Only data folders are looked at that this user's programs made, or that lie in a folder which this user trusts: what
lies in the repository itself decides nothing. Nor does what is found: the person is told, and goes there or not.
"""

from __future__ import annotations

import contextlib
import shlex
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from shared import folders
from shared.bus import embedded
from shared.errors import NoCluster
from shared.settings import Settings

_WAIT = 0.2  # seconds that a database which is being written may take
_KNOWS = "SELECT 1 FROM repos WHERE path = ? LIMIT 1"


@dataclass(frozen=True)
class Elsewhere:
    """A data folder whose agents know a repository."""

    home: Path
    repository: Path
    runs: bool

    @property
    def told(self) -> str:
        """In words."""
        state = "runs" if self.runs else "does not run"
        return f"the git repository {self.repository} belongs to the cluster of {self.home}, which {state}"

    @property
    def fix(self) -> str:
        """How to get there."""
        there = f"PROMPTDOCK_HOME={shlex.quote(str(self.home))} promptdock"
        go = f"{there} chat, or once for all commands: export PROMPTDOCK_HOME={shlex.quote(str(self.home))}"
        return f"go there: {go}" if self.runs else f"start it: {there} up"


def repository(folder: Path) -> Path | None:
    """The git repository in which a folder lies."""
    try:
        folder = folder.resolve()
        return next((one for one in (folder, *folder.parents) if (one / ".git").exists()), None)
    except OSError:
        return None


def find(home: Path, folder: Path) -> Elsewhere | None:
    """The data folder other than `home` that knows the repository in which a person stands; one that runs first."""
    top = repository(folder)
    if top is None:
        return None
    found = [one for one in folders.homes() if one != home and _knows(one, top)]
    told = [Elsewhere(one, top, embedded.running(one) is not None) for one in found]
    return next((one for one in told if one.runs), told[0] if told else None)


def address(settings: Settings) -> str:
    """Where the Redis of this cluster is; where there is none, BusUnreachable says which cluster may be meant."""
    try:
        return embedded.address(settings)
    except NoCluster as error:
        if other := find(settings.home, folders.here()):
            raise NoCluster(error.what, other.told, other.fix) from None
        raise


def _knows(home: Path, top: Path) -> bool:
    """Read as it is: neither made nor brought up to date."""
    with contextlib.suppress(OSError, sqlite3.Error), _opened(home / "promptdock.db") as db:
        return db.execute(_KNOWS, (str(top),)).fetchone() is not None
    return False


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[sqlite3.Connection]:
    # One that nobody has open is read without the files that SQLite puts beside it.
    mode = "mode=ro" if file.with_name(f"{file.name}-wal").exists() else "mode=ro&immutable=1"
    with contextlib.closing(
        sqlite3.connect(f"{file.absolute().as_uri()}?{mode}", timeout=_WAIT, uri=True)
    ) as db:
        yield db
