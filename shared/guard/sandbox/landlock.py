"""Confine this process with Landlock, then become the command; run as a script, it needs nothing of ours.

    python -I -S landlock.py JSON COMMAND…

JSON is `{"start": folder, "confine": bool, "network": bool, "read": [paths], "write": [paths], "scratch": folder,
"fresh": bool, "tend": bool, "filter": base64, "processes": n, "limits": {"FSIZE": bytes, …}}`. What is in neither
list cannot be opened. TCP is refused where the kernel knows how (ABI 4), signals and abstract sockets to processes
outside from ABI 6 on; the filter of system calls refuses the other sockets.
With `fresh` the command has a folder of its own in `scratch` as its home, which goes when it ends. With `tend` two
processes of ours stay above it and end all that it left running, also when one of them or their parent is killed.
Exit code 125 means that the confinement failed, and nothing was run.
"""

from __future__ import annotations

import binascii
import ctypes
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Iterable, Mapping, Sequence

TYPE_CHECKING = False  # as in typing, which takes long to import
if TYPE_CHECKING:
    from typing import Any

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # alike on all architectures but Alpha
_VERSION_FLAG, _PATH_RULE = 1, 1
_NO_NEW_PRIVILEGES, _DROP_CAPABILITY = 38, 24
_DIES_WITH_PARENT, _TAKES_ORPHANS, _FILTER = 1, 36, 22
_ENDING = 10.0  # seconds in which what is left must be gone

_EXECUTE, _WRITE, _READ, _LIST = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_ALL_FILES = (1 << 13) - 1  # ABI 1: execute to make_sym
_MAKE_DEVICES = 1 << 6 | 1 << 11  # a device node made by root would be a way out
_REFER, _TRUNCATE, _DEVICE = 1 << 13, 1 << 14, 1 << 15  # ABI 2, 3, 5
USABLE = 3  # before, a file could be emptied by its path, wherever it lies
_FILE_RIGHTS = _EXECUTE | _WRITE | _READ | _TRUNCATE | _DEVICE  # what may be granted on a file
_TCP = 0b11  # bind and connect
_SCOPES = 0b11  # abstract sockets and signals


class _Rules(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scopes", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("access", ctypes.c_uint64), ("folder", ctypes.c_int32))


def _call(number: int, *arguments: object) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    result = libc.syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return int(result)


def version() -> int:
    """The kernel's Landlock ABI; 0 where there is none."""
    if not sys.platform.startswith("linux"):
        return 0
    try:
        return _call(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION_FLAG))
    except OSError:
        return 0


def _handled(abi: int) -> int:
    rights = _ALL_FILES
    for since, right in ((2, _REFER), (3, _TRUNCATE), (5, _DEVICE)):
        rights |= right if abi >= since else 0
    return rights


def restrict(read: Iterable[str], write: Iterable[str], network: bool = False) -> None:
    """From now on, this process and its children can read beneath `read` and also change beneath `write`.

    Capabilities are given up as well, so that root is confined like anybody else after the next exec.

    Raises OSError where the kernel refuses; a path that does not exist is passed over.
    """
    abi = version()
    handled = _handled(abi)
    rules = _Rules(handled, _TCP if abi >= 4 and not network else 0, _SCOPES if abi >= 6 else 0)
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    ruleset = _call(_CREATE, ctypes.byref(rules), ctypes.c_size_t(size), ctypes.c_uint32(0))
    for path in read:
        _allow(ruleset, path, _EXECUTE | _READ | _LIST)
    for path in write:
        _allow(ruleset, path, handled & ~_MAKE_DEVICES)
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in range(64):
        libc.prctl(_DROP_CAPABILITY, capability, 0, 0, 0)
    libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    _call(_RESTRICT, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        granted = rights if os.path.isdir(path) else rights & _FILE_RIGHTS  # noqa: PTH112 - pathlib is slow to import
        rule = _Beneath(granted, fd)
        _call(_ADD, ctypes.c_int(ruleset), ctypes.c_int(_PATH_RULE), ctypes.byref(rule), ctypes.c_uint32(0))
    finally:
        os.close(fd)


def bound(limits: Mapping[str, int], processes: int) -> None:
    """Set resource limits, named as in the `resource` module without RLIMIT_.

    `processes` may be added to those that this user has now, since the kernel counts per user.
    """
    for name, value in {**limits, "NPROC": processes + _threads()}.items():
        which = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(which)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (value, value))


