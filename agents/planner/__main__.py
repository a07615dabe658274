"""Run Planner: `python -m agents.planner`."""

from pathlib import Path

from shared.worker.main import main

main(Path(__file__).parent)
