"""What `doctor` looks at on this machine: Python, packages, files, git, sandbox, model."""

from __future__ import annotations

import difflib
import importlib.util
import os
import platform
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

from pydantic import AliasChoices

from shared import folders, secret
from shared.bus import embedded
from shared.client.findings import Finding
from shared.client.local import key, supervision
from shared.client.views import models
from shared.errors import ConfigurationError
from shared.guard.processes import starts
from shared.settings import Settings

_MB = 1 << 20
_FULL, _SCARCE = 16 * _MB, 256 * _MB
_ALIKE, _ALIKE_OUTSIDE = 0.85, 0.9  # how much a name must look like a setting's to be taken for a slip
_ROOT = Path(__file__).resolve().parents[3]


def python() -> Finding:
    """The interpreter."""
    return Finding("python", "ok", f"Python {platform.python_version()}")


def agents() -> Finding:
    """The package `agents` must be ours: other projects install one of that name too."""
    spec = importlib.util.find_spec("agents")
    places = [Path(place).resolve() for place in (spec.submodule_search_locations or [])] if spec else []
    if any(place == _ROOT / "agents" for place in places):
        return Finding("agents", "ok", "the package agents is ours")
    where = ", ".join(map(str, places)) or "nowhere"
    return Finding(
        "agents", "fail", f"the package agents is found in {where}", "uninstall the package that brings it"
    )


def git() -> Finding:
    """git, on which tasks work."""
    program = starts.program("git")
    if program is None:
        return Finding("git", "fail", "git is not installed", "install git")
    done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=10, check=False)
    return Finding("git", "ok", done.stdout.strip() or program)


def sandbox(settings: Settings) -> Finding:
    """What would confine commands of agents here."""
    from shared.guard.sandbox.sandbox import Sandbox

    found = Sandbox.probe(settings.sandbox, [settings.home])
    match found.mode:
        case "bwrap":
            return Finding("sandbox", "ok", found.explain())
        case "landlock":
            fix = f"install bubblewrap, or {starts.installing('sandbox')}, and allow user namespaces"
            return Finding("sandbox", "warn", found.explain(), fix)
        case "none":
            return Finding("sandbox", "warn", found.why, "unset SANDBOX to have commands confined")
        case _:
            told, _, fix = found.why.rpartition("; ")
            return Finding("sandbox", "warn", f"commands of agents are refused: {told}", fix)


def wrong(settings: Settings) -> Iterator[Finding]:
    """Settings that cannot be used; what follows is looked at without them."""
    for one in settings.wrong:
        yield Finding("settings", "fail", one.told, one.fix)


def written(settings: Settings) -> Iterator[Finding]:
    """What stands in the environment and in `.env` and means nothing: lines, and names that look misspelt."""
    for file, why in folders.unreadable(settings.home):
        yield Finding(".env", "warn", f"{file}: {why}", f"correct {file}: one NAME=value a line")
    known = variables()
    for place, values in folders.written(settings.home):
        alike = _ALIKE_OUTSIDE if place == "the environment" else _ALIKE
        for name in sorted(set(values) - known):
            if not re.fullmatch(r"[A-Z][A-Z0-9_]*", name) or name.endswith("_MODEL"):
                continue
            if meant := difflib.get_close_matches(name, known, 1, alike):
                told = f"{name} in {place} is no setting"
                yield Finding("settings", "warn", told, f"{meant[0]} may be meant: rename it")


def variables() -> set[str]:
    """The names of all settings."""
    found = set[str]()
    for field in Settings.model_fields.values():
        alias = field.validation_alias
        found |= {str(name) for name in (alias.choices if isinstance(alias, AliasChoices) else [alias])}
    return found


def files(settings: Settings, env_file: Path) -> Iterator[Finding]:
    """Who else may read the secrets and the history."""
    if env_file.exists():
        yield _private(".env", env_file, 0o600)
    yield from home_folder(settings.home)


def home_folder(home: Path) -> Iterator[Finding]:
    """Whether the data folder is there, can be written to, and is read by its owner alone."""
    existing = next(place for place in (home, *home.parents) if place.exists())
    fix = "set PROMPTDOCK_HOME to a folder that you may write to"
    if not existing.is_dir():
        yield Finding("home", "fail", f"{home} can be no data folder: {existing} is a file", fix)
    elif existing == home:
        yield _private("home", home, 0o700)
        if not os.access(home, os.W_OK | os.X_OK):
            yield Finding("home", "fail", f"nothing can be written to {home}", fix)
    elif not os.access(existing, os.W_OK | os.X_OK) or os.statvfs(existing).f_blocks == 0:
        yield Finding("home", "fail", f"{home} cannot be made: {existing} takes no folder of yours", fix)
    else:
        told = f"{home} does not exist yet"
        yield Finding("home", "ok", f"{told}: the first `promptdock up` makes it")


