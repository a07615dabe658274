"""Searches while folders of the workspace are swapped for links that lead out of it: they tell of nothing outside."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shared.errors import ToolError
from shared.guard.processes.process import run
from shared.guard.sandbox.sandbox import Sandbox
from shared.tools.context import Context, Root
from shared.tools.files import browse, search
from shared.tools.registry import Registry
from shared.tools.research import symbols
from tests.support.guards import guarded
from tests.tools.ground import context

_SECONDS, _SEARCHES = 6.0, 3000
_PAIRS = 8
SECRET, NAME = "SECRET_OF_ANOTHER", "name_of_another.py"
TOOLS = Registry([browse.category, symbols.category])

# Swaps each folder with the link beside it, again and again, for a while and no longer.
SWAPPER = """
import ctypes, platform, sys, time
RENAMEAT2, EXCHANGE = {"x86_64": 316}.get(platform.machine(), 276), 2
libc, end, pairs = ctypes.CDLL(None, use_errno=True), time.monotonic() + float(sys.argv[1]), sys.argv[2:]
print("swapping", flush=True)
while time.monotonic() < end:
    for pair in pairs:
        one, other = (pair + "/" + name for name in ("code", "link"))
        libc.syscall(RENAMEAT2, -100, one.encode(), -100, other.encode(), EXCHANGE)
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Root:
    """A folder with code, and links to a folder outside that holds somebody else's."""
    root, outside = tmp_path / "shop", tmp_path / "outside"
    for place in (outside, *(root / f"part{number}" / "code" for number in range(_PAIRS))):
        place.mkdir(parents=True)
        for number in range(20):
            (place / f"module{number}.py").write_text(f"def harmless{number}(): pass\n")
    for number in range(_PAIRS):
        (root / f"part{number}" / "link").symlink_to(outside)
    (outside / NAME).write_text(f"def {SECRET}(): pass\n")
    (outside / "module7.py").write_text(f"def {SECRET}(): pass\n")
    return Root(root.name, root)


@pytest.fixture
def swapping(workspace: Root) -> Iterator[None]:
    """While it lasts, each name means now the folder, now the link."""
    pairs = [str(workspace.path / f"part{number}") for number in range(_PAIRS)]
    child = subprocess.Popen([sys.executable, "-c", SWAPPER, "30", *pairs], stdout=subprocess.PIPE)
    assert child.stdout and child.stdout.readline()
    yield
    child.kill()
    child.wait()
    child.stdout.close()


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("grep", {"pattern": "SECRET|harmless7"}),
    ("grep", {"pattern": "SECRET", "path": "shop/part0", "output_mode": "count"}),
    ("grep", {"pattern": "SECRET", "path": "shop/part0/code", "output_mode": "files_with_matches"}),
    ("search_files", {"pattern": "def SECRET"}),
    ("glob_files", {"pattern": "**/*.py"}),
    ("find_symbols", {"name": "SECRET"}),
    ("find_symbols", {"path": "shop/part1"}),
]


async def _attack(here: Context) -> tuple[int, list[str]]:
    """How many searches there were, and what they told of the outside."""
    end, made, leaks = time.monotonic() + _SECONDS, 0, list[str]()
    while time.monotonic() < end and made < _SEARCHES and not leaks:
        name, arguments = CALLS[made % len(CALLS)]
        made += 1
        tool = TOOLS.get(name)
        try:
            told = json.dumps(await tool.function(here, **tool.check(arguments)))
        except ToolError:
            continue
        counted = "counts" in told and '"counts": []' not in told
        if SECRET in told or NAME in told or counted:
            leaks.append(f"{name}: {told[:300]}")
    return made, leaks


@pytest.mark.parametrize("mode", ["confined", "unconfined"])
@guarded("search-sandbox")
async def test_no_search_leaves_the_workspace_whatever_is_swapped_meanwhile(
    mode: str, workspace: Root, swapping: None, strongest: Sandbox
) -> None:
    sandbox = strongest if mode == "confined" else Sandbox("none", "as the owner says")
    made, leaks = await _attack(context(workspace, sandbox=sandbox))
    assert leaks == [], f"after {made} searches"
    assert made > 20


async def test_several_places_are_searched_in_one_sandbox(
    workspace: Root, strongest: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To start one takes longer than most searches run."""
    places = [search.SearchRoot(workspace.path, f"part{number}") for number in range(_PAIRS)]
    started = list[list[str]]()

    async def counted(argv: list[str], **more: Any) -> Any:
        started.append(argv)
        return await run(argv, **more)

    monkeypatch.setattr(search, "run", counted)
    found = await search.search(places, search.TextQuery("harmless7"), 100, strongest)
    assert len(found) == _PAIRS and all(one.hits for one in found)
    assert len(started) == 1


async def test_a_folder_that_a_link_stands_for_is_not_searched(workspace: Root, strongest: Sandbox) -> None:
    for sandbox in (strongest, Sandbox("refused", "as this test says")):
        with pytest.raises(ToolError, match=r"cannot be searched|leads out"):
            await search.search(
                [search.SearchRoot(workspace.path, "part0/link")], search.TextQuery("x"), 9, sandbox
            )


async def test_each_place_is_told_by_itself(workspace: Root, strongest: Sandbox) -> None:
    places = [
        search.SearchRoot(workspace.path, "part0"),
        search.SearchRoot(workspace.path, "part1/code/module7.py"),
        search.SearchRoot(workspace.path, "part2/code"),
    ]
    found = await search.search(places, search.TextQuery("harmless7"), 9, strongest)
    assert [[hit.path for hit in one.hits] for one in found] == [
        ["part0/code/module7.py"],
        ["part1/code/module7.py"],
        ["part2/code/module7.py"],
    ]
    none = await search.search(places, search.TextQuery("nowhere"), 9, strongest)
    assert [one.hits for one in none] == [(), (), ()]
