"""`python -m benchmarks [--quick] [PART …]`: measure and print."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import uvloop

from benchmarks import bus, machine
from benchmarks.bus import Size

FULL = Size(rounds=7, seconds=0.4, levels=(1, 32, 256))
QUICK = Size(rounds=3, seconds=0.1, levels=(1, 32))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="about 20 s, and rougher figures")
    given = parser.parse_args()
    size = QUICK if given.quick else FULL
    print("\n".join(machine.facts()))
    with tempfile.TemporaryDirectory(prefix="promptdock-bench-") as home:
        uvloop.run(bus.measure(Path(home), size))


if __name__ == "__main__":
    main()
