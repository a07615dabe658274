"""Files that hold secrets: the one list, by name, and what in other files looks like a key.

What stands in them leaves with whoever reads it. So a tool that shows what a file holds is asked for where the path
is one of these; a search passes them over; no tool stages one that git does not have yet; and a private key in a file
of another name is left out of what is shown.
"""

from __future__ import annotations

import fnmatch
import functools
import os
import posixpath
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from shared import failpoints
from shared.folders import HOME_NAME
from shared.guard.permissions.touching import TouchKind, When

# `*` is any text without `/`. A name counts wherever it lies, one with `/` where the end of the path is so.
# Case does not matter.
NAMES = """
    .env .env.* *.env .envrc .flaskenv
    *.pem *.key *.p12 *.pfx *.jks *.keystore *.kdbx *.ppk *.p8
    id_rsa id_dsa id_ecdsa id_ecdsa_sk id_ed25519 id_ed25519_sk .ssh/* .gnupg/*
    .netrc _netrc .pgpass pgpass.conf .my.cnf .mylogin.cnf .git-credentials .htpasswd .dockercfg
    .vault-token .boto .s3cfg
    credentials credentials.json credentials.yml credentials.yaml credentials.toml credentials.ini .credentials.json
    secrets.json secrets.yml secrets.yaml secrets.toml secrets.ini client_secret*.json service-account*.json
    kubeconfig *.kubeconfig .kube/config .aws/* .azure/* .docker/config.json .config/gh/hosts.yml
""".split()  # noqa: SIM905
# What shows how such a file looks, and public halves.
_OPEN = """
    .env.example .env.*.example .env.sample .env.*.sample .env.template .env.*.template .env.dist .env.defaults
    .env.schema example.env sample.env template.env *.example.env *.pub .ssh/known_hosts .ssh/config
""".split()  # noqa: SIM905
# Words of a command that are such a file for certain: `server.key` may be the fixture of a test.
_CERTAIN = re.compile(
    r"(?i)\.env(\..*)?|\.envrc|id_(rsa|dsa|ecdsa|ed25519)(_sk)?|[._]netrc|\.pgpass|\.git-credentials"
)

_BEGIN = r"-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----"
_KEY = re.compile(rf"({_BEGIN})(.*?)(?=-----END|\Z)", re.DOTALL)
# Of a file of settings that is mostly none: `//registry/:_authToken=…`
_TOKEN = re.compile(r"(?im)^([^\S\n]*(?:\S*:)?(?:_authToken|_auth|_password)[^\S\n]*=)[^\S\n]*(?!\$\{)\S+")
LEFT = "[left out: a secret]"
_LONG = re.compile(r"[A-Za-z0-9+/]{40}")  # a line that may be of a key
_LOOKED = 64 * 1024  # bytes of a file in which a key would begin
_SEEN, _DEEP = 5000, 4  # names and folders deep, in which files of a checkout are looked for
_PASSED = frozenset({".git", "node_modules", ".venv", "venv", "__pycache__", "target", "dist", "build"})


def is_secret(path: str) -> bool:
    """Whether a file of this path is taken to hold secrets."""
    if failpoints.without("secret-files"):
        return False
    plain = "/" + posixpath.normpath(path.replace("\\", "/")).strip("/").rstrip(". ").casefold()
    if f"/{HOME_NAME}/" in plain:  # a data folder that an earlier release made in a checkout
        return True
    return bool(_pattern(*NAMES).search(plain)) and not _pattern(*_OPEN).search(plain)


@functools.cache
def _pattern(*names: str) -> re.Pattern[str]:
    body = "|".join(fnmatch.translate(name).replace(".*", "[^/]*").removesuffix(r"\Z") for name in names)
    return re.compile(rf"/(?:{body})\Z")


def _shown(path: object) -> tuple[TouchKind, ...]:
    return ("secret",) if is_secret(str(path or "")) else ()


# An argument that is the path of a file whose text is shown.
SHOWN = When(("secret",), _shown)


