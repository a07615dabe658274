"""Run Frontend: `python -m agents.frontend`."""

from pathlib import Path

from shared.worker.main import main

main(Path(__file__).parent)
