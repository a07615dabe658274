"""Conflicts between the repositories of one product, found by comparing their source.

Every conflict cites real lines. What is compared: routes that are served twice, calls that no route serves,
majors of dependencies, and the fields of types that frontend and backend both declare. What cannot be told
apart from a mere difference of style or from what is computed at run time is left out.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from shared.errors import ToolError
from shared.guard.sandbox.sandbox import Sandbox
from shared.tools.context import Root
from shared.tools.files.search import SearchRoot, TextQuery, search
from shared.tools.paths import of_kind, read_text
from shared.tools.research import routes_python, routes_script, shapes
from shared.tools.research.pins import MANIFESTS, Pin, pins
from shared.tools.research.routes import ANY, CALLS, SERVES, CodeFacts, HttpCall, HttpRoute, fits, resolve
from shared.tools.research.shapes import TypeShape

FILES = 5000  # of one root that one detector reads
MOST = 200

ConflictKind = Literal[
    "missing_field", "type_mismatch", "extra_field", "duplicate_route", "version_mismatch", "naming"
]
PYTHON = ("*.py",)
SCRIPT = ("*.js", "*.jsx", "*.ts", "*.tsx", "*.mjs", "*.cjs", "*.vue", "*.svelte")
_TESTS = ("!test_*.py", "!*_test.py", "!*.test.*", "!*.spec.*", "!**/tests/**", "!**/__tests__/**", "!*.d.ts")
T = TypeVar("T")


class Citation(BaseModel):
    """A line of a repository: `file` is relative to the repository, `text` is what stands on the line."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    repo: str
    file: str
    line: int = Field(ge=1)
    text: str = Field(min_length=1, max_length=2000)


