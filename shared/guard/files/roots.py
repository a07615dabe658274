"""Which folders of this machine may be worked in: a root is a repository of a person's own, never more than that.

Never one, whoever asks: the data folder, what contains it and what lies in it (but for what we make there for this
purpose), PromptDock's own settings, the system, the folder of all that belongs to a person, and keys.
"""

from __future__ import annotations

import functools
import os
import pwd
from collections.abc import Iterable
from pathlib import Path

from shared import failpoints
from shared.errors import ToolError, UsageError
from shared.folders import HOME_NAME, config_folder, data_folder

# No folder in these, and none above them; of those with a dot only the folder itself.
_SYSTEM = """
    /bin /boot /dev /etc /lib /lib32 /lib64 /libx32 /lost+found /nix /proc /run /sbin /sys /usr /cores
    /var/lib /var/log /var/cache /var/spool /var/run /var/mail /var/backups
    /System /Library /Applications /private/etc
    /home/. /Users/. /opt/. /srv/. /mnt/. /media/. /tmp/. /var/tmp/.
""".split()  # noqa: SIM905
_BUT = (
    "/usr/src",
    "/usr/local/src",
    "/usr/home",
    "/run/media",
    "/run/user",
)  # where people have work all the same
_PRIVATE = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config/gcloud", ".config/gh", ".password-store"),
    *(".mozilla", ".local/share/keyrings", ".claude", "Library/Keychains"),
)  # fmt: skip


def forbidden(path: Path, home: Path) -> str:
    """Why this real path can be no root; "" where it can. `home` is the data folder."""
    if failpoints.without("roots"):
        return ""
    if _within(path, home):
        return "" if is_made(path, home) else "it is the data folder of this cluster, or lies in it"
    if why := _not_ours(path):
        return why
    if _within(home, path):
        outside = "end the cluster, and start it with PROMPTDOCK_HOME set to a folder outside"
        return f"it contains the data folder {home}: {outside}"
    return ""


def is_made(path: Path, home: Path) -> bool:
    """Whether this is a place in the data folder where repositories are made to be worked in."""
    if failpoints.without("roots"):
        return _within(path, home)
    return _below(path, home / "workspaces") or path == home / "scratch"


def _not_ours(path: Path) -> str:
    """What holds wherever the data folder lies."""
    if any(_within(Path(person), path) for person in _homes(path)):
        return "it is, or contains, the home folder of a person, with keys and settings in it"
    for own in (data_folder(), config_folder()):
        if _within(own, path) or _within(path, own):
            return f"PromptDock keeps its own things in {own}"
    if any(_within(path, Path(person, name)) for person in _homes(path) for name in _PRIVATE):
        return "keys and settings of a person lie there"
    for place, alone in _system():
        inside = path.is_relative_to(place) and not alone and not _is_work(path)
        if inside or place.is_relative_to(path):
            return f"it is, or contains, a folder of the system ({place})"
    return ""


@functools.cache
def _system() -> list[tuple[Path, bool]]:
    """Each folder of the system as it really lies, and whether what lies in it is no matter."""
    return [(Path(name.removesuffix("/.")).resolve(), name.endswith("/.")) for name in _SYSTEM]


def _is_work(path: Path) -> bool:
    return any(path.is_relative_to(but) and path != Path(but) for but in _BUT)


def check(path: Path, home: Path) -> Path:
    """The folder as it really lies; UsageError where it can be no root."""
    real = path.resolve()
    if why := forbidden(real, home):
        raise UsageError(
            f"{str(real)!r} cannot be a repository of the cluster", why,
            "give the folder of one repository of your own, outside of that",
        )  # fmt: skip
    return real


def opened(name: str, place: str, home: Path) -> Path:
    """A root that was registered earlier; ToolError where it may not be opened any more."""
    path = Path(place)
    if failpoints.without("roots"):
        return path
    try:
        real = path.resolve()
    except (OSError, RuntimeError):  # links in a circle
        real = path
    why = f"{path} is not what was registered: it leads to {real}" if real != path else ""
    why = why or ("" if holds(path, home) else forbidden(path, home))
    if why:
        raise ToolError(
            f"the repository {name!r} is not opened", why,
            "a person registers another folder: promptdock repo add PATH",
        )  # fmt: skip
    return path


def holds(path: Path, home: Path) -> bool:
    """Whether an earlier release made its data folder in this folder: then it is opened, and that stays hidden."""
    return home.name == HOME_NAME and _below(home, path) and not _not_ours(path)


def ours(path: Path) -> bool:
    """Whether the code that runs here lies in this folder: who writes there writes what the workers run."""
    return not failpoints.without("roots") and _within(Path(__file__), path)


def _homes(path: Path) -> Iterable[str]:
    """The home folders of whoever we are, and of whom the folder belongs to."""
    found = {os.path.expanduser("~")}  # noqa: PTH111 - it says "~" where there is none
    for user in (os.getuid(), _owner(path)):
        try:
            found.add(pwd.getpwuid(user).pw_dir)
        except KeyError:
            continue
    return {place for place in found if place.startswith("/") and place != "/"}


def _owner(path: Path) -> int:
    try:
        return path.stat().st_uid
    except OSError:
        return os.getuid()


def _within(path: Path, folder: Path) -> bool:
    """Whether `path` is `folder` or lies in it, by whatever names."""
    if path.is_relative_to(folder):
        return True
    return any(_same(place, folder) for place in (path, *path.parents)) if folder.exists() else False


def _below(path: Path, folder: Path) -> bool:
    return _within(path, folder) and not _same(path, folder) and path != folder


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False
