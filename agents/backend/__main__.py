"""Run Backend: `python -m agents.backend`."""

from pathlib import Path

from shared.worker.main import main

main(Path(__file__).parent)
