"""Thousands of hostile calls by fooled agents: python -m tests.attacks --calls 10000. The seed makes it repeatable."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from shared.bus.embedded import Embedded
from tests.attacks.fooled.cluster import Run
from tests.support.valkey import free_port

WEIGHTS = {"c": 6, "r": 1, "b": 3, "k": 3}


def main() -> int:
    """The exit code is 1 where something happened that nobody allowed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 1_000_000)
    parser.add_argument("--per-turn", type=int, default=120, help="calls of one turn")
    parser.add_argument("--sandbox", default="auto", help="as the setting SANDBOX")
    parser.add_argument(
        "--agents",
        default="crb",
        help="of Chatter, Researcher, Backend, or in its place Claude Code (k), whom to fool",
    )
    chosen = parser.parse_args()
    if set(chosen.agents) - set(WEIGHTS) or {"b", "k"} <= set(chosen.agents):
        parser.error("--agents takes letters of c, r, b and k, and of b and k one: Backend has one executor")
    whole = sum(WEIGHTS[kind] for kind in chosen.agents)
    shares = {kind: chosen.calls * WEIGHTS[kind] // whole for kind in chosen.agents}
    print(f"seed {chosen.seed}, {sum(shares.values())} calls: {shares}", flush=True)
    with tempfile.TemporaryDirectory(prefix="promptdock-attacks-") as folder:
        server = Embedded(Path(folder) / "redis", free_port())
        try:
            run = Run(Path(folder) / "run", server.start(), chosen.seed, SANDBOX=chosen.sandbox)
            report = run(shares, chosen.per_turn, lambda line: print(line, flush=True))
        finally:
            server.stop()
    print(report.told())
    return 1 if report.violations or report.unfinished else 0


if __name__ == "__main__":
    sys.exit(main())
