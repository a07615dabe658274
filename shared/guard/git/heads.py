"""Where branches stand, read from git's own files: no process for what is asked many times in every task.

Only full names that point to commits alone are read here (HEAD, MERGE_HEAD, branches), and only as git writes
them. For anything else, and for a repository that keeps them otherwise, the answer is None: ask git.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from shared.guard.files.git_folder import Layout

_OWN = ("HEAD", "MERGE_HEAD")  # of one checkout; branches are the whole repository's
_SHARED = ("refs/heads/", "refs/remotes/")
_ID = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_PLAIN = re.compile(r"(?:(?!\.\.)[^\x00-\x20~^:?*\[\\\x7f])+")  # nothing that git takes for more than a name
_LONGEST = 4096
_PACKED = 64 * 1024 * 1024
_DEPTH = 5  # names that lead to names, as git follows them


def commit(where: Layout, name: str) -> str | None:
    """The id of the commit that a name stands for; "" for one that does not exist."""
    for _ in range(_DEPTH):
        if (found := _read(where, name)) is None:
            return None
        if not found.startswith(b"ref: "):
            return found.decode()
        name = os.fsdecode(found[5:])
    return None


def target(where: Layout, name: str) -> str | None:
    """The full name that HEAD, or a remote's HEAD, leads to; "" where it leads to no name."""
    found = _read(where, name)
    if found is None or not found.startswith(b"ref: "):
        return None if found is None else ""
    return os.fsdecode(found[5:])


def _read(where: Layout, name: str) -> bytes | None:
    """What stands there: an id, `ref: ` and another name, or nothing."""
    if name not in _OWN and not (name.startswith(_SHARED) and _PLAIN.fullmatch(name)):
        return None
    if (where.common / "reftable").exists():
        return None
    # The single file first, as git does: whoever packs it writes the pack before that file goes.
    found = _loose((where.folder if name in _OWN else where.common) / name)
    if found == b"" and name not in _OWN:
        found = _packed(where.common / "packed-refs", name)
    if not found or found.startswith(b"ref: "):
        return found
    return found if _ID.fullmatch(found) else None


def _loose(file: Path) -> bytes | None:
    try:
        # A folder has the names below it; a link is how git wrote such names long ago.
        if not stat.S_ISREG(file.lstat().st_mode):
            return b"" if file.is_dir() and not file.is_symlink() else None
        with file.open("rb") as opened:
            line = opened.read(_LONGEST)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except OSError:
        return None
    # Cut off by a crash of the machine, or a merge of several branches: that is git's to read.
    return line.rstrip(b"\n") if line.endswith(b"\n") and line.count(b"\n") == 1 else None


def _packed(file: Path, name: str) -> bytes | None:
    try:
        if file.is_symlink() or file.stat().st_size > _PACKED:
            return None
        data = file.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError:
        return None
    end = data.find(b" " + os.fsencode(name) + b"\n")
    return data[data.rfind(b"\n", 0, end) + 1 : end] if end >= 0 else b""
