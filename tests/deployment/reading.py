"""The files by which a cluster is deployed, as data."""

from __future__ import annotations

import json
import re
import shlex
from fnmatch import fnmatch
from typing import Any

import yaml

from tests.house.tree import read, runs, unknown, variables

AGENTS = ("chatter", "planner", "researcher", "frontend", "backend")
THIRD_PARTY = {"PATH", "PYTHONSAFEPATH", "PYTHONUNBUFFERED", "PYTHON_VERSION"}


def compose() -> dict[str, Any]:
    """docker-compose.yml with its anchors resolved."""
    loaded: dict[str, Any] = yaml.safe_load(read("docker-compose.yml"))
    return loaded


def render() -> dict[str, dict[str, Any]]:
    """The services of render.yaml, by name."""
    services: list[dict[str, Any]] = yaml.safe_load(read("render.yaml"))["services"]
    return {service["name"]: service for service in services}


def groups() -> list[dict[str, Any]]:
    """The groups of variables in render.yaml."""
    found: list[dict[str, Any]] = yaml.safe_load(read("render.yaml"))["envVarGroups"]
    return found


def dockerfile() -> list[tuple[str, str]]:
    """The Dockerfile's instructions with their arguments, lines joined, in order."""
    text = re.sub(r"^\s*#.*\n", "", read("Dockerfile"), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", " ", text).splitlines()
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines) if word]


def argument(instruction: str) -> str:
    """What stands after the last instruction of this kind, which is the one that counts."""
    return [rest for word, rest in dockerfile() if word == instruction][-1]


def unknown_variables(names: Any) -> set[str]:
    """Those that neither the settings nor the libraries below us know."""
    return set(names) - set(variables()) - THIRD_PARTY


def broken(command: str | list[str]) -> list[str]:
    """What a command needs that is not there; [] means that it runs."""
    words = shlex.split(command) if isinstance(command, str) else command
    if words[:2] == ["python", "-m"]:
        return [] if runs(words[2]) else [f"python -m {words[2]}"]
    if words[0] == "promptdock":
        return unknown(shlex.join(words))
    return [f"nobody knows {words[0]}"]


def ignored(path: str) -> bool:
    """Whether .dockerignore keeps `path` from the builder; the last line that matches decides."""
    verdict = False
    for line in read(".dockerignore").splitlines():
        pattern = line.strip()
        if not pattern or pattern.startswith("#"):
            continue
        bare = pattern.removeprefix("!")
        parts = [path, *(path.rsplit("/", depth)[0] for depth in range(1, path.count("/") + 1))]
        tails = [*parts, *(part.rpartition("/")[2] for part in parts)] if bare.startswith("**/") else parts
        if any(fnmatch(part, bare.removeprefix("**/")) for part in tails):
            verdict = not pattern.startswith("!")
    return verdict


def exec_form(text: str) -> list[str]:
    """The words of an instruction in exec form; a shell form is an error, since a shell would eat signals."""
    words: list[str] = json.loads(text)
    return words
