"""Folders of root, shown to another user: mounts on which files of their owner belong to the sandbox's user.

Where the workers are root, commands run as a user who owns nothing. What they may use is mounted once more, with
the ids of its owner and of that user exchanged (an idmapped mount, Linux 5.12): what a command writes there belongs
to the owner again. These mounts are in a mount namespace of ours that nobody else sees and that ends with us.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import os
import pwd
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from shared import failpoints
from shared.errors import ToolError

USERS = range(65_520, 65_534)  # no distribution gives these to anybody; the first that is free is taken
_MOST = 512  # mounts that are kept
_SECONDS = 10.0

_OPEN_TREE, _MOVE_MOUNT, _SET_ATTRIBUTES = 428, 429, 442  # alike on all architectures but Alpha
_HERE, _EMPTY_PATH, _RECURSIVE = -100, 0x1000, 0x8000
_CLONE, _CLOSE_ON_EXEC, _MOVE_EMPTY_PATH, _IDMAP = 1, 0o2000000, 4, 0x00100000
_NEW_MOUNTS, _OWN_FOLDER = 0x00020000, 0x00000200  # CLONE_NEWNS, CLONE_FS
_SLAVE, _RECURSE, _DETACH = 1 << 19, 1 << 14, 2
_ALL = 2**32 - 1
_COVERED = ("/sys", "/mnt", "/media", "/srv")  # of no use to a command
_WHY = {
    errno.ENOSYS: "the kernel has no idmapped mounts, which came with Linux 5.12",
    errno.EINVAL: "its file system has no idmapped mounts",
    errno.EPERM: "root may make no mounts here, as in most containers",
}
FIX = "run the workers as an ordinary user, or keep {what} on ext4, xfs, btrfs or tmpfs"
T = TypeVar("T")

# A process in a user namespace of its own, which lives until its standard input ends.
_HOLDER = "import ctypes,sys\nprint(ctypes.CDLL(None).unshare(0x10000000), flush=True)\nsys.stdin.read()"


class _Attributes(ctypes.Structure):
    _fields_ = (
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("namespace", ctypes.c_uint64),
    )


@functools.cache
def user() -> int:
    """The id of the sandbox's own user and group: one that nobody here has."""
    for number in USERS:
        try:
            pwd.getpwuid(number)
        except KeyError:
            return number
    raise OSError(0, f"the users {USERS.start} to {USERS.stop - 1} are all taken")


