"""Some hundreds of hostile calls by fooled agents of a real cluster; `make attacks` makes ten thousand."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from shared.errors import ToolError
from shared.tools import catalog
from tests.attacks.fooled.cluster import Run
from tests.attacks.fooled.values import Hostile, Targets
from tests.guard.conftest import sandbox
from tests.support import person

REGISTRY = catalog.registry()
SEED = 20_261  # another one: python -m tests.attacks --seed N


@pytest.mark.timeout(240)
def test_fooled_agents_make_nothing_happen_that_their_person_did_not_allow(
    tmp_path: Path, valkey: str
) -> None:
    report = Run(tmp_path, valkey, SEED)({"b": 70, "r": 30, "c": 140}, per_turn=70)
    assert not report.violations and not report.unfinished, report.told()
    assert report.made == report.calls.keys()
    assert report.decisions["chatter", "expired"] > 10, "nothing was asked about"
    assert report.decisions["backend", "allow"] > 5, "nothing was done"


_AS_THEM = """
import json, os, sys
from pathlib import Path
from shared.bus.embedded import Embedded
from shared.guard.sandbox.sandbox import Sandbox
from tests.attacks.fooled.cluster import Run
from tests.support.valkey import free_port
folder = Path(sys.argv[1])
server = Embedded(folder / "redis", free_port())
try:
    report = Run(folder / "run", server.start(), int(sys.argv[2]), SANDBOX="landlock")({"b": 30, "c": 20}, per_turn=30)
finally:
    server.stop()
told = {"violations": [str(one) for one in report.violations], "unfinished": list(report.unfinished)}
allowed = [list(key) for key, count in report.decisions.items() if count]
print(json.dumps(told | {"user": os.getuid(), "sandbox": Sandbox.probe("landlock").mode, "decided": allowed}))
"""


@pytest.mark.timeout(240)
def test_an_ordinary_users_cluster_without_bubblewrap_holds_as_well() -> None:
    """Then it is Landlock; root has none, so where we are root all of it runs as somebody else."""
    sandbox("landlock")  # or a skip
    with person.workspace() as folder:
        argv = person.started(["-c", _AS_THEM, str(folder), str(SEED)], folder)
        theirs = {**os.environ, "HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(argv, cwd=person.ROOT, env=theirs, capture_output=True, text=True, timeout=220)
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["user"] != 0 and told["sandbox"] == "landlock"
    assert not told["violations"] and not told["unfinished"]
    assert ["backend", "allow"] in told["decided"] and ["chatter", "expired"] in told["decided"]


@pytest.mark.timeout(240)
def test_a_fooled_claude_code_gets_no_further_than_its_hook_and_its_sandbox(
    tmp_path: Path, valkey: str
) -> None:
    report = Run(tmp_path, valkey, SEED)({"k": 120}, per_turn=60)
    assert not report.violations and not report.unfinished, report.told()
    assert report.made == report.calls.keys()
    assert report.decisions["backend", "allow"] > 10, "nothing was done"
    assert report.decisions["backend", "expired"] > 3, "nothing was asked about"


@pytest.mark.timeout(240)
def test_without_its_guards_the_same_claude_code_is_found_out(tmp_path: Path, valkey: str) -> None:
    report = Run(tmp_path, valkey, SEED, PROMPTDOCK_WITHOUT="claude-sandbox,beneath")({"k": 120}, per_turn=60)
    assert any(number in report.calls for found in report.violations for number in found.calls), report.told()


@pytest.mark.timeout(240)
def test_without_the_guards_the_same_agents_are_found_out(tmp_path: Path, valkey: str) -> None:
    """The proof that the test above can fail: who takes away what stands in the way sees harm, call by call."""
    report = Run(tmp_path, valkey, SEED, PROMPTDOCK_WITHOUT="classes,roots,hook-maker,dry-run")(
        {"c": 300}, per_turn=50
    )
    assert len({violation.what for violation in report.violations}) >= 3, report.told()
    assert any(number in report.calls for found in report.violations for number in found.calls), report.told()


def test_a_seed_makes_the_same_calls_again_and_most_of_them_can_be_made() -> None:
    registry = REGISTRY
    targets = Targets("/person", "/other", "/data", 1, ids={"task": ["calm-otter"], "hook": ["nightly"]})
    first, again = (Hostile(SEED, targets).calls(registry, 1, 600, frozenset()) for _ in range(2))
    assert first == again != Hostile(SEED + 1, targets).calls(registry, 1, 600, frozenset())
    assert {call.tool for call in first} == {tool.name for tool in registry}, "a tool is never tried"
    usable = sum(_usable(call.tool, call.arguments) for call in first)
    assert usable > 0.8 * len(first), "what no tool takes tries nothing"


def _usable(name: str, arguments: dict[str, object]) -> bool:
    try:
        REGISTRY.get(name).check(arguments)
    except ToolError:
        return False
    return True
