"""Pins: which major versions of a dependency a repository's manifests allow.

Read are package.json, requirements*.txt and pyproject.toml (PEP 621 and Poetry). A range without an upper end
allows what is to come, so it pins nothing and is left out.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

MANIFESTS = ("package.json", "requirements*.txt", "pyproject.toml")

_PIP_ONLY = re.compile(r"\s+#|\s+--|\s*\\$")  # after it: a comment, options of pip, the line goes on
_SPECIFIER = re.compile(r"[~=!<>][^;)]*")
_SEMVER = re.compile(r"^(\^|~|=|v|>=|<=|<|>)?\s*v?(\d+)")


@dataclass(frozen=True)
class Pin:
    """A dependency of an ecosystem (`npm`, `python`) at these majors, and the line that says so."""

    ecosystem: str
    name: str
    majors: frozenset[int]
    shown: str
    file: str
    line: int


def pins(file: str, text: str) -> list[Pin]:
    """What a manifest pins; nothing where it cannot be parsed."""
    lines = text.split("\n")
    if file.endswith("package.json"):
        found = [("npm", name, spec, npm_majors(spec)) for name, spec in _npm(text)]
    elif file.endswith(".toml"):
        found = [("python", name, spec, majors) for name, spec, majors in _pyproject(text)]
    else:
        found = [("python", *told) for line in lines if (told := _requirement(line))]
    return [
        Pin(ecosystem, name, majors, spec, file, line)
        for ecosystem, name, spec, majors in found
        if majors and (line := _line(lines, name, spec))
    ]


def _npm(text: str) -> Iterator[tuple[str, str]]:
    try:
        manifest = json.loads(text)
    except ValueError:
        return
    for group in ("dependencies", "devDependencies", "peerDependencies"):
        entries = manifest.get(group) if isinstance(manifest, dict) else None
        for name, spec in entries.items() if isinstance(entries, dict) else ():
            if isinstance(spec, str):
                yield name, spec


def _requirement(line: str) -> tuple[str, str, frozenset[int]] | None:
    """(name, versions as written, majors) of a requirement; None where it names no versions, or is none."""
    from packaging.requirements import InvalidRequirement, Requirement

    text = _PIP_ONLY.split(line.strip(), maxsplit=1)[0]
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        return None
    written = _SPECIFIER.search(text)
    if requirement.url or not requirement.specifier or not written:
        return None
    return _canonical(requirement.name), written[0].strip(), _majors(requirement.specifier)


def _pyproject(text: str) -> Iterator[tuple[str, str, frozenset[int]]]:
    try:
        manifest = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    project = _table(manifest, "project")
    extras = _table(project, "optional-dependencies").values()
    for requirement in [
        *_list(project.get("dependencies")),
        *(item for extra in extras for item in _list(extra)),
    ]:
        if told := _requirement(requirement):
            yield told
    poetry = _table(_table(manifest, "tool"), "poetry")
    for name, spec in _table(poetry, "dependencies").items():
        spec = spec.get("version") if isinstance(spec, dict) else spec
        if isinstance(spec, str) and name != "python":
            yield (
                _canonical(name),
                spec,
                npm_majors(spec) if spec[:1] in "^~0123456789" else python_majors(spec),
            )


def _canonical(name: str) -> str:
    from packaging.utils import canonicalize_name

    return canonicalize_name(name)


def _table(value: Any, key: str) -> dict[str, Any]:
    inner = value.get(key) if isinstance(value, dict) else None
    return inner if isinstance(inner, dict) else {}


def _list(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def npm_majors(spec: str) -> frozenset[int]:
    """The majors that a semver range allows; empty where it has no upper end or is no range of versions."""
    majors: set[int] = set()
    for option in spec.split("||"):
        told = _SEMVER.match(option.strip())
        if not told or told[1] in (">", "<", "<="):
            return frozenset()
        upper = re.search(r"\s(<|<=|-)\s*(\d+)(\.\d+)?", option)
        if told[1] == ">=" and not upper:
            return frozenset()
        first = last = int(told[2])
        if upper:
            below = upper[1] == "<" and upper[3] in (None, ".0")
            last = min(int(upper[2]) - below, first + 50)
        majors |= set(range(first, last + 1))
    return frozenset(majors)


def python_majors(spec: str) -> frozenset[int]:
    """The majors that a PEP 440 specifier allows; empty where it has no upper end, or is none."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        return _majors(SpecifierSet(spec))
    except InvalidSpecifier:
        return frozenset()


def _majors(specifiers: SpecifierSet) -> frozenset[int]:
    from packaging.version import InvalidVersion, Version

    low, high = 0, None
    for specifier in specifiers:
        try:
            version = Version(specifier.version.removesuffix(".*"))
        except InvalidVersion:  # `===` takes any text
            return frozenset()
        if specifier.operator in ("==", "===", "~="):
            return frozenset({version.major})
        if specifier.operator in (">=", ">"):
            low = max(low, version.major)
        elif specifier.operator in ("<", "<="):
            none_of_it = specifier.operator == "<" and not any(version.release[1:])
            below = version.major - none_of_it
            high = below if high is None else min(high, below)
    return frozenset() if high is None else frozenset(range(low, min(high, low + 50) + 1))


def _line(lines: list[str], name: str, spec: str) -> int:
    """The line that declares a dependency (from 1); 0 where it cannot be told."""
    spelled = re.escape(name).replace(r"\-", "[-_.]+") if not name.startswith("@") else re.escape(name)
    pattern = re.compile(rf"(?:^|[\"'\s\[,])({spelled})(?![\w-])", re.IGNORECASE)
    for number, line in enumerate(lines, 1):
        if pattern.search(line) and spec in line:
            return number
    return 0
