"""What a cluster with nothing to do costs: processor time and wake-ups of all its processes, on SQLite."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.server import environment

_SETTLES = 10.0  # seconds after the start in which it loads libraries and tidies up


def measure(home: Path, seconds: float) -> None:
    """Print a line for each process, and all together; Linux tells it by thread."""
    place = home / "idle"
    place.mkdir()
    _run(place, "up", "--detach")
    try:
        time.sleep(_SETTLES)
        noted = json.loads((place / ".promptdock" / "cluster.json").read_text())
        processes = {"supervisor": int(noted["pid"])}
        processes |= {str(one["name"]): int(one["pid"]) for one in noted["processes"]}
        before = {name: _used(pid) for name, pid in processes.items()}
        time.sleep(seconds)
        after = {name: _used(pid) for name, pid in processes.items()}
    finally:
        _run(place, "down")
    load = os.getloadavg()[0]
    print(f"\nA cluster with nothing to do, over {seconds:g} s (load {load:.1f}, its own part included):")
    whole = 0.0
    for name in processes:
        share, woken = ((after[name][n] - before[name][n]) / seconds for n in (0, 1))
        whole += share
        print(f"  {name:11} {share:6.2%} of a core, {woken:5.1f} wake-ups a second")
    print(f"  {'together':11} {whole:6.2%}; the aim is under 1 %")


def _used(pid: int) -> tuple[float, int]:
    """Seconds of processor, and how often its threads went to sleep."""
    spent, slept = 0.0, 0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        spent += int((thread / "schedstat").read_text().split()[0]) / 1e9
        lines = (thread / "status").read_text().splitlines()
        slept += sum(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt"))
    return spent, slept


def _run(home: Path, *words: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "gateways.cli", *words],
        cwd=home,
        env=environment(PROMPTDOCK_HOME=str(home / ".promptdock")),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
        timeout=120,
    )