def _private(name: str, path: Path, wanted: int) -> Finding:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        return Finding(
            name, "warn", f"{path} can be read by others (mode {mode:o})", f"chmod {wanted:o} {path}"
        )
    return Finding(name, "ok", f"{path} is private")


def port(settings: Settings) -> Finding | None:
    """Whether this home's port is free for the embedded server; None where it does not matter."""
    if settings.redis_url is not None or embedded.running(settings.home):
        return None
    wanted = embedded.last_port(settings.home) or embedded.PORT
    if embedded.free_port(wanted) == wanted:
        return Finding("port", "ok", f"port {wanted} is free for the embedded Redis")
    told = f"another program listens on port {wanted}; the embedded Redis takes another port"
    return Finding(
        "port",
        "warn",
        told,
        "nothing needs to be done; if that is a Redis which you want to use, set REDIS_URL to its address",
    )


def server(settings: Settings) -> Finding | None:
    """Whether there is an embedded server to start, where one is needed."""
    if settings.redis_url is not None:
        return None
    try:
        return Finding("embedded", "ok", f"{embedded.binary().name} is there to be started")
    except ConfigurationError as error:
        return Finding("embedded", "fail", str(error), error.fix)


def disk(settings: Settings) -> Finding:
    """Whether what is said and stored still finds room."""
    place = next(folder for folder in (settings.home, *settings.home.parents) if folder.exists())
    free = shutil.disk_usage(place).free
    told = f"{free / _MB:,.0f} MB are free on the disk of {settings.home}"
    if free < _FULL:
        return Finding("disk", "fail", told, "make room on it: nothing can be said or stored")
    if free < _SCARCE:
        return Finding("disk", "warn", told, "make room on it before it is full")
    return Finding("disk", "ok", told)


def leftovers(settings: Settings) -> Finding | None:
    """Workers, or a Redis, of this home whose supervisor is gone."""
    if left := supervision.left(settings.home):
        told = f"nothing supervises what still runs here: {', '.join(left)}"
        return Finding("supervisor", "warn", told, "end it: promptdock down")
    if supervision.running(settings.home) is not None or embedded.running(settings.home) is None:
        return None
    pid = supervision.redis_pid(settings.home)
    told = f"the embedded Redis (process {pid}) runs, but nothing supervises it; its workers may run on too"
    fix = f"end what is left (kill {pid}, and the processes that promptdock status shows), then promptdock up"
    return Finding("supervisor", "warn", told, fix)


def secrets(settings: Settings) -> Iterator[Finding]:
    """Whether the secrets that this data folder keeps are some; one that is not there yet is made by `up`."""
    kept = ["secret"] if settings.secret is None else []
    kept += ["redis/password"] if settings.redis_url is None else []
    for file in (settings.home / name for name in kept):
        if file.is_file():
            try:
                secret.kept(file)
            except ConfigurationError as error:
                yield Finding("secret", "fail", f"{error.what}: {error.why}", error.fix)
            except OSError as error:
                yield Finding("secret", "fail", f"{file}: {error.strerror}", "have it belong to you")


def executor(settings: Settings) -> Finding | None:
    """Whether what the settings name to carry out tasks is installed."""
    if settings.executor != "claude-code" or importlib.util.find_spec("claude_agent_sdk") is not None:
        return None
    told = "PROMPTDOCK_EXECUTOR is claude-code, which is not installed: every task would fail"
    return Finding(
        "executor", "fail", told, f"{starts.installing('claude-code')}, or unset PROMPTDOCK_EXECUTOR"
    )


async def model(settings: Settings) -> Finding:
    """Whether the providers take their keys and have the models that the settings name."""
    if not key.is_set(settings):
        if settings.env == "production":
            return Finding(
                "model", "fail", "no key is set, and production refuses the demo model", "promptdock key set"
            )
        told = "DEMO: no key is set, scripted replies, no network, no cost"
        return Finding("model", "warn", told, "promptdock key set")
    found = await models.asked(settings)
    told = "; ".join(models.told(one) for one in found)
    if refused := [one for one in found if one.state == "refused"]:
        return Finding("model", "fail", told, f"promptdock key set {refused[0].provider}")
    if any(one.state == "away" for one in found):
        return Finding("model", "warn", told, "promptdock key check, later")
    if wrong := models.missing(settings, models.names(found), found):
        return Finding("model", "fail", "; ".join(one.told for one in wrong), wrong[0].fix)
    names = ", ".join(dict.fromkeys(models.chosen(settings, found).values()))
    return Finding("model", "ok", f"{told}; {names} answers")
