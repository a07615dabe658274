"""An ordinary user, where the tests are root: what holds for them is tried as them."""

from __future__ import annotations

import functools
import json
import os
import shutil
import site
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from shlex import quote
from typing import Any

import pytest

from shared.guard.sandbox import landlock
from shared.guard.sandbox.bubblewrap import programs

NOBODY = 65_534
ROOT = Path(__file__).parents[2]
_SHOWN = """
import json, os, subprocess, sys
from pathlib import Path
from shared.guard.sandbox.sandbox import Sandbox
mode, root, command, seconds = json.loads(sys.argv[1])
box = Sandbox.probe(mode)
told = {"mode": box.mode, "explain": box.explain(), "uid": os.getuid()}
if box.confines:
    argv = box.wrap(["bash", "-c", command], Path(root), True)
    done = subprocess.run(argv, capture_output=True, text=True, timeout=seconds, env={}, stdin=subprocess.DEVNULL)
    told |= {"stdout": done.stdout, "stderr": done.stderr, "code": done.returncode}
print(json.dumps(told))
"""


@functools.cache
def _python() -> str | None:
    """A Python that an ordinary user can start, and that finds our code."""
    for program in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        check = "import sys; assert sys.version_info >= (3, 11); import shared.guard.sandbox.sandbox"
        try:
            done = subprocess.run(
                [program, "-c", check],
                cwd=ROOT,
                capture_output=True,
                timeout=30,
                env=_surroundings(),
                **_as(),
                check=False,
            )
        except OSError:
            continue
        if done.returncode == 0:
            return program
    return None


def _as() -> dict[str, Any]:
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}


_BECOMES = """
import os, sys
if os.getuid() == 0:
    os.setgroups([]); os.setgid({who}); os.setuid({who})
os.execv(sys.argv[1], sys.argv[1:])
"""


def started(argv: Sequence[str], folder: Path) -> list[str]:
    """The command that runs it, with our Python, as an ordinary user who reaches that and this checkout.

    What of them lies in a folder of root's alone is shown to them in mounts that go with the command. `folder` is
    an empty one of theirs. A skip where that cannot be had here.
    """
    if os.getuid():
        return [sys.executable, *argv]
    needed = {Path(sys.base_prefix).resolve(), Path(sys.prefix).absolute(), ROOT}
    closed = {place: top for place in sorted(needed) if (top := _closed(place))}
    steps = ["set -e"]
    for number, place in enumerate(closed):
        steps += [f"mkdir {folder}/{number}", f"mount --bind {quote(str(place))} {folder}/{number}"]
    steps += [f"mount -t tmpfs -o mode=755,size=1m none {quote(str(top))}" for top in set(closed.values())]
    for number, place in enumerate(closed):
        steps += [f"mkdir -p {quote(str(place))}", f"mount --bind {folder}/{number} {quote(str(place))}"]
    becoming = [sys.executable, "-c", _BECOMES.format(who=NOBODY), sys.executable, *argv]
    if not closed:
        return becoming
    try:
        subprocess.run(["unshare", "-m", "true"], capture_output=True, timeout=20, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("an ordinary user cannot read our Python, and we may make no mounts for one")
    return ["unshare", "-m", "sh", "-c", "; ".join([*steps, 'exec "$@"']), "sh", *becoming]


def _closed(place: Path) -> Path | None:
    """The outermost folder above it that others may not pass."""
    return next((one for one in reversed(place.parents) if not one.stat().st_mode & 0o001), None)


@contextmanager
def workspace() -> Iterator[Path]:
    """A folder of theirs, with a file of theirs beside it."""
    outer = Path(tempfile.mkdtemp(prefix="promptdock-test-", dir="/tmp")).resolve()
    try:
        root = outer / "workspace"
        root.mkdir()
        (outer / "outside.txt").write_text("CANARY")
        if os.getuid() == 0:
            for path in (outer, root, outer / "outside.txt"):
                os.chown(path, NOBODY, NOBODY)
        yield root
    finally:
        shutil.rmtree(outer)


def confined(mode: str, root: Path, command: str, seconds: float = 30) -> dict[str, Any]:
    """What a command does in the sandbox of an ordinary user's worker; a skip where none can be had here."""
    python = _python()
    if python is None:
        pytest.skip("this checkout, or a Python for it, cannot be read by an ordinary user")
    done = subprocess.run(
        [python, "-c", _SHOWN, json.dumps([mode, str(root), command, seconds])],
        cwd=ROOT, capture_output=True, text=True, timeout=seconds + 30, check=False,
        env=_surroundings(), **_as(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    if told["mode"] != mode and not _could(mode):
        pytest.skip(told["explain"])
    assert told["mode"] == mode, told["explain"]
    return told


def _could(mode: str) -> bool:
    """Whether this machine gives an ordinary user what it needs, asked in another way than ours."""
    if mode == "landlock":
        return landlock.version() >= landlock.USABLE
    for program in programs():
        argv = [program, "--unshare-user", "--unshare-net", "--ro-bind", "/", "/", "/bin/true"]
        with suppress(OSError):
            if (
                subprocess.run(
                    argv, cwd="/", capture_output=True, timeout=20, **_as(), check=False
                ).returncode
                == 0
            ):
                return True
    return False


def _surroundings() -> dict[str, str]:
    name, places = "PROMPTDOCK_WITHOUT", [str(ROOT), *site.getsitepackages()]
    without = {name: os.environ[name]} if name in os.environ else {}
    return {"PATH": os.defpath, "PYTHONPATH": os.pathsep.join(places), **without}
