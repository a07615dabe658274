"""Run Researcher: `python -m agents.researcher`."""

from pathlib import Path

from shared.worker.main import main

main(Path(__file__).parent)
