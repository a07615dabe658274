"""Where the page of this home is: written down by its process while it listens, read by whoever tells people."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shared.errors import ConfigurationError
from shared.guard.files import atomic
from shared.guard.processes.pid import birth

_ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # what listens everywhere is here too


def url(host: str, port: int) -> str:
    """As a browser of this machine opens it."""
    host = _ANYWHERE.get(host, host)
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


@contextmanager
def kept(home: Path, host: str, port: int) -> Iterator[str]:
    """Write down where this process listens, for as long as it does."""
    file = home / "web" / "address.json"
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        note = {"pid": os.getpid(), "birth": birth(os.getpid()), "url": url(host, port), "port": port}
        atomic.put(file, json.dumps(note))
    except OSError as error:
        raise ConfigurationError(
            f"where the page is cannot be written into {file.parent}", error.strerror or str(error)
        ) from error
    try:
        yield url(host, port)
    finally:
        if (found := _read(home)) and found.get("pid") == os.getpid():
            file.unlink(missing_ok=True)


def found(home: Path) -> str:
    """The address of the page that runs in this home; "" where none does."""
    note = _read(home) or {}
    return str(note.get("url", "")) if pid(home) else ""


def left(home: Path) -> int:
    """The port of one that was killed; 0 where it ended by itself, or listens."""
    note = _read(home) or {}
    port = note.get("port")
    return port if isinstance(port, int) and 0 < port < 65536 and not pid(home) else 0


def pid(home: Path) -> int:
    """The process that listens; 0 where none does."""
    note = _read(home) or {}
    number = note.get("pid")
    return number if isinstance(number, int) and birth(number) == note.get("birth") != "" else 0


def _read(home: Path) -> dict[str, object] | None:
    try:
        value = json.loads((home / "web" / "address.json").read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None
