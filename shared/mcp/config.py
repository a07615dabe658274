"""Where MCP servers are configured: `mcp.json`, in the format that other clients of MCP read as well.

    {"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]},
                    "docs": {"url": "https://docs.example.com/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}}}

One file lies in the data folder; one may lie in the folder for which we work, and counts as it was when its owner
trusted it. A server that cannot be used is named with the reason, and keeps no other from being used.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from shared import folders
from shared.errors import ConfigurationError
from shared.plain import complaints

FILE = folders.SERVERS
PROFILES = Path("/") / FILE  # the source of what a profile brings, which lies in no folder of people
NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]|_(?=[A-Za-z0-9-])){0,31}")
_LARGEST = 256 * 1024  # bytes of a file
_SERVERS = 64
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_Text = Annotated[str, StringConstraints(max_length=8192)]
_KINDS = {"http": "http", "streamable-http": "http", "streamablehttp": "http", "stdio": "stdio"}


class ServerSpec(BaseModel):
    """One server: a command that speaks over stdio, or an address that speaks streamable HTTP."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    type: Literal["stdio", "http"] = "stdio"
    command: _Text = ""
    args: list[_Text] = []
    env: dict[str, _Text] = {}
    cwd: _Text = ""
    url: _Text = ""
    headers: dict[str, _Text] = {}
    disabled: bool = False
    timeout: Annotated[float, Field(ge=1, le=3600)] = 120  # seconds that one call may take
    sandbox: bool = False  # confined as commands of agents are
    network: bool = False  # with `sandbox`: it may reach the network

    @model_validator(mode="before")
    @classmethod
    def _typed(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            raise ValueError("a server is an object with a command or a url")
        said = given.get("type", "http" if given.get("url") else "stdio")
        kind = _KINDS.get(str(said).lower())
        if kind is None:
            raise ValueError(f"type {str(said)[:20]!r} is not spoken here: stdio and http (streamable) are")
        return {**given, "type": kind}

    @model_validator(mode="after")
    def _whole(self) -> ServerSpec:
        if bool(self.command) == bool(self.url):
            raise ValueError("it needs a command, or a url, not both")
        if (self.type == "http") != bool(self.url):
            raise ValueError(f"type {self.type} needs a {'url' if self.type == 'http' else 'command'}")
        if self.url and not re.match(r"https?://[^/\s]", self.url):
            raise ValueError("its url must begin with https:// or http://")
        if self.url and (self.sandbox or self.network or self.cwd or self.env or self.args):
            raise ValueError("sandbox, network, cwd, env and args are for commands")
        if self.headers and not self.url:
            raise ValueError("headers are for a url")
        if self.network and not self.sandbox:
            raise ValueError("network is for a server with sandbox: without it, it has the network anyway")
        if not all(map(_printable, [self.command, *self.args, *self.env, *self.env.values(), self.cwd])):
            raise ValueError("a NUL stands in it")
        return self

    @property
    def where(self) -> str:
        """What a person compares: the command line without its environment, or the address without secrets."""
        if self.url:
            return re.sub(r"(?<=//)[^/@]*@", "", self.url.partition("?")[0])
        return " ".join([self.command, *self.args])

    def secrets(self) -> list[str]:
        """Values that are to be shown nowhere: of its variables and headers."""
        values = [value.rpartition(" ")[2] for value in self.headers.values()]
        return [value for value in (*values, *self.env.values()) if len(value) >= 12]


@dataclass(frozen=True)
class Server:
    """A server as it is configured."""

    name: str
    spec: ServerSpec
    source: Path  # the file that says so
    notes: tuple[str, ...] = ()  # fields that are not used, and the like

    @property
    def folder(self) -> Path:
        """The folder in which relative paths of it are meant."""
        return self.source.parent


@dataclass(frozen=True)
class Problem:
    """What cannot be used of it, and what to do."""

    about: str  # a server's name, or a file
    why: str
    fix: str = ""

    @property
    def told(self) -> str:
        """In one line."""
        return f"{self.about}: {self.why}" + (f" ({self.fix})" if self.fix else "")


@dataclass(frozen=True)
class Configured:
    """All servers that count, by name, and what does not."""

    servers: dict[str, Server] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


def files(home: Path) -> tuple[Path, ...]:
    """The files that may count, the first one that names a server wins."""
    return tuple(dict.fromkeys((home / FILE, folders.here() / FILE)))


def signature(home: Path) -> tuple[tuple[int, int, int], ...]:
    """What changes whenever one of the files, or what is trusted, does."""
    return tuple(map(_stamp, (*files(home), folders.trust_file())))


def read(home: Path, environment: Mapping[str, str], secrets: Collection[str] = ()) -> Configured:
    """All that is configured here. A variable whose value is one of `secrets` is given to no server."""
    servers: dict[str, Server] = {}
    problems: list[Problem] = []
    for file in files(home):
        try:
            text = _counting(file, home)
            found, wrong = parse(text, file, environment, secrets) if text else ({}, [])
        except ConfigurationError as error:
            problems.append(Problem(str(file), error.why, error.fix))
            continue
        problems += wrong
        problems += [
            Problem(f"{file}: {name}", "another file has it already") for name in found if name in servers
        ]
        servers = {**found, **servers}
    return Configured(servers, tuple(problems))


def parse(
    text: str, file: Path, environment: Mapping[str, str], secrets: Collection[str] = ()
) -> tuple[dict[str, Server], list[Problem]]:
    """The servers of one file; ConfigurationError where it is none."""
    given = load(text)
    found: dict[str, Server] = {}
    problems = (
        [Problem(str(file), f"of {len(given)} servers only {_SERVERS} count")]
        if len(given) > _SERVERS
        else []
    )
    for name, entry in list(given.items())[:_SERVERS]:
        try:
            found[name] = server(name, entry, file, environment, secrets)
        except ConfigurationError as error:
            problems.append(Problem(name[:50], error.why, error.fix or f"correct it in {file}"))
    return found, problems


def load(text: str) -> dict[str, Any]:
    """The servers as they are written, by name."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigurationError("mcp.json cannot be read", f"it is no JSON: {error}", "correct it") from None
    given = data.get("mcpServers") if isinstance(data, dict) else None
    if not isinstance(given, dict):
        raise ConfigurationError(
            "mcp.json cannot be read", "it has no object mcpServers", 'write {"mcpServers": {}}'
        )
    return given


def server(
    name: str, entry: Any, file: Path, environment: Mapping[str, str], secrets: Collection[str] = ()
) -> Server:
    """One server, checked; ConfigurationError says what is wrong with it."""
    if not NAME.fullmatch(name):
        raise ConfigurationError(
            f"the MCP server {name[:50]!r} cannot be used",
            "its name is no plain name",
            "name it with at most 32 letters, digits, - and single _",
        )
    try:
        spec = ServerSpec.model_validate(_expanded(entry, environment, secrets))
    except ValidationError as error:
        why = "; ".join(complaints(error.errors(include_input=False, include_url=False)))
        raise ConfigurationError(f"the MCP server {name} cannot be used", why) from None
    unused = sorted(str(key)[:40] for key in entry if key not in ServerSpec.model_fields)
    return Server(name, spec, file, (f"not used here: {', '.join(unused)}",) if unused else ())


def environment(home: Path) -> dict[str, str]:
    """What `${NAME}` means here: the environment, then the `.env` files that count."""
    return {name: value for _, values in reversed(folders.sources(home)) for name, value in values.items()}


def _expanded(value: Any, environment: Mapping[str, str], secrets: Collection[str]) -> Any:
    if isinstance(value, dict):
        return {key: _expanded(item, environment, secrets) for key, item in value.items()}
    if isinstance(value, list):
        return [_expanded(item, environment, secrets) for item in value]
    if not isinstance(value, str):
        return value

    def meant(found: re.Match[str]) -> str:
        name, default = found[1], found[2]
        text = environment.get(name) or default
        if text is None:
            raise ConfigurationError("", f"it needs the variable {name}, which is not set", f"set {name}")
        if any(secret in text for secret in secrets if secret):
            raise ConfigurationError(
                "", f"{name} holds a secret of the cluster", "give the server a key of its own"
            )
        return text

    return _VARIABLE.sub(meant, value)


# Files ----------------------------------------------------------------------------------------------


def _counting(file: Path, home: Path) -> str:
    """What a file says, where it counts; "" where there is none."""
    try:
        if not file.is_file():
            return ""
        data = file.read_bytes()[: _LARGEST + 1]
        text = data.decode("utf-8-sig")
        what = file.stat()
    except OSError as error:
        raise ConfigurationError("", error.strerror or str(error), "make it readable") from None
    except UnicodeDecodeError:
        raise ConfigurationError("", "it is not UTF-8", "save it as UTF-8") from None
    if len(data) > _LARGEST:
        raise ConfigurationError("", f"it has more than {_LARGEST} bytes", "make it smaller")
    own = file.parent == home and home.name != folders.HOME_NAME
    if own and (what.st_uid != os.getuid() or what.st_mode & 0o022):
        raise ConfigurationError("", "it does not count: others may change it", f"chmod 600 {file}")
    if not own and not folders.counts(file, data):
        raise ConfigurationError(
            "",
            "it does not count: it is not trusted, or has changed since it was",
            f"look at it, then run: promptdock trust {file.parent}",
        )
    return text


def change(home: Path, edit: Callable[[dict[str, Any]], None]) -> Path:
    """Change the servers of the data folder's own file, whole or not at all; ConfigurationError if it is none."""
    file = home / FILE
    text = file.read_text("utf-8-sig") if file.is_file() else '{"mcpServers": {}}'
    servers = load(text)
    edit(servers)
    whole = {**json.loads(text), "mcpServers": servers}
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    half = file.with_name(f".{FILE}.{os.getpid()}")
    with open(half, "w", encoding="utf-8", opener=folders.private) as out:
        json.dump(whole, out, indent=2, ensure_ascii=False)
        out.write("\n")
    half.replace(file)
    return file


def _stamp(file: Path) -> tuple[int, int, int]:
    try:
        what = file.stat()
    except OSError:
        return (0, 0, 0)
    return (what.st_mtime_ns, what.st_size, what.st_ino)


def _printable(text: str) -> bool:
    return "\0" not in text
