"""constraints.txt pins everything that is installed, and works on every Python that we support."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterator

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.house.tree import project, read

PIN = re.compile(r'([\w.-]+)==([\w.!+]+)(; [\w ."<>=\']+)?')


def _lines() -> list[str]:
    return [line for line in read("constraints.txt").splitlines() if line and not line.startswith("#")]


def _pins() -> dict[str, str]:
    found = [PIN.fullmatch(line) for line in _lines()]
    return {canonicalize_name(pin[1]): pin[2] for pin in found if pin}


def _wanted() -> list[Requirement]:
    table = project()["project"]
    listed = [
        *table["dependencies"],
        *(line for extra in table["optional-dependencies"].values() for line in extra),
    ]
    return [Requirement(line) for line in listed]


def _installed(wanted: list[Requirement]) -> Iterator[str]:
    """The names of these and of all that they need here, as far as it is installed."""
    seen: set[tuple[str, frozenset[str]]] = set()
    while wanted:
        one = wanted.pop()
        key = (canonicalize_name(one.name), frozenset(one.extras))
        if key in seen:
            continue
        seen.add(key)
        try:
            needs = importlib.metadata.requires(one.name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        yield key[0]
        wanted += [need for need in map(Requirement, needs) if _applies(need.marker, one.extras)]


def _applies(marker: Marker | None, extras: set[str]) -> bool:
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in (*extras, ""))


def test_a_pin_is_a_name_and_a_version_and_nothing_else() -> None:
    assert [line for line in _lines() if not PIN.fullmatch(line)] == []


def test_every_library_that_the_project_names_is_pinned_at_a_version_that_it_accepts() -> None:
    pins = _pins()
    wrong = [
        str(one)
        for one in _wanted()
        if (version := pins.get(canonicalize_name(one.name))) is None or version not in one.specifier
    ]
    assert wrong == []


def test_what_these_libraries_need_is_pinned_too() -> None:
    needed = set(_installed(_wanted()))
    assert len(needed) > len(_wanted()), "nothing was followed"
    assert needed - set(_pins()) == set()


def test_the_first_releases_of_python_3_11_get_what_only_they_need() -> None:
    line = next(line for line in _lines() if line.startswith("async-timeout"))
    marker = Marker(line.partition(";")[2])
    assert marker.evaluate({"python_full_version": "3.11.2"})
    assert not marker.evaluate({"python_full_version": "3.13.0"})
