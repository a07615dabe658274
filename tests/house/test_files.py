"""Rules that hold for every file of the tree."""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.tree import ROOT, files, read

# Written so that these lines do not match themselves.
REGISTRY = re.compile(
    r"py[p]i\.org|python[h]osted|np[m]js\.|registry\.[y]arnpkg|deb\.[d]ebian|archive\.[u]buntu|crates\.[i]o"
)
MACHINE = re.compile(r"(?<![\w.}])/(?:[h]ome/(?!promptdock)\w|[U]sers/\w|[w]ork/\w|[r]oot/)")
HEAVY = {"anthropic", "supabase", "httpx", "httpx2", "psutil", "genai_prices"}


def _texts(*suffixes: str) -> list[tuple[str, str]]:
    found = []
    for name in files():
        if not suffixes or name.endswith(suffixes):
            try:
                found.append((name, read(name)))
            except UnicodeDecodeError:
                continue
    return found


def test_no_file_holds_the_address_of_a_package_registry() -> None:
    assert [name for name, text in _texts() if REGISTRY.search(text)] == []


def test_no_file_holds_a_path_of_somebodys_machine() -> None:
    # tests may use such paths as what an attacker would ask for
    found = {name: match.group() for name, text in _texts() if (match := MACHINE.search(text))}
    assert {name: path for name, path in found.items() if not name.startswith("tests/")} == {}
    assert [name for name, text in _texts() if f"{ROOT}/" in text and len(ROOT.parts) > 2] == []


def test_every_module_says_first_what_it_is_for() -> None:
    silent = [name for name, text in _texts(".py") if text.strip() and not ast.get_docstring(ast.parse(text))]
    assert silent == []


def test_every_file_ends_with_a_line_end_and_has_no_carriage_returns() -> None:
    kinds = (".py", ".md", ".yml", ".yaml", ".toml", ".txt", ".lua", ".sql", "Makefile", "Dockerfile")
    assert [name for name, text in _texts(*kinds) if text and (not text.endswith("\n") or "\r" in text)] == []


@pytest.fixture(scope="module")
def imported() -> list[str]:
    """Every module that is loaded once all of ours are imported, in a process of its own."""
    ours = [
        name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for name in files()
        if name.endswith(".py")
        and name.startswith(("agents/", "gateways/", "shared/"))
        and "__main__" not in name
    ]
    program = (
        "import importlib, json, sys\n"
        "for name in sys.argv[1:]: importlib.import_module(name)\n"
        "print(json.dumps(list(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *ours],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    loaded: list[str] = json.loads(done.stdout)
    assert set(ours) <= set(loaded)
    return loaded


def test_heavy_libraries_are_not_loaded_by_importing_the_code(imported: list[str]) -> None:
    assert sorted({name.partition(".")[0] for name in imported} & HEAVY) == []


def test_the_package_called_agents_is_ours() -> None:
    spec = importlib.util.find_spec("agents")
    assert spec is not None
    places = [*(spec.submodule_search_locations or []), spec.origin or ""]
    assert any(Path(place).resolve().is_relative_to(ROOT) for place in places if place)
    assert set(importlib.metadata.packages_distributions().get("agents", [])) <= {"promptdock"}
