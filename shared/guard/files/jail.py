"""The jail: every file access of a tool happens beneath one root, and the kernel sees to it."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import secrets
import stat
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from shared import failpoints
from shared.errors import Busy, ToolError
from shared.folders import HOME_NAME
from shared.guard.files import beneath
from shared.guard.files import lock as flock
from shared.guard.permissions import secret_files

FileKind = Literal["file", "dir", "link", "special"]

READ_LIMIT = WRITE_LIMIT = 10 * 1024 * 1024
LIST_LIMIT = 100_000
PATH_LIMIT = 1024  # bytes; the system takes more, but few programs do
LOCK_SECONDS = 30.0

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_UNEXPANDED = re.compile(r"~.*|\$\{?[A-Z_][A-Z0-9_]*\}?")
# What git itself takes for its folder on some file system: case folded, and the short name of Windows.
_GIT_NAMES = {".git", "git~1"}

_REASONS = {
    errno.ENOENT: ("there is no such file or folder", "list the folder to see what is there"),
    errno.EXDEV: ("the path leads out of the workspace", "use a path inside it"),
    errno.ELOOP: ("the path goes through a symbolic link that is not followed", "use the real path"),
    errno.ENOTDIR: ("a part of the path is not a folder", "list the folder to see what is there"),
    errno.EISDIR: ("it is a folder", "name a file in it"),
    errno.ENOTEMPTY: ("the folder is not empty", "remove what is in it first"),
    errno.EACCES: ("the operating system does not allow it", ""),
    errno.EPERM: ("the operating system does not allow it", ""),
    errno.ENAMETOOLONG: ("the name is too long", "use a shorter one"),
    errno.ENXIO: ("it is a special file", "only regular files can be used"),
    errno.ENOSPC: ("the disk is full", "free some space"),
    errno.EROFS: ("the file system is read-only", ""),
}


@dataclass(frozen=True)
class JailEntry:
    """A name in a folder; `size` in bytes is that of files, else 0. A link is not followed."""

    name: str
    kind: FileKind
    size: int


@dataclass(frozen=True)
class Stat:
    """What a path is; `modified` in seconds since the epoch."""

    kind: FileKind
    size: int
    modified: float
    mode: int
    links: int


Entries = list[JailEntry]  # named here, since inside the class `list` is the method
Parts = list[str]


class Jail:
    """File access beneath `root`. Methods are synchronous and short; paths are relative, with `/`.

    Every refusal is a ToolError that names the rule and the path as it was given, never where the
    workspace lies on this machine. Names are taken literally: nothing is decoded, expanded or normalised.
    """

    def __init__(self, root: Path, writable: bool = False, locks: Path | None = None) -> None:
        """`locks` is a folder outside of every workspace that all processes of this machine share."""
        self.root, self.writable = Path(root), writable
        self._locks = locks or Path(tempfile.gettempdir()) / f"promptdock-locks-{os.getuid()}"

    def read(self, path: str, limit_bytes: int = READ_LIMIT, secrets: bool = False) -> bytes:
        """The whole content of a regular file of at most `limit_bytes`; one that holds secrets only with `secrets`."""
        with self._opened(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY) as fd:
            what = os.fstat(fd)
            if stat.S_ISDIR(what.st_mode):
                raise OSError(errno.EISDIR, "")
            if not stat.S_ISREG(what.st_mode):
                raise OSError(errno.ENXIO, "")
            if HOME_NAME in Path(lies := self._lies(fd, path)).parts and not failpoints.without(
                "home-hidden"
            ):
                raise ToolError(f"{path!r} is not read", "it lies in the data folder of a cluster", "")
            if not secrets and secret_files.is_secret(lies):
                raise ToolError(
                    f"{path!r} is not read", "it holds secrets, by its name",
                    "a person is asked where a tool that reads files is given its own path",
                )  # fmt: skip
            with os.fdopen(fd, "rb", closefd=False) as file:
                data = file.read(limit_bytes + 1)
        if len(data) > limit_bytes:
            raise ToolError(
                f"{path!r} is too large",
                f"it has more than {limit_bytes} bytes",
                "read or search a part of it",
            )
        return data

    def _lies(self, fd: int, path: str) -> str:
        """Where an open file really lies beneath the root, whatever links led to it."""
        try:
            real = Path(f"/proc/self/fd/{fd}").readlink()
        except OSError:  # no such folder here: then no link is followed either
            return path
        root = self.root.resolve()
        return str(real.relative_to(root)) if real.is_relative_to(root) else str(real)

    def write(self, path: str, data: bytes) -> None:
        """Replace or create a file, all or nothing; missing folders above it are made, its mode is kept."""
        if len(data) > WRITE_LIMIT:
            raise ToolError(f"{path!r} would be too large", f"the limit is {WRITE_LIMIT} bytes", "write less")
        with self._parent(path, create=True) as (folder, name):
            mode = self._replaceable(folder, name)
            spare = f".promptdock-{secrets.token_hex(8)}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            fd = os.open(spare, flags, 0o666, dir_fd=folder)
            try:
                with os.fdopen(fd, "wb") as file:
                    file.write(data)
                    if mode is not None:
                        os.fchmod(file.fileno(), mode)
                os.rename(spare, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(spare, dir_fd=folder)
                raise

    def may_write(self, path: str) -> None:
        """ToolError where `path` could not be written; folders that it needs are made, as by `write`."""
        with self._parent(path, create=True) as (folder, name):
            self._replaceable(folder, name)

    def list(self, path: str = ".") -> Entries:
        """What a folder holds, by name; bytes of a name that are no UTF-8 are shown as escapes."""
        entries: Entries = []
        with self._opened(path, os.O_RDONLY | os.O_DIRECTORY) as fd, os.scandir(fd) as found:
            for item in found:
                if len(entries) >= LIST_LIMIT:
                    raise ToolError(
                        f"{path!r} holds more than {LIST_LIMIT} names", "", "list a folder below it"
                    )
                with contextlib.suppress(FileNotFoundError):
                    what = item.stat(follow_symlinks=False)
                    kind = _kind(what.st_mode)
                    name = os.fsencode(item.name).decode("utf-8", "backslashreplace")
                    entries.append(JailEntry(name, kind, what.st_size if kind == "file" else 0))
        return sorted(entries, key=lambda entry: entry.name)

    def stat(self, path: str) -> Stat:
        """What the path is, of any kind, without opening what it names."""
        with self._opened(path, beneath.PATH_ONLY) as fd:
            what = os.fstat(fd)
        return Stat(
            _kind(what.st_mode), what.st_size, what.st_mtime, stat.S_IMODE(what.st_mode), what.st_nlink
        )

    def exists(self, path: str) -> bool:
        """Whether something is there; a path that may not be used is a ToolError, not False."""
        parts = self._parts(path)
        root = self._root(path)
        try:
            os.close(beneath.open_beneath(root, path, parts, beneath.PATH_ONLY))
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise _told(path, error) from None
        finally:
            os.close(root)
        return True

    def remove(self, path: str) -> None:
        """Remove a file, a link (not what it leads to) or an empty folder."""
        with self._parent(path, create=False) as (folder, name):
            mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode):
                os.rmdir(name, dir_fd=folder)
            else:
                os.unlink(name, dir_fd=folder)

    @contextlib.asynccontextmanager
    async def lock(self, path: str, seconds: float = LOCK_SECONDS) -> AsyncIterator[None]:
        """Hold the one lock that this file has on this machine: around a read that a write follows."""
        file = self._lock_file(path)
        try:
            fd = await flock.acquire(file, seconds)
        except Busy as error:
            raise ToolError(
                f"{path[:200]!r} cannot be used now: {error.what}", error.why, error.fix
            ) from None
        try:
            yield
        finally:
            # Removed while it is held: whoever opened it before sees that it is gone and takes a new one.
            file.unlink(missing_ok=True)
            os.close(fd)

    def _lock_file(self, path: str) -> Path:
        parts = self._parts(path)
        where = self.root.stat()
        key = f"{where.st_dev}:{where.st_ino}:{'/'.join(parts)}".encode("utf-8", "surrogatepass")
        self._locks.mkdir(mode=0o700, parents=True, exist_ok=True)
        what = self._locks.lstat()
        if not stat.S_ISDIR(what.st_mode) or what.st_uid != os.getuid():
            raise ToolError(
                f"{path[:200]!r} cannot be used",
                f"{self._locks} belongs to somebody else",
                "remove that folder",
            )
        return self._locks / hashlib.sha256(key).hexdigest()[:32]

    def _parts(self, path: str) -> Parts:
        """The path without `.` and `..`; ToolError where its form alone breaks a rule."""
        if rule := _broken_rule(path):
            raise ToolError(f"{path[:200]!r} cannot be used", rule, "give a path relative to the workspace")
        parts: Parts = []
        for part in path.split("/"):
            if part == ".." and not parts:
                raise _told(path, OSError(errno.EXDEV, ""))
            if part == "..":
                parts.pop()
            elif part not in ("", "."):
                parts.append(part)
        return parts

    def _root(self, path: str) -> int:
        try:
            return os.open(self.root, beneath.FOLDER)
        except OSError:
            raise ToolError(
                f"{path!r} cannot be used", "the workspace itself is gone", "ask the person"
            ) from None

    @contextlib.contextmanager
    def _opened(self, path: str, flags: int) -> Iterator[int]:
        parts = self._parts(path)
        root = self._root(path)
        try:
            fd = beneath.open_beneath(root, path, parts, flags)
            try:
                yield fd
            finally:
                os.close(fd)
        except OSError as error:
            raise _told(path, error) from None
        finally:
            os.close(root)

    @contextlib.contextmanager
    def _parent(self, path: str, create: bool) -> Iterator[tuple[int, str]]:
        """The folder to write in and the last name; changes never go through a link, wherever it leads."""
        parts = self._parts(path)
        if not self.writable:
            raise ToolError(f"{path!r} cannot be changed", "this workspace is read-only", "")
        if not parts:
            raise ToolError(f"{path!r} cannot be changed", "it is the workspace itself", "name a file in it")
        if any(part.casefold() in _GIT_NAMES for part in parts) and not failpoints.without("git-folder"):
            raise ToolError(
                f"{path!r} cannot be changed", "nothing in .git may be written", "use the git tools"
            )
        folder = self._root(path)
        try:
            for name in parts[:-1]:
                below = _enter(folder, name, create)
                os.close(folder)
                folder = below
            yield folder, parts[-1]
        except OSError as error:
            raise _told(path, error) from None
        finally:
            os.close(folder)

    @staticmethod
    def _replaceable(folder: int, name: str) -> int | None:
        """The mode of the file that will be replaced, None for a new one; OSError if it must not be."""
        try:
            what = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        if stat.S_ISDIR(what.st_mode):
            raise OSError(errno.EISDIR, "")
        if stat.S_ISLNK(what.st_mode):
            raise OSError(errno.ELOOP, "")
        if not stat.S_ISREG(what.st_mode):
            raise OSError(errno.ENXIO, "")
        if what.st_nlink > 1 and not failpoints.without("hard-links"):
            raise ToolError(
                f"{name!r} cannot be changed",
                "the file has another name (a hard link)",
                "make a copy and change that",
            )
        return stat.S_IMODE(what.st_mode)


def _broken_rule(path: str) -> str:
    if not path or not path.strip():
        return "the path is empty"
    if "\0" in path:
        return "a path holds no NUL"
    if _SCHEME.match(path):
        return "it is an address with a scheme, not a path"
    if path.startswith("/"):
        return "absolute paths are not allowed"
    parts = path.split("/")
    if len(parts) > 1 and _UNEXPANDED.fullmatch(parts[0]):
        return "~ and variables are not expanded"
    if any(len(part) > 2 and not part.strip(".") for part in parts):
        return "a name of dots alone is not allowed"
    try:
        return "the path is too long" if len(os.fsencode(path)) > PATH_LIMIT else ""
    except UnicodeEncodeError:
        return "the path is no valid text"


def _enter(folder: int, name: str, create: bool) -> int:
    if create:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, dir_fd=folder)
    return beneath.step(folder, name)


def _kind(mode: int) -> FileKind:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "dir"
    return "link" if stat.S_ISLNK(mode) else "special"


def _told(path: str, error: OSError) -> ToolError:
    why, fix = _REASONS.get(error.errno or 0, (os.strerror(error.errno or errno.EIO).lower(), ""))
    return ToolError(f"{path[:200]!r} cannot be used", why, fix)
