"""Folders that decide something: where data and decisions lie, and whose `.env` and `.promptdock` count.

A folder may come from anybody: cloned, unpacked, shared. So what lies in it counts once its owner trusted it, and
even then its `.env` sets nothing that says where to connect, what confines commands, or who may allow what.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import os
import re
import stat
import sys
from pathlib import Path
from typing import Any

from shared import failpoints

HOME_NAME = ".promptdock"
SERVERS = "mcp.json"  # names programs to be started: it counts as it was when its folder was trusted
FOLDER = "PROMPTDOCK_FOLDER"  # set by our own starts: for which folder they work, since they stand elsewhere
_TREE = Path(__file__).resolve().parents[1]

# What the `.env` of a trusted folder may set; all else counts from the environment and from the data folder's own.
FREE = re.compile(
    r"ANTHROPIC_API_KEY|OPENAI_API_KEY|OLLAMA_API_KEY|PROMPTDOCK_MODEL|[A-Z][A-Z0-9_]*_MODEL|LOG_LEVEL|AGENT_NAME"
    r"|CONVERSATION_TIMEOUT|TOOL_CALL_TIMEOUT|MODEL_SILENCE|MODEL_PATIENCE|MODEL_FALLBACK|PROMPTDOCK_ENV|PROMPTDOCK_LEASE|TOOL_MODE"
    r"|BUDGET_(TURN|SESSION|DAY)"
)
Values = dict[str, str]


def data_folder() -> Path:
    """Where this user's programs keep data: all data folders that nobody placed elsewhere lie in it."""
    return _users("XDG_DATA_HOME", ".local/share", "Application Support")


def config_folder() -> Path:
    """Where this user's decisions lie, such as which folders are trusted."""
    return _users("XDG_CONFIG_HOME", ".config", "Preferences")


def _users(variable: str, usual: str, library: str) -> Path:
    given = Path(os.environ.get(variable) or "")
    if not given.is_absolute():  # the rule of XDG: a relative one does not count
        home = Path(os.path.expanduser("~"))  # noqa: PTH111 - Path.home() fails where there is none
        given = home / "Library" / library if sys.platform == "darwin" else home / usual
    return (given / "promptdock").resolve()


def here() -> Path:
    """The folder for which this process works."""
    return Path(os.environ.get(FOLDER, "")).resolve()


def find_home(start: Path | None = None) -> Path:
    """The data folder of the nearest folder, `start` or above it, that has one; else the one to make for `start`.

    It lies below the user's own data folder; one that an earlier release made in a trusted folder is used as well.
    """
    folder = (start or here()).resolve()
    above = (folder, *folder.parents)
    old = (one / HOME_NAME for one in above if _own(one / HOME_NAME) and is_trusted(one))
    made = (place for one in above if (place := _place(one)).is_dir())
    return next(old, None) or next(made, None) or _place(folder)


def homes() -> list[Path]:
    """The data folders of this user that can be found: those below the user's own, and those in trusted folders."""
    try:
        made = sorted(data_folder().iterdir())
    except OSError:
        made = []
    beside = [Path(folder) / HOME_NAME for folder in _known() if is_trusted(Path(folder))]
    return [one for one in (*made, *beside) if not one.is_symlink() and _own(one)]


def _place(folder: Path) -> Path:
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", folder.name).strip("-.")[:40] or "root"
    return data_folder() / f"{plain}-{hashlib.sha256(os.fsencode(folder)).hexdigest()[:8]}"


# Trust ----------------------------------------------------------------------------------------------


def is_trusted(folder: Path) -> bool:
    """Whether its owner trusted this very folder; the one that our code comes from needs no trust."""
    if failpoints.without("folder-trust") or folder == _TREE:
        return True
    known = _known().get(str(folder))
    return known is not None and known == _identity(folder)


def private(path: str, flags: int) -> int:
    """An `opener` of `open`: what it makes is for its owner alone, and what is there becomes so."""
    mode = 0o666 if failpoints.without("private-files") else 0o600
    opened = os.open(path, flags, mode)
    if os.fstat(opened).st_uid == os.getuid() and not failpoints.without("private-files"):
        os.fchmod(opened, mode)
    return opened


