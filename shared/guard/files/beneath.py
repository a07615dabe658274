"""Open files beneath a folder with the kernel as the judge, so that no race between check and use exists."""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import stat
import sys
from collections.abc import Sequence

from shared import failpoints

# One number on all architectures but Alpha: system calls from 424 on are numbered alike.
_OPENAT2 = 437
_NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x02, 0x04, 0x08
_TRIES = 64  # EAGAIN: something was renamed while the kernel walked a "..", and it could not be sure

PATH_ONLY = getattr(os, "O_PATH", os.O_RDONLY)
FOLDER = PATH_ONLY | os.O_DIRECTORY | os.O_CLOEXEC


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _openat2(folder: int, path: str, flags: int, resolve: int) -> int:
    how = _How(flags | os.O_CLOEXEC, 0, resolve)
    for _ in range(_TRIES):
        fd = _libc().syscall(
            ctypes.c_long(_OPENAT2),
            ctypes.c_int(folder),
            ctypes.c_char_p(os.fsencode(path)),
            ctypes.byref(how),
            ctypes.c_size_t(ctypes.sizeof(how)),
        )
        if fd >= 0:
            return int(fd)
        if ctypes.get_errno() not in (errno.EAGAIN, errno.EINTR):
            break
    code = ctypes.get_errno()
    raise OSError(code, os.strerror(code))


@functools.cache
def available() -> bool:
    """Whether this kernel has openat2 and lets us call it (older containers filter it)."""
    if not sys.platform.startswith("linux"):
        return False
    here = os.open(".", FOLDER)
    try:
        os.close(_openat2(here, ".", FOLDER, _BENEATH))
    except OSError:
        return False
    finally:
        os.close(here)
    return True


def step(folder: int, name: str) -> int:
    """The folder `name` directly in `folder`, never through a link (ELOOP)."""
    try:
        return os.open(name, FOLDER | os.O_NOFOLLOW, dir_fd=folder)
    except NotADirectoryError:
        if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
        raise


def walk(root: int, parts: Sequence[str], flags: int) -> int:
    """Open `parts` one after another, following no link at all; for kernels without openat2."""
    folder = os.dup(root)
    try:
        for name in parts[:-1]:
            below = step(folder, name)
            os.close(folder)
            folder = below
        return os.open(parts[-1] if parts else ".", flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    finally:
        os.close(folder)


def open_beneath(root: int, path: str, parts: Sequence[str], flags: int) -> int:
    """Open `path` for reading; links are followed while they stay beneath `root`.

    `parts` is the same path without `.` and `..`, for kernels that need the walk.
    Raises OSError: EXDEV and ELOOP mean that the path leads out of `root`.
    """
    if failpoints.without("beneath"):
        return os.open(path, flags | os.O_CLOEXEC, dir_fd=root)
    if available():
        return _openat2(root, path, flags, _BENEATH | _NO_MAGICLINKS)
    return walk(root, parts, flags)
