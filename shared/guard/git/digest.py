"""A digest of what a checkout holds: whether a command would meet the same files as when it was asked for."""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from shared.errors import ToolError
from shared.guard.git.commands import Git
from shared.guard.sandbox.sandbox import Sandbox

FILES = 20_000  # that are looked at one by one
BYTES = 64 * 1024 * 1024  # that are read of all files together; of the rest, size and time count
_NOT_WALKED = (".git", "node_modules", "__pycache__", ".venv")


async def digest(root: Path, sandbox: Sandbox) -> str:
    """SHA-256 over the names and contents of all files but those that git ignores, and over links as links.

    Of a folder that is in no repository all files count. Beyond the bounds above, size and time of a change stand for
    what a file holds.
    """
    names = await _listed(root, sandbox)
    return await asyncio.to_thread(_digest, root, names)


async def _listed(root: Path, sandbox: Sandbox) -> list[str] | None:
    """The names of the files as git lists them, sorted; None where it cannot."""
    git = Git(root, sandbox)
    if not git.is_repo():
        return None
    try:
        return await git.held()
    except (
        ToolError
    ):  # a repository that we do not trust, or that lists too much: the folder itself is looked at
        return None


def _digest(root: Path, names: Iterable[str] | None) -> str:
    whole, left = hashlib.sha256(), BYTES
    for number, name in enumerate(_walk(root) if names is None else names):
        # With its length before it: no name or content can be taken for the end of one and the begin of another.
        said, left = _said(root / name, left if number < FILES else 0)
        for part in (os.fsencode(name), said):
            whole.update(len(part).to_bytes(8, "big") + part)
    return whole.hexdigest()


def _said(file: Path, left: int) -> tuple[bytes, int]:
    """What a file is: its kind and mode, and what it holds, as far as `left` bytes may be read; what is left then."""
    try:
        what = file.lstat()
        kind = f"{what.st_mode:o} ".encode()
        if stat.S_ISLNK(what.st_mode):
            return kind + os.fsencode(file.readlink()), left
        if not stat.S_ISREG(what.st_mode):
            return kind, left
        if what.st_size > left:
            return kind + f"{what.st_size} {what.st_mtime_ns} {what.st_ctime_ns}".encode(), left
        fd = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(fd, "rb") as opened:
            data = opened.read(left)
        return kind + hashlib.sha256(data).digest(), left - len(data)
    except OSError as error:
        return f"error {error.errno}".encode(), left


def _walk(root: Path) -> Iterator[str]:
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in _NOT_WALKED)
        for name in sorted(files):
            yield str(Path(folder, name).relative_to(root))
