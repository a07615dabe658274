"""Names and addresses that may be put on git's command line, checked before git starts."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
import unicodedata
from urllib.parse import urlsplit

from shared import faults
from shared.errors import ToolError
from shared.guard.addresses import Address, is_inner

_FORBIDDEN = re.compile(r"[\s~^:?*\[\\\x00-\x20\x7f]|\.\.|@\{|//")
_SUFFIX = re.compile(r"(?:[~^]\d{0,6})*")
_SCHEMES = ("https", "http", "ssh", "git")
_SCP = re.compile(
    r"(?:(?P<user>[\w.][\w.-]*)@)?(?P<host>[\w.][\w.-]*|\[[0-9A-Fa-f:.]+\]):(?P<path>[^:].*)", re.S
)
_HELPER = re.compile(r"[A-Za-z0-9][A-Za-z0-9+.-]*::")
_LOOKUP = 5.0  # seconds
_INNER_NAMES = ("localhost", "localhost.localdomain", "metadata", "metadata.google.internal", "ip6-localhost")


def check_ref(name: str) -> str:
    """A branch or tag name by the rules of `git check-ref-format --branch`; ToolError for any other."""
    if faults.without("git-names"):
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


def check_remote(url: str, allow_local: bool = False) -> str:
    """An address to clone, fetch or push; ToolError says which rule it breaks.

    Transport helpers (`ext::`), options in disguise, passwords, addresses of this machine are refused.
    `allow_local` lets paths, `file://` and loopback pass: only for an address that a person has given.
    """
    if not faults.without("git-names") and (rule := _broken_rule(url, allow_local)):
        shown = re.sub(r"//[^/@\s]*@", "//***@", url[:200])
        raise ToolError(
            f"{shown!a} cannot be used as a remote", rule, "use https://host/path or git@host:path"
        )
    return url


async def check_reach(url: str, allow_local: bool = False) -> None:
    """The same, and ToolError for a name that leads to this machine. One that leads nowhere is git's to tell."""
    check_remote(url, allow_local)
    short = None if "://" in url else _SCP.fullmatch(url)
    host = short["host"] if short else urlsplit(url).hostname
    if allow_local or not host:
        return
    try:
        async with asyncio.timeout(_LOOKUP):
            found = await asyncio.get_running_loop().getaddrinfo(host.strip("[]"), 443)
    except (OSError, UnicodeError, TimeoutError):
        return
    for address in sorted({str(entry[4][0]).partition("%")[0] for entry in found}):
        if _is_inner(address):
            raise ToolError(
                f"{host!a} cannot be used as a remote",
                f"it leads to {address}, an address of this machine",
                "",
            )


def _broken_rule(url: str, allow_local: bool) -> str:
    if not url or any(unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zs") for char in url):
        return "it is empty or holds a space or control character"
    if url.startswith("-"):
        return "it begins with -, which git would take for an option"
    if _HELPER.match(url):
        return "transport helpers run commands"
    if "://" in url:
        return _broken_address(url, allow_local)
    match = _SCP.fullmatch(url)
    if match and match["path"].startswith("-"):
        return "its path begins with -, which a program there would take for an option"
    if match and "/" not in url[: match.start("path")]:
        return (
            ""
            if allow_local or not _is_inner(match["host"].strip("[]"))
            else "it is an address of this machine"
        )
    return "" if allow_local else "paths of this machine are not allowed"


def _broken_address(url: str, allow_local: bool) -> str:
    try:
        parts = urlsplit(url)
        host, user, _ = parts.hostname or "", parts.username or "", parts.port
    except ValueError:
        return "it is no valid address"
    if parts.scheme == "file":
        return "" if allow_local else "paths of this machine are not allowed"
    if parts.scheme not in _SCHEMES:
        return f"the scheme {parts.scheme!a} is not allowed"
    if not host or host.startswith("-") or user.startswith("-"):
        return "its host or user is missing or begins with -"
    if not re.fullmatch(r"[\w.:-]+", host, re.ASCII) or "%" in parts.netloc:
        return "its host is no plain name or address"
    if parts.password is not None or (user and parts.scheme in ("https", "http")):
        return "it holds a password or token, which everybody who sees the repository would see"
    return "" if allow_local or not _is_inner(host) else "it is an address of this machine or of its own link"


def _is_inner(host: str) -> bool:
    name = host.rstrip(".").lower()
    if name in _INNER_NAMES or name.endswith(".localhost"):
        return True
    address = _address(name)
    return address is not None and is_inner(address)


def _address(name: str) -> Address | None:
    """The address that `name` writes, also in the old forms (127.1, 0x7f000001, 2130706433)."""
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(name))
    except (OSError, ValueError):
        return None
