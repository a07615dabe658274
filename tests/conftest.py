"""What one test must not leave to the next, whichever room it is in."""

from __future__ import annotations

import os
import sys

import pytest

from shared import failpoints, redaction

# As `make test` has it: hundreds of processes that tests start would each compile all they import.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


@pytest.fixture(autouse=True)
def nothing_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """The values that are hidden belong to a process, and many tests share one."""
    monkeypatch.setattr(redaction, "_hidden", [])
    monkeypatch.setattr(redaction, "_starts", set())
    monkeypatch.setattr(redaction, "_ends", set())
    monkeypatch.setattr(failpoints, "_read", [])  # and so do the switches that it read


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--pictures", help="the folder into which the pictures of docs/web.md are made")