class Mapped:
    """A private place of such mounts. Made once for a process, by root; OSError where the kernel cannot."""

    def __init__(self) -> None:
        self.user = user()
        self._lock = threading.Lock()
        self._namespaces: dict[tuple[int, int], int] = {}  # by the owner and group of what is shown
        self._shown: OrderedDict[tuple[object, ...], str] = OrderedDict()
        self._count = 0
        # In the namespace alone it is covered by ours; any user may pass through it.
        self._place = next((one for one in _COVERED if os.path.isdir(one)), "/home")  # noqa: PTH112
        self._fd: int = _aside(self._make)

    @property
    def entering(self) -> list[str]:
        """The words before a command that put it into the namespace, as the sandbox's user."""
        place = f"/proc/{os.getpid()}/fd/{self._fd}"
        return [_nsenter(), f"--mount={place}", f"--setgid={self.user}", f"--setuid={self.user}", "--"]

    @property
    def looking(self) -> list[str]:
        """The same as root, for what gives root up later."""
        return [*self.entering[:2], "--"]

    def sources(self, paths: Iterable[Path | str]) -> dict[str, str]:
        """Where each of these paths is to be found in the namespace; ToolError where one cannot be shown."""
        found: dict[str, str] = {}
        tops: list[tuple[Path, str, tuple[int, ...]]] = []
        for path in sorted({Path(one) for one in paths}, key=lambda one: len(one.parts)):
            with contextlib.suppress(FileNotFoundError):
                what = path.stat()
                owner = (what.st_dev, what.st_uid, what.st_gid)
                # What lies in another one that is shown needs no mount of its own.
                above = next((top for top in tops if path.is_relative_to(top[0]) and top[2] == owner), None)
                if above is None:
                    above = (path, self._show(path, what), owner)
                    tops.append(above)
                found[str(path)] = str(Path(above[1], path.relative_to(above[0])))
        return found

    def check(self, folder: Path) -> None:
        """ToolError where nothing of the file system that it lies on can be shown."""
        there = next(place for place in (folder, *folder.parents) if place.exists())
        try:
            os.close(self._mount(there, there.stat(), 0))
        except OSError as error:
            raise _refused(folder, error) from None

    def _make(self) -> int:
        _call(_libc().unshare, _NEW_MOUNTS)
        # What the machine mounts and unmounts later is seen here as well, and nothing of ours there.
        _call(_libc().mount, None, b"/", None, _SLAVE | _RECURSE, None)
        _call(_libc().mount, b"tmpfs", self._place.encode(), b"tmpfs", 0, b"mode=0755,size=1m")
        return os.open("/proc/thread-self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)

    def _show(self, path: Path, what: os.stat_result) -> str:
        key = (str(path), what.st_dev, what.st_ino, what.st_uid, what.st_gid)
        with self._lock:
            if key in self._shown:
                self._shown.move_to_end(key)
                return self._shown[key]
            try:
                mount = self._mount(path, what)
                try:
                    self._count += 1
                    target = f"{self._place}/{self._count}"
                    old = self._shown.popitem(last=False)[1] if len(self._shown) >= _MOST else ""
                    _aside(lambda: self._attach(mount, target, path.is_dir(), old))
                finally:
                    os.close(mount)
            except OSError as error:
                raise _refused(path, error) from None
            self._shown[key] = target
            return target

    def _mount(self, path: Path, what: os.stat_result, all: int = _RECURSIVE) -> int:
        """A mount of the path that is attached nowhere yet, with the ids exchanged."""
        if failpoints.without("idmapped-mounts"):
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        name = ctypes.c_char_p(os.fsencode(path))
        flags = ctypes.c_uint(_CLONE | _CLOSE_ON_EXEC | all)
        mount = _call(_libc().syscall, ctypes.c_long(_OPEN_TREE), ctypes.c_int(_HERE), name, flags)
        try:
            attributes = _Attributes(_IDMAP, 0, 0, self._namespace(what.st_uid, what.st_gid))
            _call(
                _libc().syscall, ctypes.c_long(_SET_ATTRIBUTES), ctypes.c_int(mount), ctypes.c_char_p(b""),
                ctypes.c_uint(_EMPTY_PATH | all), ctypes.byref(attributes), ctypes.c_size_t(32),
            )  # fmt: skip
        except BaseException:
            os.close(mount)
            raise
        return mount

    def _attach(self, mount: int, target: str, folder: bool, old: str) -> None:
        _call(_libc().unshare, _OWN_FOLDER)
        _call(_libc().setns, self._fd, _NEW_MOUNTS)
        if folder:
            os.mkdir(target)  # noqa: PTH102
        else:
            os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644))
        _call(
            _libc().syscall, ctypes.c_long(_MOVE_MOUNT), ctypes.c_int(mount), ctypes.c_char_p(b""),
            ctypes.c_int(_HERE), ctypes.c_char_p(target.encode()), ctypes.c_uint(_MOVE_EMPTY_PATH),
        )  # fmt: skip
        if old:
            _call(_libc().umount2, old.encode(), _DETACH)
            os.rmdir(old) if os.path.isdir(old) else os.unlink(old)  # noqa: PTH106, PTH108, PTH112

    def _namespace(self, owner: int, group: int) -> int:
        """A user namespace in which the owner's id and ours are exchanged, and all others are themselves."""
        if (owner, group) not in self._namespaces:
            with _held() as pid:
                Path(f"/proc/{pid}/gid_map").write_text(_exchanged(group, self.user))
                Path(f"/proc/{pid}/uid_map").write_text(_exchanged(owner, self.user))
                self._namespaces[owner, group] = os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
        return self._namespaces[owner, group]


def why(error: OSError) -> str:
    """What is missing, in words."""
    return _WHY.get(error.errno or 0, error.strerror or str(error))


def _refused(path: Path, error: OSError) -> ToolError:
    text = f"the workers are root, and {path} cannot be shown to another user: {why(error)}"
    return ToolError("commands cannot be run here", text, FIX.format(what="it"))


@functools.cache
def place() -> Mapped:
    """The one of this process."""
    return Mapped()


def _exchanged(one: int, other: int) -> str:
    """A table of ids: on the disk, as shown, how many."""
    low, high = sorted((one, other))
    if low == high:
        return f"0 0 {_ALL}\n"
    rows = [(0, 0, low), (low, high, 1), (low + 1, low + 1, high - low - 1), (high, low, 1)]
    rows.append((high + 1, high + 1, _ALL - high - 1))
    return "".join(f"{there} {shown} {count}\n" for there, shown, count in rows if count)


@contextlib.contextmanager
def _held() -> Iterator[int]:
    """A process that has just made a user namespace."""
    argv = [sys.executable, "-I", "-S", "-c", _HOLDER]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={}) as holder:
        try:
            assert holder.stdout
            if holder.stdout.readline().strip() != b"0":
                raise OSError(0, "the kernel gives no user namespaces")
            yield holder.pid
        finally:
            holder.kill()


@functools.cache
def _nsenter() -> str:
    import shutil

    if (found := shutil.which("nsenter", path="/usr/bin:/bin:/usr/sbin:/sbin:/usr/local/bin")) is None:
        raise OSError(0, "nsenter (of util-linux) is not installed")
    return found


def _aside(work: Callable[[], T]) -> T:
    """Do it in a thread that ends with it: namespaces are changed for one thread, and never changed back."""
    done: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(work())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, name="mounts", daemon=True)
    thread.start()
    thread.join(_SECONDS)
    if failed:
        raise failed[0]
    if not done:
        raise OSError(0, "the kernel does not answer")
    return done[0]


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _call(function: Callable[..., int], *arguments: object) -> int:
    result = function(*arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
