"""What an idle process of the cluster has loaded: all of it stays in memory, of each worker, day and night."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.tree import ROOT, variables
from tests.support.valkey import names, valkey

__all__ = ["names", "valkey"]

PATIENCE = 60.0  # seconds; a bound for machines that are busy
# Libraries for what an idle worker does not do: ask a model, reach Supabase, look at processes, at code or at pins.
LATER = {
    "anthropic",
    "difflib",
    "httpx",
    "packaging",
    "psutil",
    "redis",
    "rich",
    "supabase",
    "tree_sitter",
    "typer",
}
OF_CHATTER = {
    "shared.worker.runners.chat.runner",
    "shared.worker.services.scheduler",
    "shared.worker.services.hooks",
}
OF_TASKS = {"shared.worker.coding.runner", "shared.worker.coding.executor"}
TURNS = {"shared.models.demo.script", "shared.tools.describe", "shared.executors.claude_code"}
WORKERS = {
    "shared.loop",
    "shared.tools",
    "shared.store.sqlite",
    "shared.worker.runners.agent",
    "shared.worker.worker",
}


def _environment(home: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in variables()}
    return kept | {"PYTHONPATH": str(ROOT), "PROMPTDOCK_HOME": str(home)} | more


def _idle(agent: str, url: str, home: Path) -> set[str]:
    """The modules of a worker that has become ready and has had no turn."""
    program = (
        "import atexit, json, pathlib, sys\n"
        "from shared.worker.main import main\n"
        "atexit.register(lambda: print('\\n' + json.dumps(list(sys.modules))))\n"
        "main(pathlib.Path(sys.argv[1]))"
    )
    worker = subprocess.Popen(
        [sys.executable, "-c", program, str(ROOT / "agents" / agent)],
        env=_environment(home, REDIS_URL=url, PROMPTDOCK_NAMESPACE=f"loaded-{agent}"),
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert worker.stdout is not None
    told = []
    try:
        with worker.stdout as lines:
            for line in lines:
                told.append(line)
                if f"{agent.capitalize()} ready" in line:
                    worker.send_signal(signal.SIGTERM)
        assert worker.wait(PATIENCE) == 0, "".join(told)
    finally:
        worker.kill()
        worker.wait()
    return set(json.loads(told[-1]))


@pytest.mark.parametrize(
    ("agent", "foreign"),
    [
        ("backend", OF_CHATTER | {"re2"}),
        ("researcher", OF_CHATTER | OF_TASKS | {"re2"}),
        ("chatter", OF_TASKS),
    ],
)
def test_an_idle_worker_has_loaded_only_what_its_kind_needs_before_a_turn(
    agent: str, foreign: set[str], valkey: str, tmp_path: Path
) -> None:
    found = _idle(agent, valkey, tmp_path)
    assert "shared.worker.worker" in found
    assert sorted((LATER | TURNS | foreign) & found) == []


def test_who_only_supervises_loads_no_worker(tmp_path: Path) -> None:
    program = "import json, sys\nimport agents.__main__\nprint(json.dumps(list(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=_environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    found = set(json.loads(done.stdout))
    assert "shared.worker.supervisor" in found
    assert sorted((LATER | WORKERS) & found) == []