def _threads() -> int:
    """Threads of this user now; 0 where there is no /proc to count them."""
    count, user = 0, os.getuid()
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():  # noqa: PTH112, PTH208
        try:
            if name.isdigit() and os.stat(f"/proc/{name}").st_uid == user:  # noqa: PTH116
                count += len(os.listdir(f"/proc/{name}/task"))  # noqa: PTH208
        except OSError:
            continue  # it ended meanwhile
    return count


def main(arguments: Sequence[str]) -> int:
    """Confine, then exec; only comes back where it failed, or, with `tend`, when the command has ended."""
    plan, command = json.loads(arguments[0]), list(arguments[1:])
    try:
        os.chdir(plan["start"])
        if plan["fresh"]:
            plan["scratch"] = _fresh(plan["scratch"])
    except OSError as error:
        return _failed(error)
    if plan["tend"] and (child := _forked()):
        # Whoever ends us ends this process and not the next one, which then ends all there is.
        return _tended(child)
    if plan["tend"] and (child := _forked()):
        os.closerange(3, 4096)  # what a successor looks for is held by the command alone
        code = _tended(child)
        if plan["fresh"]:
            _removed(plan["scratch"])
        return code
    return _become(plan, command)


def _become(plan: Mapping[str, Any], command: list[str]) -> int:
    try:
        os.environ.update(HOME=plan["scratch"], TMPDIR=plan["scratch"])
        bound(plan["limits"], plan["processes"])
        if plan["confine"]:
            restrict(plan["read"], [*plan["write"], plan["scratch"]], plan["network"])
        if plan["filter"]:
            _filtered(binascii.a2b_base64(plan["filter"]))
    except (OSError, ValueError) as error:
        return _failed(error)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr, flush=True)
        return 127


def _failed(error: Exception) -> int:
    print(f"the sandbox could not be set up: {error}", file=sys.stderr, flush=True)
    return 125


def _fresh(folder: str) -> str:
    """A folder in it that nobody has seen."""
    own = f"{folder}/{os.urandom(12).hex()}"
    os.mkdir(own, 0o700)  # noqa: PTH102
    return own


def _removed(folder: str) -> None:
    try:
        os.rmdir(folder)  # noqa: PTH106
    except OSError:
        # It follows no links, and nobody is left who could change anything meanwhile.
        child = os.posix_spawn("/bin/rm", ["rm", "-rf", "--", folder], {})
        os.waitpid(child, 0)


def _filtered(program: bytes) -> None:
    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("words", ctypes.c_char_p))

    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    filter = Program(len(program) // 8, program)
    if libc.prctl(_FILTER, 2, ctypes.byref(filter), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "the filter of system calls was refused")


def _forked() -> int:
    """In the parent, which from now on takes over all that a child leaves behind, its id; in the child 0."""
    libc = ctypes.CDLL(None, use_errno=True)
    parent = os.getppid()
    libc.prctl(_TAKES_ORPHANS, 1, 0, 0, 0)
    libc.prctl(_DIES_WITH_PARENT, signal.SIGTERM, 0, 0, 0)
    signal.pthread_sigmask(signal.SIG_BLOCK, _WAITED)
    if os.getppid() != parent:  # it was killed just before
        os._exit(125)
    own = os.getpid()
    child = os.fork()
    if child:
        return child
    libc.prctl(_DIES_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _WAITED)
    os.setsid()
    if os.getppid() != own:
        os._exit(125)
    return 0


_WAITED = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def _tended(child: int) -> int:
    """Wait until it ends, or we are told to; end all that descends from us. Its exit code, as a shell tells it."""
    code = None
    while code is None and signal.sigwait(_WAITED) == signal.SIGCHLD:
        while (ended := _reaped()) is not None:
            if ended[0] == child:
                code = os.waitstatus_to_exitcode(ended[1])
    end = time.monotonic() + _ENDING
    while _children() and time.monotonic() < end:
        # All are stopped first, so that none makes another while its like are killed.
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in _descendants():
                try:
                    os.kill(pid, number)
                except OSError:
                    continue
        time.sleep(0.002)
    return 143 if code is None else code if code >= 0 else 128 - code


def _children() -> bool:
    """Whether any are left, after the dead ones were reaped; what a dead one leaves behind becomes one of them."""
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return True
        except ChildProcessError:
            return False


def _reaped() -> tuple[int, int] | None:
    try:
        pid, status = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return None
    return (pid, status) if pid else None


def _descendants() -> list[int]:
    """All processes below this one."""
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                    parents[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
            except OSError:
                continue  # it ended meanwhile
    found: list[int] = []
    layer = {os.getpid()}
    while layer := {pid for pid, parent in parents.items() if parent in layer}:
        found += layer
    return found


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))  # nothing is to be tidied up, and this is sooner over