class SourceConflict(BaseModel):
    """Two places that do not agree; `right` is empty where the other side has nothing to show."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    kind: ConflictKind
    summary: str
    left: Citation
    right: Citation | None = None


async def detect_conflicts(roots: Mapping[str, Root], sandbox: Sandbox) -> list[SourceConflict]:
    """Compare the roots of a turn; at most MOST conflicts, those of one kind together."""
    served = {root.name: await _routes(root, sandbox) for root in roots.values()}
    found: list[SourceConflict] = []
    for root in of_kind(roots, "backend"):
        found += duplicate_routes(root, served[root.name])
    for root in of_kind(roots, "frontend"):
        others = [(other, route) for other in roots.values() for route in served[other.name]]
        if any(route for other, route in others if other.kind != "frontend"):
            calls = await _gather(root, sandbox, CALLS, SCRIPT, routes_script.calls)
            found += unserved_calls(root, calls, others)
    declared = {root.name: await _gather(root, sandbox, "", MANIFESTS, pins) for root in roots.values()}
    for left, right in combinations(roots.values(), 2):
        found += version_mismatches(left, declared[left.name], right, declared[right.name])
    found += await _field_conflicts(roots, sandbox)
    return found[:MOST]


# Reading ------------------------------------------------------------------------------------------


async def _texts(root: Root, sandbox: Sandbox, pattern: str, globs: Sequence[str]) -> list[tuple[str, str]]:
    """(path, text) of the files that match the globs and hold the pattern (any text where it is empty)."""
    query = TextQuery(pattern, "lines" if pattern else "files", (*globs, *_TESTS), per_file=1)
    (found,) = await search([SearchRoot(root.path)], query, FILES, sandbox)

    def read() -> Iterator[tuple[str, str]]:
        for hit in found.hits:
            try:
                yield hit.path, read_text(root, hit.path)
            except ToolError:
                continue  # binary, too large, or gone meanwhile

    return await asyncio.to_thread(lambda: list(read()))


async def _gather(
    root: Root,
    sandbox: Sandbox,
    pattern: str,
    globs: Sequence[str],
    extract: Callable[[str, str], Iterable[T]],
) -> list[T]:
    texts = await _texts(root, sandbox, pattern, globs)
    return await asyncio.to_thread(lambda: [item for file, text in texts for item in extract(file, text)])


async def _routes(root: Root, sandbox: Sandbox) -> list[HttpRoute]:
    texts = await _texts(root, sandbox, SERVES, (*PYTHON, *SCRIPT))

    def told() -> list[HttpRoute]:
        facts: dict[str, CodeFacts] = {}
        for file, text in texts:
            python = file.endswith(".py")
            facts[file] = routes_python.facts(text) if python else routes_script.facts(file, text)
        return resolve(facts)

    return await asyncio.to_thread(told)


def _cite(root: Root, file: str, line: int) -> Citation:
    text = read_text(root, file).split("\n")[line - 1].strip()
    return Citation(repo=root.name, file=file, line=line, text=text[:2000] or "(empty)")


# Routes -------------------------------------------------------------------------------------------


def duplicate_routes(root: Root, routes: Sequence[HttpRoute]) -> Iterator[SourceConflict]:
    """The same method and path twice in one application: only the first is ever reached."""
    first: dict[tuple[object, str, str], HttpRoute] = {}
    for route in routes:
        key = (route.scope, route.method, route.path)
        earlier = first.setdefault(key, route)
        if (earlier.file, earlier.line) != (route.file, route.line):
            yield SourceConflict(
                kind="duplicate_route",
                summary=f"{route.method} {route.path} is defined twice in {root.name}",
                left=_cite(root, earlier.file, earlier.line),
                right=_cite(root, route.file, route.line),
            )


def unserved_calls(
    root: Root, calls: Sequence[HttpCall], served: Sequence[tuple[Root, HttpRoute]]
) -> Iterator[SourceConflict]:
    """What the frontend calls and no route serves; a near route is named, since it may be the one meant."""
    for call in calls:
        reached = [(other, route) for other, route in served if _reaches(call, route.path)]
        if any(ANY in (route.method, call.method) or route.method == call.method for _, route in reached):
            continue
        what = f"{root.name} calls {call.method} {call.path}"
        left = _cite(root, call.file, call.line)
        if reached:
            other, route = reached[0]
            summary = f"{what}, but {other.name} serves it as {route.method}"
            yield SourceConflict(
                kind="type_mismatch", summary=summary, left=left, right=_cite(other, route.file, route.line)
            )
        elif near := next(((o, r) for o, r in served if _alike(r.path) == _alike(call.path)), None):
            other, route = near
            summary = f"{what}, but {other.name} names that route {route.path}"
            yield SourceConflict(
                kind="naming", summary=summary, left=left, right=_cite(other, route.file, route.line)
            )
        else:
            yield SourceConflict(kind="missing_field", summary=f"{what}, which no route serves", left=left)


def _reaches(call: HttpCall, route: str) -> bool:
    """Also where either side has a prefix that the other does not show: a base address, or a proxy."""
    if fits(route, call.path):
        return True
    common = min(route.count("/"), call.path.count("/"))
    served, called = route.split("/")[-common:], call.path.split("/")[-common:]
    same = any(a == b and "{" not in a for a, b in zip(served, called, strict=True))
    return same and fits("/" + "/".join(served), "/" + "/".join(called))


def _alike(path: str) -> str:
    """A path as one compares it loosely: no case, no separators, no plural."""
    parts = (re.sub(r"[^a-z0-9{}]", "", part.lower()) for part in path.split("/"))
    return "/".join(re.sub(r"(?<=\w\w)s$", "", part) for part in parts)


# Versions -----------------------------------------------------------------------------------------


def version_mismatches(
    left: Root, ours: Sequence[Pin], right: Root, theirs: Sequence[Pin]
) -> Iterator[SourceConflict]:
    """The same dependency at majors that have none in common."""
    by_name = {(pin.ecosystem, pin.name): pin for pin in theirs}
    seen: set[tuple[str, str]] = set()
    for pin in ours:
        key = (pin.ecosystem, pin.name)
        other = by_name.get(key)
        if other is None or key in seen or pin.majors & other.majors:
            continue
        seen.add(key)
        yield SourceConflict(
            kind="version_mismatch",
            summary=f"{pin.name} is {pin.shown} in {left.name} and {other.shown} in {right.name}",
            left=_cite(left, pin.file, pin.line),
            right=_cite(right, other.file, other.line),
        )


# Fields -------------------------------------------------------------------------------------------


async def _field_conflicts(roots: Mapping[str, Root], sandbox: Sandbox) -> list[SourceConflict]:
    scripts = {
        root.name: shapes.complete(await _gather(root, sandbox, shapes.SCRIPT, SCRIPT, shapes.script_shapes))
        for root in of_kind(roots, "frontend")
    }
    found: list[SourceConflict] = []
    for backend in of_kind(roots, "backend") if any(scripts.values()) else ():
        python = await _gather(backend, sandbox, shapes.PYTHON, PYTHON, shapes.python_shapes)
        models = shapes.complete(python, shapes.PLAIN)
        for name, types in scripts.items():
            for shared in sorted(types.keys() & models.keys()):
                found += field_conflicts(roots[name], types[shared], backend, models[shared])
    return found


def field_conflicts(left: Root, ours: TypeShape, right: Root, theirs: TypeShape) -> Iterator[SourceConflict]:
    """Where a frontend's type (`ours`) and a backend's model (`theirs`) of the same name do not agree."""
    if not ours.members or not theirs.members:
        return
    alike = {_plain(name): name for name in ours.members}
    met: set[str] = set()
    for name, member in theirs.members.items():
        there = _cite(right, member.file, member.line)
        mine = ours.members.get(name) or ours.members.get(alike.get(_plain(name), ""))
        if mine is None:
            if not ours.open:
                summary = f"{ours.name}.{name} is in {right.name}, not in {left.name}"
                here = _cite(left, ours.file, ours.line)
                yield SourceConflict(kind="missing_field", summary=summary, left=here, right=there)
            continue
        met.add(mine.name)
        here = _cite(left, mine.file, mine.line)
        if mine.name != name:
            summary = f"{ours.name}: {mine.name} in {left.name} is {name} in {right.name}"
            yield SourceConflict(kind="naming", summary=summary, left=here, right=there)
        if shapes.UNKNOWN not in (mine.kind, member.kind) and mine.kind != member.kind:
            summary = (
                f"{ours.name}.{mine.name} is {mine.shown} in {left.name}, {member.shown} in {right.name}"
            )
            yield SourceConflict(kind="type_mismatch", summary=summary, left=here, right=there)
    for name, mine in ours.members.items():
        if name not in met and not theirs.open:
            summary = f"{ours.name}.{name} is in {left.name}, not in {right.name}"
            here, there = _cite(left, mine.file, mine.line), _cite(right, theirs.file, theirs.line)
            yield SourceConflict(kind="extra_field", summary=summary, left=here, right=there)


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()
