"""An environment for each peer, made once: pinned in `<peer>.txt`, kept in the user's cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

PINS = Path(__file__).parent


def python(peer: str) -> Path:
    """The interpreter of the peer's environment; OSError or CalledProcessError if it cannot be made."""
    pins = PINS / f"{peer}.txt"
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    mark = hashlib.sha256(pins.read_bytes()).hexdigest()[:10]
    folder = _cache() / f"{peer}-{version}-{mark}"
    binary = folder / "bin" / "python"
    if (folder / "complete").exists():
        return binary
    print(f"installing {peer} into {folder}", file=sys.stderr, flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    venv.create(folder, with_pip=True)
    subprocess.run(
        [binary, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", pins],
        check=True,
        timeout=600,
    )
    (folder / "complete").touch()
    return binary


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "promptdock" / "bench-peers"


def release(peer: str) -> str:
    """What is measured, with its version."""
    names = {"taskiq": ("taskiq", "taskiq-redis"), "autogen": ("autogen-core",)}.get(peer, (peer,))
    pins = (PINS / f"{peer}.txt").read_text("utf-8").split()
    return ", ".join(pin.replace("==", " ") for pin in pins if pin.partition("==")[0] in names)
