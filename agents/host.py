"""Run all agents that are rows: `python -m agents.host`."""

from __future__ import annotations

import sys

from shared.worker.host import serve
from shared.worker.main import run_safely

if __name__ == "__main__":
    sys.exit(run_safely(serve))