def trust(folder: Path) -> None:
    """Remember that this folder is trusted; PermissionError where another user can change what lies in it."""
    if not (_own(folder) or failpoints.without("folder-trust")):
        raise PermissionError(errno.EPERM, "it belongs to another user", str(folder))
    file = trust_file()
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    kept = {**_known(), str(folder): _identity(folder)}
    kept.pop(str(folder / SERVERS), None)
    with contextlib.suppress(OSError):
        kept[str(folder / SERVERS)] = _digest((folder / SERVERS).read_bytes())
    half = file.with_name(f".{file.name}.{os.getpid()}")
    with os.fdopen(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
        json.dump(kept, out, indent=1)
    half.replace(file)


def counts(file: Path, data: bytes) -> bool:
    """Whether a file that starts programs lies in a trusted folder, and is as it was when that was said."""
    if failpoints.without("folder-trust"):
        return True
    return is_trusted(file.parent) and _known().get(str(file)) == _digest(data)


def is_news(about: str, text: str) -> bool:
    """Whether this was not said yet of a folder, in these very words; from now on it was."""
    file = config_folder() / "told.json"
    try:
        known = json.loads(file.read_text("utf-8"))
        known = known if isinstance(known, dict) else {}
    except (OSError, ValueError):
        known = {}
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    if known.get(about) == digest:
        return False
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        half = file.with_name(f".{file.name}.{os.getpid()}")
        half.write_text(json.dumps({**dict(list(known.items())[-200:]), about: digest}), "utf-8")
        half.replace(file)
    return True


def _own(folder: Path) -> bool:
    """Whether it is a folder of the user who runs this."""
    try:
        what = folder.stat()
    except OSError:
        return False
    return stat.S_ISDIR(what.st_mode) and what.st_uid == os.geteuid()


def trust_file() -> Path:
    """Where it is kept which folders are trusted."""
    return config_folder() / "trusted.json"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _known() -> dict[str, Any]:
    try:
        what = trust_file().stat()
        if what.st_uid != os.getuid() or what.st_mode & 0o022:
            return {}
        found = json.loads(trust_file().read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _identity(folder: Path) -> list[int]:
    try:
        what = folder.stat()
    except OSError:
        return []
    return [what.st_ino, what.st_uid]


def untrusted() -> dict[Path, str]:
    """Folders that would decide something and are not trusted, and in words what they would bring."""
    folder, found = here(), dict[Path, str]()
    if (folder / ".env").is_file() and not is_trusted(folder):
        names = ", ".join(sorted(_read(folder / ".env"))[:12])
        found[folder] = f".env ({names or 'nothing'})"
    if brought := _servers(folder / SERVERS):
        found[folder] = f"{found[folder]} and {brought}" if folder in found else brought
    if not os.environ.get("PROMPTDOCK_HOME"):
        owner = next((one for one in (folder, *folder.parents) if (one / HOME_NAME).is_dir()), None)
        if owner and not is_trusted(owner):
            found[owner] = f"{found[owner]} and {HOME_NAME}" if owner in found else HOME_NAME
    return found


def _servers(file: Path) -> str:
    """In words, which servers a file that does not count would start; "" where there is none."""
    try:
        data = file.read_bytes()
    except OSError:
        return ""
    if counts(file, data):
        return ""
    try:
        named = json.loads(data)["mcpServers"]
        names = ", ".join(sorted(str(name)[:40] for name in named)[:12])
    except (ValueError, KeyError, TypeError, RecursionError):
        names = ""
    return f"{SERVERS} (starts {names or 'nothing'})"


# Variables ------------------------------------------------------------------------------------------


def files(home: Path) -> tuple[Path, Path]:
    """The files whose variables may count: the data folder's, and the one of the folder that we work for."""
    return home / ".env", here() / ".env"


def sources(home: Path) -> list[tuple[str, Values]]:
    """`(label, variables)` of each source, the first that has one wins."""
    own, folder = files(home)
    mine = _read(own) if _private(own) else {}
    theirs = _read(folder) if folder != own and is_trusted(folder.parent) else {}
    beside = home.name == HOME_NAME  # in a folder of people
    return [
        ("environment", {name: value for name, value in os.environ.items() if value}),
        (str(own), _free(mine) if beside else mine),
        (str(folder), _free(theirs)),
    ]


def ignored(home: Path) -> list[str]:
    """In words, what a `.env` says and does not count."""
    own, folder = files(home)
    told = []
    if own.is_file() and not _private(own):
        told.append(
            f"{own} does not count: others may read it, or it belongs to somebody else (chmod 600 {own})"
        )
    told += [
        f"{file} does not count in full: {why}"
        for file, why in unreadable(home)
        if file == own or is_trusted(file.parent)
    ]
    beside = home.name == HOME_NAME
    where = "the environment" if beside else f"{own} or the environment"
    for file in ([own] if beside and _private(own) else []) + (
        [folder] if is_trusted(folder.parent) and folder != own else []
    ):
        values = _read(file)
        if names := sorted(name for name in set(values) - set(_free(values)) if _ours(name)):
            told.append(f"{file} cannot set {', '.join(names)}: put it into {where}")
    return told


def _ours(name: str) -> bool:
    return bool(
        re.fullmatch(
            r"[A-Z]+_BASE_URL|REDIS_URL|SUPABASE_.*|PROMPTDOCK_.*|PERMISSION_PROFILE|APPROVER_ROLES|SANDBOX"
            r"|HOOK_HOSTS|DISCORD_TOKEN",
            name,
        )
    )


def _free(values: Values) -> Values:
    if failpoints.without("folder-trust"):
        return values
    return {name: value for name, value in values.items() if FREE.fullmatch(name)}


def _private(file: Path) -> bool:
    try:
        what = file.lstat()
    except OSError:
        return False
    return stat.S_ISREG(what.st_mode) and what.st_uid == os.getuid() and not what.st_mode & 0o077


def _read(file: Path) -> Values:
    return _parsed(file)[0]


def unreadable(home: Path) -> list[tuple[Path, str]]:
    """What stands in the files that may count and cannot be read: the file, and which line or why."""
    found = dict.fromkeys(files(home))
    return [(file, told) for file in found for told in _parsed(file)[1]]


def written(home: Path) -> list[tuple[str, Values]]:
    """`(label, variables)` of the environment and of each file, whether they count or not."""
    own, folder = files(home)
    there = [(str(file), _read(file)) for file in dict.fromkeys((own, folder))]
    return [("the environment", dict(os.environ)), *there]


def _parsed(file: Path) -> tuple[Values, list[str]]:
    """The variables of a file, and what in it is no variable."""
    try:
        if not file.is_file():
            return {}, []
        text = file.read_text("utf-8-sig")
    except UnicodeDecodeError:
        return {}, ["it is not UTF-8"]
    except OSError as error:
        return {}, [error.strerror or str(error)]
    from dotenv.parser import parse_stream

    lines = list(parse_stream(io.StringIO(text)))
    wrong = [f"line {one.original.line} is no NAME=value" for one in lines if one.error]
    return {one.key: one.value for one in lines if one.key and one.value and not one.error}, wrong
