"""The way of git to a remote: its addresses looked up once and judged, and git told to go there and nowhere else."""

from __future__ import annotations

import os
import pwd
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shared import failpoints
from shared.errors import ToolError
from shared.guard.git.refs import Target, check_remote, target
from shared.guard.sandbox.addresses import Address, Reach, pin
from shared.guard.sandbox.sandbox import Sandbox

_PORTS = {"https": 443, "http": 80, "ssh": 22}
_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa")
_KNOWN = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")


@dataclass(frozen=True)
class GitRoute:
    """Options before git's command, and what it needs on the way: ssh, the owner's proxy, a path of this machine."""

    options: tuple[str, ...] = ()
    ssh: bool = False
    proxied: bool = False
    local: bool = False

    def confined(self, sandbox: Sandbox) -> bool:
        """Whether the sandbox can hold git on this way: it cannot lend an agent to another user, or beside Landlock."""
        if self.local or not sandbox.confines or failpoints.without("git-sandbox"):
            return False
        return not (self.ssh and _agent()) or (sandbox.mode == "bwrap" and sandbox.mapped is None)

    def reads(self) -> list[str]:
        """Files that git on this way reads beside the repository: certificates, known hosts, keys without an agent."""
        certificates = [os.environ["SSL_CERT_FILE"]] if "SSL_CERT_FILE" in os.environ else []
        return [*certificates, *(_files() if self.ssh else [])]

    def sockets(self) -> list[str]:
        """The agent that signs for the person."""
        return [agent] if self.ssh and (agent := _agent()) else []

    def variables(self) -> dict[str, str]:
        """What its environment says besides, and holds no secret."""
        names = ("SSL_CERT_FILE", *(("SSH_AUTH_SOCK",) if self.ssh else ()))
        return {name: os.environ[name] for name in names if os.environ.get(name)}

    def proxy(self) -> str:
        """The proxy's address, which may hold a password; "" where none is asked."""
        return _proxies().get("https", "") if self.proxied else ""


async def lead(urls: Sequence[str], reach: Reach) -> GitRoute:
    """The way to these addresses; each host is looked up once. ToolError for one that may not be used.

    Where the owner's proxy is asked, it is the one that looks names up: nothing is pinned then.
    """
    for url in urls:
        check_remote(url, reach)
    targets = list(dict.fromkeys(found for url in urls if (found := target(url)) is not None))
    if not targets:
        return GitRoute(local=True)
    if all(map(_by_proxy, targets)):
        return GitRoute(proxied=True)
    options, ssh = list[str](), list[Target]()
    for one in targets:
        places = await _places(one, reach)
        if one.scheme == "ssh":
            ssh.append(one)
        if not failpoints.without("pinned-address"):
            options += _pinned(one, places)
    if len(ssh) > 1:
        raise ToolError("this remote cannot be used", "it has several addresses for ssh", "leave one of them")
    return GitRoute(tuple(options), ssh=bool(ssh))


async def _places(one: Target, reach: Reach) -> list[Address]:
    try:
        return await pin(one.host, reach)
    except ToolError as error:
        raise ToolError(f"{one.host!a} cannot be used as a remote", error.why, error.fix) from None


def _pinned(one: Target, places: Sequence[Address]) -> list[str]:
    port = one.port or _PORTS.get(one.scheme, 0)
    if one.scheme == "ssh":
        # The key of the host is the one that is known by its name, and of no file but ours is anything obeyed.
        alias = one.host if port == 22 else f"[{one.host}]:{port}"
        words = ["ssh", "-F", "none", "-oBatchMode=yes", "-oUpdateHostKeys=no", f"-oHostName={places[0]}"]
        words += [f"-oHostKeyAlias={alias}", *_named_files()]
        return ["-c", f"core.sshCommand={shlex.join(words)}"]
    if one.scheme in ("http", "https"):
        found = ",".join(f"[{place}]" if place.version == 6 else str(place) for place in places)
        return ["-c", f"http.curloptResolve={one.host}:{port}:{found}"]
    return []  # git's own protocol, which the owner granted for this host: git looks for itself


def _by_proxy(one: Target) -> bool:
    from urllib.request import proxy_bypass

    return one.scheme == "https" and "https" in _proxies() and not proxy_bypass(one.host)


def _proxies() -> dict[str, str]:
    from urllib.request import getproxies_environment

    return getproxies_environment()


def _agent() -> str:
    return os.environ.get("SSH_AUTH_SOCK", "")


def _home() -> Path:
    """Where ssh itself looks, whatever HOME says."""
    return Path(pwd.getpwuid(os.getuid()).pw_dir) / ".ssh"


def _files() -> list[str]:
    known = [str(_home() / "known_hosts"), *_KNOWN]
    return [file for file in (*known, *_identities()) if Path(file).is_file()]


def _identities() -> list[str]:
    """The person's own keys, where there is no agent to sign with them."""
    return [] if _agent() else [str(file) for name in _KEYS if (file := _home() / name).is_file()]


def _named_files() -> list[str]:
    """In the sandbox there is no home in which ssh would look for them."""
    return [
        f"-oUserKnownHostsFile={_home() / 'known_hosts'}",
        *(f"-oIdentityFile={key}" for key in _identities()),
    ]
