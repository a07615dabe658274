"""The log is the least important file on a full disk."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

WORK = """
from shared import log
log.setup(style="json")
for number in range(5000):
    log.get().info("a line that cannot be written", number=number)
print("the work went on")
"""


def test_work_goes_on_when_its_log_cannot_be_written() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", WORK],
            stdout=subprocess.PIPE,
            stderr=full,
            cwd=Path(__file__).parents[2],
            timeout=60,
        )
    assert done.stdout == b"the work went on\n"
