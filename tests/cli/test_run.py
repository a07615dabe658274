"""An error is words and an exit code, whatever a command meets."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
import typer

from gateways.cli.run import run
from shared.settings import Settings


@pytest.fixture(autouse=True)
def logs() -> Iterator[None]:
    """A command sets up logging for its whole process, which here is that of other tests too."""
    before = structlog.get_config()
    yield
    structlog.configure(**before)


async def _fills_the_disk(settings: Settings) -> int:
    with open("/dev/full", "w") as file:  # noqa: ASYNC230, PTH123 - the device that is always full
        file.write("x")
    return 0


async def _meets_something_else(settings: Settings) -> int:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_a_full_disk_is_told_without_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PROMPTDOCK_HOME", str(tmp_path))
    with pytest.raises(typer.Exit) as left:
        run(_fills_the_disk)
    assert left.value.exit_code == 1
    told = capsys.readouterr().err
    assert "No space left" in told
    assert "do:  make room" in told


def test_an_error_that_nobody_foresaw_keeps_its_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROMPTDOCK_HOME", str(tmp_path))
    with pytest.raises(OSError, match="Input/output"):
        run(_meets_something_else)
