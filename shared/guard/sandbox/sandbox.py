"""The sandbox: what a shell command or git may touch, decided by the kernel and tried out at start.

`bwrap` gives the command a system of its own: the workspace, a read-only system, no network, no other
process. `landlock` confines its files and closes its sockets. `none` confines nothing and must be set by hand.
`refused` means that there is no sandbox, and that nothing may run. A command is never root: where we are, it runs
as a user of the sandbox's own, or is refused.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from shared import failpoints
from shared.errors import ToolError
from shared.guard.files.git_folder import private_folders
from shared.guard.processes.limits import DATA_BYTES, FILE_BYTES, PROCESSES
from shared.guard.sandbox import bubblewrap, cgroup, idmap, landlock, seccomp
from shared.guard.sandbox.bubblewrap import ETC, ETC_NETWORK, Paths, View, interpreter, programs

Confinement = Literal["bwrap", "landlock", "none", "refused"]

_TRY_SECONDS = 10
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")
# The pipes of its output are given to the user that a command runs as: it may open them by name.
_OPENED = (
    'p=; for n in 1 2; do [ -p "/proc/self/fd/$n" ] && p="$p /proc/self/fd/$n"; done; '
    '[ -z "$p" ] || chown {user} $p; '
)
_SYSTEM = ("/usr", "/nix", "/proc", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")


@dataclass(frozen=True)
class Sandbox:
    """What confines commands here; made by `probe`, which has seen it work."""

    mode: Confinement
    why: str
    program: str = ""
    group: cgroup.Group = field(default_factory=cgroup.Group)
    hidden: tuple[str, ...] = ()
    mapped: idmap.Mapped | None = None  # where we are root: how commands are another user
    namespace: bool = (
        True  # whether that user may make a user namespace of its own; else root makes the others
    )

    @classmethod
    def probe(cls, setting: str = "auto", hidden: Paths = ()) -> Sandbox:
        """Try what the setting (auto, bwrap, landlock, none) allows, the strongest first.

        `hidden` are folders that no command may see, such as our data folder, wherever they lie; but for the
        workspaces in them that it is given.
        """
        if setting == "none":
            root = ", as root," if os.getuid() == 0 else ""
            return cls("none", f"SANDBOX=none: commands run unconfined{root} and each one is asked for")
        places = tuple(str(Path(path).resolve()) for path in hidden)
        shared = cls("refused", "", group=cgroup.group(), hidden=places)
        told = []
        for mode, attempt in (("bwrap", _bubblewrap), ("landlock", _landlock)):
            if setting in ("auto", mode):
                found, why = attempt(shared)
                if found:
                    return found
                told.append(why)
        fix = "install bubblewrap (or promptdock[sandbox]) and allow user namespaces, or set SANDBOX=none"
        if os.getuid() == 0 and programs():
            fix = idmap.FIX.format(what="the data folder (PROMPTDOCK_HOME)")
        return replace(shared, why=f"no sandbox: {'; '.join(told) or f'SANDBOX={setting} is unknown'}; {fix}")

    @property
    def confines(self) -> bool:
        """Whether the kernel keeps commands to their workspace."""
        return self.mode in ("bwrap", "landlock")

    @property
    def offline(self) -> bool:
        """Whether commands without a network grant really reach no network, Redis included."""
        return self.mode == "bwrap"

    @property
    def short(self) -> str:
        """The mode in a word or two, for a table."""
        return f"{self.mode}, user {self.mapped.user}" if self.mapped else self.mode

    def explain(self) -> str:
        """One line for a person: what confines commands here, as whom, and which bounds hold."""
        if not self.confines:
            return self.why
        who = f"; never as root: as user {self.mapped.user}{self._inside}" if self.mapped else ""
        most, memory = self.group.processes, self.group.memory
        processes = f"{PROCESSES} processes each" + (f", {most} together" if most else "")
        each = f"{DATA_BYTES // 1024**3} GiB of memory a process"
        return f"{self.why}{who}; at most {processes}, {each}" + (
            f", {memory / 1024**3:.1f} GiB together" if memory else ", not bounded together"
        )

    @property
    def _inside(self) -> str:
        """How the user of commands is called where they run, if that is another name."""
        return (
            f", which is {bubblewrap.USER} to themselves" if self.mode == "bwrap" and self.namespace else ""
        )

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
        sockets: Paths = (),
        masked: Paths = (),
    ) -> list[str]:
        """The command that runs `argv` confined to `root` (where it starts) with an environment of its own.

        `protect` stays read-only although it lies in something writable: by default git's own folders of
        `root`, which are also made readable where they lie outside. Landlock cannot protect inside `root`.
        `bounded` counts it with all other commands; entering a group of version 2 for that costs some 10 ms.
        `sockets` are unix sockets that it may connect to; only bubblewrap can leave one open and not all. `masked`
        are files of which it sees nothing; Landlock cannot leave them out.
        It may run as long as it likes: what is behind it holds while this process lives, and it ends with its
        parent, and what it left running with it. Raises ToolError where there is no sandbox for it.
        """
        if self.mode == "refused":
            raise ToolError("commands cannot be run here", self.why, "")
        kept = private_folders(root) if protect is None else [Path(path) for path in protect]
        kept = [] if failpoints.without("git-read-only") else kept
        write = [*([root] if writable else []), *extra_write]
        network = network or failpoints.without("no-network")
        first = self._first() if bounded else ""
        if self.mode == "bwrap" and not failpoints.without("worktree-only"):
            view = View(
                root,
                writable,
                extra_read,
                extra_write,
                kept,
                sockets,
                self.hidden,
                network,
                environment("/tmp"),
                masked=masked,
            )
            return bubblewrap.command(self.program, argv, view, self.mapped, self.namespace, first)
        outside = [path for path in kept if not path.is_relative_to(root)]
        command = self._plain(argv, root, network, [root, *outside, *extra_read], write, bool(sockets))
        return ["/bin/sh", "-c", f'{first}exec "$@"', "sh", *command] if first else command

    def _first(self) -> str:
        """What a shell does before it becomes the command."""
        return self.group.entering + (_OPENED.format(user=self.mapped.user) if self.mapped else "")

    def _plain(
        self, argv: Sequence[str], root: Path, network: bool, read: Paths, write: Paths, sockets: bool
    ) -> list[str]:
        confine = self.mode == "landlock" and not failpoints.without("worktree-only")
        system = [*_SYSTEM, *interpreter()]
        # Programs may lie there, and so may our own data.
        if not any(Path(place).is_relative_to("/opt") for place in self.hidden):
            system.append("/opt")
        if confine:
            self._possible([*system, *read, *write], sockets)
        etc = [f"/etc/{name}" for name in (*ETC, *ETC_NETWORK, "passwd", "group")]
        closed = confine and not failpoints.without("landlock-sockets")
        filtered = seccomp.program(sockets=not closed, network=network or not closed) if confine else b""
        plan = {
            "start": str(root),
            "confine": confine,
            "network": network,
            "read": [*system, *etc, *map(str, read)],
            "write": [*_DEVICES, *map(str, write)],
            "scratch": str(scratch()),
            "fresh": not failpoints.without("scratch"),
            "tend": not failpoints.without("leftovers"),
            "filter": "" if failpoints.without("seccomp") else base64.b64encode(filtered).decode(),
            "processes": 1 << 20 if failpoints.without("process-bound") else PROCESSES,
            "limits": {"DATA": DATA_BYTES, "FSIZE": FILE_BYTES, "CORE": 0},
        }
        named = [f"{name}={value}" for name, value in environment(str(scratch())).items()]
        # A clean environment first: the interpreter below would read PYTHON… from another.
        helper = [sys.executable, "-I", "-S", str(Path(landlock.__file__)), json.dumps(plan)]
        return ["/usr/bin/env", "-i", *named, *helper, *argv]

    def _possible(self, granted: Paths, sockets: bool) -> None:
        """ToolError for what Landlock cannot do: leave something out of what it opens."""
        if sockets:
            raise ToolError(
                "this cannot be run here", "Landlock closes all unix sockets or none", "install bubblewrap"
            )
        for place in map(Path, self.hidden):
            if any(place.is_relative_to(path) for path in granted) and not failpoints.without("home-hidden"):
                raise ToolError(
                    "commands cannot be run here",
                    f"the data folder lies in what they may read ({place}), and Landlock cannot leave it out",
                    "install bubblewrap, or set PROMPTDOCK_HOME to a folder elsewhere",
                )


def environment(home: str) -> dict[str, str]:
    """The whole environment of a command whose home is that."""
    path = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"]
    path += [f"{prefix}/bin" for prefix in interpreter()]
    return {
        "PATH": ":".join(path),
        "HOME": home,
        "TMPDIR": home,
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        **({"TZ": os.environ["TZ"]} if "TZ" in os.environ else {}),
        "PYTHONDONTWRITEBYTECODE": "1",  # byte code is never part of the work, and two branches of it conflict
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
    }


def scratch() -> Path:
    """Where each call's own folder is made, which stands for home and /tmp where /tmp itself is everybody's."""
    folder = Path(tempfile.gettempdir()) / f"promptdock-scratch-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise ToolError("commands cannot be run here", f"{folder} belongs to somebody else", "remove it")
    return folder


def _bubblewrap(shared: Sandbox) -> tuple[Sandbox | None, str]:
    place = None
    if os.getuid() == 0 and not failpoints.without("root-user"):
        if not seccomp.known():  # a command could leave a file that runs as root
            return (
                None,
                "as root, bubblewrap needs a filter of system calls that is not there for this machine",
            )
        try:
            place = idmap.place()
            for folder in shared.hidden:  # worktrees lie in it
                place.check(Path(folder))
        except ToolError as error:
            return None, f"as root, bubblewrap works on no worktree ({error.why})"
        except OSError as error:
            return None, f"as root, bubblewrap cannot give commands another user ({idmap.why(error)})"
    why = "bubblewrap is not installed"
    for program, namespace in itertools.product(programs(), (True, False) if place else (True,)):
        text = "bubblewrap: own files, no network"
        text += "" if seccomp.known() else ", no filter of system calls"
        sandbox = replace(shared, mode="bwrap", program=program, why=text, mapped=place, namespace=namespace)
        failed = _fails(sandbox)
        if not failed:
            return sandbox, ""
        why = f"bubblewrap does not work here ({failed})"
    return None, why


def _landlock(shared: Sandbox) -> tuple[Sandbox | None, str]:
    abi = landlock.version()
    if abi < landlock.USABLE:
        return None, "the kernel offers no Landlock, or one that lets any file be emptied (before Linux 6.2)"
    if os.getuid() == 0 and not failpoints.without("root-user"):
        return None, "Landlock cannot give commands of root another user: run the workers as an ordinary one"
    if not seccomp.known():
        return None, "Landlock needs a filter of system calls that is not there for this machine"
    why = f"Landlock (ABI {abi}): own files, no sockets, but modes and times of all files of this user"
    sandbox = replace(shared, mode="landlock", why=f"{why}, so commands are asked for")
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
        if (root / "in").stat().st_uid != root.stat().st_uid:
            return "what is written belongs to somebody else"  # it was root after all, or somebody else
        return "it did not confine" if (root.parent / "out").exists() else ""
