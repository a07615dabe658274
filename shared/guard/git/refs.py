"""Names and addresses that may be put on git's command line, checked before git starts."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from urllib.parse import urlsplit

from shared import failpoints
from shared.errors import ToolError
from shared.guard.sandbox.addresses import PUBLIC, Reach, plain, refused_text

_FORBIDDEN = re.compile(r"[\s~^:?*\[\\\x00-\x20\x7f]|\.\.|@\{|//")
_SUFFIX = re.compile(r"(?:[~^]\d{0,6})*")
_SCHEMES = ("https", "http", "ssh", "git")
_SCP = re.compile(
    r"(?:(?P<user>[\w.][\w.-]*)@)?(?P<host>[\w.][\w.-]*|\[[0-9A-Fa-f:.]+\]):(?P<path>[^:].*)", re.S
)
_HELPER = re.compile(r"[A-Za-z0-9][A-Za-z0-9+.-]*::")


def check_ref(name: str) -> str:
    """A branch or tag name by the rules of `git check-ref-format --branch`; ToolError for any other."""
    if failpoints.without("git-names"):
        return name
    parts = name.split("/")
    if (
        not name
        or len(name.encode("utf-8", "surrogatepass")) > 240
        or name in ("HEAD", "@")
        or name[0] in "-/"
        or name[-1] in "/."
        or _FORBIDDEN.search(name)
        or any(part.startswith(".") or part.endswith(".lock") for part in parts)
        or any(unicodedata.category(char) in ("Cc", "Cf", "Cs") for char in name)
    ):
        raise ToolError(
            f"{name[:100]!a} is no branch name",
            "git's rules for names of branches are not met",
            "use a plain name",
        )
    return name


def check_commit(name: str) -> str:
    """A branch, tag, HEAD or commit id, with `~n` and `^n` after it; ToolError for any other."""
    core = re.split(r"[~^]", name, maxsplit=1)[0]
    if not _SUFFIX.fullmatch(name[len(core) :]):
        raise ToolError(
            f"{name[:100]!a} names no commit", "only ~n and ^n may follow a name", "use a commit id"
        )
    if core != "HEAD":
        check_ref(core)
    return name


@dataclass(frozen=True)
class Target:
    """What an address leads to, where that is no path: `port` is 0 where it is the scheme's."""

    scheme: str
    host: str
    port: int = 0


def target(url: str) -> Target | None:
    """The target of an address that passed `check_remote`; None for a path of this machine."""
    if "://" in url:
        parts = urlsplit(url)
        return (
            None
            if parts.scheme == "file"
            else Target(parts.scheme, plain(parts.hostname or ""), parts.port or 0)
        )
    short = _short(url)
    return Target("ssh", plain(short["host"])) if short else None


def _short(url: str) -> re.Match[str] | None:
    """`user@host:path`, as git takes it: a slash before the colon makes it a path."""
    match = _SCP.fullmatch(url)
    return match if match and "/" not in url[: match.start("path")] else None


def check_remote(url: str, reach: Reach = PUBLIC) -> str:
    """An address to clone, fetch or push, by its text alone; ToolError says which rule it breaks.

    Transport helpers (`ext::`), options in disguise, passwords, addresses of this machine and of private networks are
    refused. Nothing is looked up: a name that a model has chosen is not, before somebody permitted it.
    """
    if not failpoints.without("git-names") and (rule := _broken_rule(url, reach)):
        shown = re.sub(r"//[^/@\s]*@", "//***@", url[:200])
        raise ToolError(
            f"{shown!a} cannot be used as a remote", rule, "use https://host/path or git@host:path"
        )
    return url


def _broken_rule(url: str, reach: Reach) -> str:
    if not url or any(unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zs") for char in url):
        return "it is empty or holds a space or control character"
    if url.startswith("-"):
        return "it begins with -, which git would take for an option"
    if _HELPER.match(url):
        return "transport helpers run commands"
    if "://" in url:
        return _broken_address(url, reach)
    match = _SCP.fullmatch(url)
    if match and match["path"].startswith("-"):
        return "its path begins with -, which a program there would take for an option"
    if short := _short(url):
        return _inner(short["host"], reach)
    return "" if reach.local else "paths of this machine are not allowed"


def _broken_address(url: str, reach: Reach) -> str:
    try:
        parts = urlsplit(url)
        host, user, _ = parts.hostname or "", parts.username or "", parts.port
    except ValueError:
        return "it is no valid address"
    if parts.scheme == "file":
        return "" if reach.local else "paths of this machine are not allowed"
    if parts.scheme not in _SCHEMES:
        return f"the scheme {parts.scheme!a} is not allowed"
    if not host or host.startswith("-") or user.startswith("-"):
        return "its host or user is missing or begins with -"
    if not re.fullmatch(r"[\w.:-]+", host, re.ASCII) or "%" in parts.netloc:
        return "its host is no plain name or address"
    if parts.password is not None or (user and parts.scheme in ("https", "http")):
        return "it holds a password or token, which everybody who sees the repository would see"
    if parts.scheme == "git" and not reach.grants(host):
        return "git:// says nothing of who answers, and its host is not among ALLOWED_HOSTS"
    return _inner(host, reach)


def _inner(host: str, reach: Reach) -> str:
    why = refused_text(host, reach)
    return f"it is {why}" if why else ""
