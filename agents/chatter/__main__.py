"""Run Chatter: `python -m agents.chatter`."""

from pathlib import Path

from shared.worker.main import main

main(Path(__file__).parent)