def redacted(text: str) -> str:
    """`text` without private keys and tokens, line by line the same."""
    if failpoints.without("secret-files"):
        return text
    if "PRIVATE KEY" in text:
        text = _KEY.sub(lambda found: found[1] + _emptied(found[2]), text)
    return _TOKEN.sub(rf"\1 {LEFT}", text) if "_auth" in text or "_password" in text else text


def _emptied(body: str) -> str:
    return "\n".join(LEFT if line.strip() else line for line in body.split("\n"))


def may_be_key(line: str) -> bool:
    """Whether a line could be one of a private key."""
    return bool(_LONG.search(line)) and not failpoints.without("secret-files")


def holds_secret(data: bytes) -> bool:
    """Whether the beginning of a file has a private key or a token in it."""
    text = data[:_LOOKED].decode("utf-8", "replace")
    return not failpoints.without("secret-files") and bool(re.search(_BEGIN, text) or _TOKEN.search(text))


def without(diff: str, doubt: bool = False) -> tuple[str, list[str]]:
    """A diff without what it says of such files, and their paths.

    Where the middle of it was cut out, nobody knows whose the lines behind are: with `doubt` they are left out.
    """
    if failpoints.without("secret-files"):
        return diff, []
    parts = re.split(r"(?m)^(?=diff --(?:git|cc|combined) )", diff)
    left = [path for part in parts if (path := _path(part)) and is_secret(path)]
    kept: list[str] = []
    for part in parts:
        head, cut, tail = part.partition("\n[… ")
        secret = is_secret(_path(part))
        kept += (
            [part.split("\n", 1)[0] + "\n[left out: the file holds secrets]\n"]
            if secret
            else [redacted(head)]
        )
        kept += [cut + tail.split("\n", 1)[0] + "\n"] if cut and (doubt or secret) else [cut + redacted(tail)]
    return "".join(kept), left


def _path(part: str) -> str:
    """The file that a part of a diff is about."""
    line = part.split("\n", 1)[0]
    match = re.fullmatch(r'diff --(?:git "?a/.*? "?b/|cc "?|combined "?)(.*?)"?', line)
    return match[1] if match else ""


def named(command: str) -> frozenset[str]:
    """The files of secrets that a command names for certain: then a person was asked."""
    words = (word.rpartition("/")[2] for word in re.split(r"[\s'\"=<>|;&()`]+", command))
    return frozenset(word for word in words if _CERTAIN.fullmatch(word))


def untracked(root: Path, but: Iterable[str] = ()) -> list[Path]:
    """Such files of a checkout that git does not have: commands need not see them. `but` are names that they may."""
    allowed = frozenset(but)
    found = [path for path in _lying(root) if path.name not in allowed]
    if not found:
        return []
    try:
        index = (root / ".git" / "index").read_bytes()
    except OSError:
        return []  # a worktree of a task, which begins with what git has
    if index[:8] >= b"DIRC\0\0\0\4":  # its names are cut short: nobody can say at a glance
        return []
    return [path for path in found if os.fsencode(path.relative_to(root)) + b"\0" not in index]


def passed_over(root: Path, under: str, most: int) -> list[str]:
    """The files of secrets below a folder of a root, which a search there leaves out whatever they hold."""
    start = under.strip("/")
    if is_secret(start):
        return []
    names = (str(path.relative_to(root)) for path in _lying(root))
    return sorted(islice((name for name in names if not start or name.startswith(f"{start}/")), most))


def _lying(root: Path) -> Iterator[Path]:
    folders, seen = [(root, 0)], 0
    while folders and seen < _SEEN:
        folder, deep = folders.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    seen += 1
                    if entry.is_dir(follow_symlinks=False):
                        if deep < _DEEP and entry.name not in _PASSED:
                            folders.append((folder / entry.name, deep + 1))
                    elif entry.is_file(follow_symlinks=False) and is_secret(
                        str(Path(entry.path).relative_to(root))
                    ):
                        yield Path(entry.path)
        except OSError:
            continue
