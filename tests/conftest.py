"""What one test must not leave to the next, whichever room it is in."""

from __future__ import annotations

import os
import sys

import hypothesis
import pytest

from shared import failpoints, redaction
from tests.support import forked

# As `make test` has it: hundreds of processes that tests start would each compile all they import.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# The same examples each time, however slow the machine: pytest --hypothesis-profile=default looks for others.
hypothesis.settings.register_profile(
    "suite", derandomize=True, deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("suite")

# The folders whose files take longest come first: the last files then end at about the same time.
_LONG = (
    "faults",
    "journey",
    "web",
    "cli",
    "attacks",
    "cluster",
    "deployment",
    "benchmarks",
    "scheduler",
    "executors",
)


@pytest.fixture(autouse=True)
def nothing_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """The values that are hidden belong to a process, and many tests share one."""
    monkeypatch.setattr(redaction, "_hidden", [])
    monkeypatch.setattr(redaction, "_starts", set())
    monkeypatch.setattr(redaction, "_ends", set())
    monkeypatch.setattr(failpoints, "_read", [])  # and so do the switches that it read


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ranks = {folder: rank for rank, folder in enumerate(_LONG)}
    items.sort(key=lambda item: ranks.get(item.nodeid.split("/")[1], len(ranks)))


def pytest_sessionfinish() -> None:
    forked.close()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--pictures", help="the folder into which the pictures of docs/web.md are made")
