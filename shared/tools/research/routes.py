"""Routes: what a repository serves over HTTP and what it calls, read from its source without running it.

Served: Flask, FastAPI, Starlette (through `ast`), Express and its like, Next.js files. Called: fetch, axios
and clients that look like them, where the address is a literal. What is computed at run time is not seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

METHODS = ("get", "post", "put", "patch", "delete", "head", "options")
ANY = "ANY"

# Lines that make a file worth reading; also Rust's syntax, for ripgrep takes it.
SERVES = (
    r"\.(get|post|put|patch|delete|head|options|all|route|api_route|use|register|include_router"
    r"|register_blueprint|add_api_route|add_url_rule|add_route)\s*\("
    r"|\b(Route|Mount|APIRouter|Blueprint)\("
    r"|export\s+(default\s+)?(async\s+)?function\s+\w+"
)
CALLS = r"(?i)\b(fetch|usefetch|useswr|axios)\s*(<.*>)?\(|\w\.(get|post|put|patch|delete|request)\s*(<.*>)?\("


class Key(NamedTuple):
    """A router: the file that makes it, and its variable there."""

    file: str
    name: str


@dataclass(frozen=True)
class HttpRoute:
    """A served method and path; parameters are `{}`. Two routes collide only within one `scope`."""

    method: str
    path: str
    file: str
    line: int
    scope: Key


@dataclass(frozen=True)
class HttpCall:
    """A called method and path; `rooted` is False where the address began with something computed."""

    method: str
    path: str
    rooted: bool
    file: str
    line: int


@dataclass(frozen=True)
class Raw:
    """A route as written, before the prefixes of its router are known."""

    owner: str
    method: str
    path: str
    line: int


@dataclass(frozen=True)
class Mounted:
    """`owner` serves `target` (a variable, or `module.variable`) under `prefix`."""

    owner: str
    target: str
    prefix: str


@dataclass
class CodeFacts:
    """What one file says about routing."""

    routes: list[Raw] = field(default_factory=list)
    prefixes: dict[str, str] = field(default_factory=dict)
    mounts: list[Mounted] = field(default_factory=list)
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)  # alias -> (module, name or "")
    exported: str = ""


_PARAMETER = re.compile(r"\$\{[^{}]*\}|\{[^{}/]*\}|<[^<>/]*>|:[A-Za-z_]\w*(?:\([^()/]*\))?\??")
_REST = re.compile(r"\{[^{}/]*:path\}|<path:[^<>/]*>|\{\.\.\.\w*\}|\*\w*$")


def normal(path: str) -> str:
    """A path with its parameters as `{}` (`{*}`: all the rest), without query and trailing slash."""
    path = _PARAMETER.sub("{}", _REST.sub("\x00", path))
    path = re.split(r"[?#]", path.replace("\x00", "{*}"))[0]
    parts = [
        part if "{" not in part else ("{*}" if "{*}" in part else "{}") for part in path.split("/") if part
    ]
    return "/" + "/".join(parts)


def fits(route: str, call: str) -> bool:
    """Whether a call of this path reaches a route of that path (both normal)."""
    served, called = route.split("/")[1:], call.split("/")[1:]
    if served and served[-1] == "{*}":
        served, called = served[:-1], called[: len(served) - 1]
    if len(served) != len(called):
        return False
    return all(a == b or "{}" in (a, b) for a, b in zip(served, called, strict=True))


def resolve(facts: Mapping[str, CodeFacts]) -> list[HttpRoute]:
    """All routes of a root with the prefixes under which their routers are mounted; keys are file paths."""
    parents: dict[Key, list[tuple[Key, str]]] = {}
    for file, told in facts.items():
        for mount in told.mounts:
            target = _target(facts, file, mount.target)
            parents.setdefault(target, []).append((_target(facts, file, mount.owner), mount.prefix))
    found: list[HttpRoute] = []
    for file, told in facts.items():
        for raw in told.routes:
            for scope, prefix in _prefixes(_target(facts, file, raw.owner), facts, parents):
                found.append(HttpRoute(raw.method, normal(f"{prefix}/{raw.path}"), file, raw.line, scope))
    return sorted(set(found), key=lambda route: (route.file, route.line, route.method, route.path))


def _target(facts: Mapping[str, CodeFacts], file: str, name: str) -> Key:
    """The router that `name` means in `file`, through its imports."""
    imports = facts[file].imports
    head, _, rest = (name, "", "") if name in imports else name.partition(".")
    module, original = imports.get(head, ("", ""))
    if not module:
        return Key(file, name)
    # `from app.routes import users` and then `users.router`: what was imported is itself a module
    for path, variable in ((f"{module}/{original}", rest), (module, original or rest)):
        where = _file_of(facts, path)
        if where and (variable or facts[where].exported):
            return Key(where, variable or facts[where].exported)
    return Key(file, name)


def _file_of(facts: Mapping[str, CodeFacts], module: str) -> str:
    tail = [part for part in re.split(r"[./\\]+", re.sub(r"\.[jt]sx?$", "", module)) if part]
    fitting = []
    for file in facts:
        parts = re.sub(r"(/__init__|/index)?\.\w+$", "", file).split("/")
        if tail and parts[-len(tail) :] == tail:
            fitting.append(file)
    return min(fitting, key=lambda file: (file.count("/"), file), default="")


def _prefixes(
    key: Key, facts: Mapping[str, CodeFacts], parents: Mapping[Key, list[tuple[Key, str]]], depth: int = 0
) -> Iterable[tuple[Key, str]]:
    own = facts[key.file].prefixes.get(key.name, "")
    above = parents.get(key, []) if depth < 6 else []
    if not above:
        yield key, own
    for parent, prefix in above:
        for scope, before in _prefixes(parent, facts, parents, depth + 1):
            yield scope, f"{before}/{prefix}/{own}"
