"""An error is words and an exit code, whatever a command meets."""

from __future__ import annotations

import errno
import json
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
import typer

from gateways.cli import ending, screen
from gateways.cli.run import run
from shared.errors import (
    BusUnreachable,
    ConfigurationError,
    Denied,
    Interrupted,
    ModelRefused,
    PromptDockError,
    StoreUnavailable,
    TimedOut,
    UsageError,
)  # fmt: skip
from shared.settings import Settings

KEY = "sk-ant-api03-made-up-for-a-test-of-errors"


@pytest.fixture(autouse=True)
def logs() -> Iterator[None]:
    """A command sets up logging for its whole process, which here is that of other tests too."""
    before = structlog.get_config()
    screen.begin([])
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


def test_an_error_that_nobody_foresaw_is_one_line_and_its_traceback_stands_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PROMPTDOCK_HOME", str(tmp_path))
    (tmp_path / "logs").mkdir()
    with pytest.raises(typer.Exit) as left:
        run(_meets_something_else)
    assert left.value.exit_code == 1
    told = capsys.readouterr().err
    assert "Input/output error" in told and "Traceback" not in told
    kept = tmp_path / "logs" / "cli.log"
    assert str(kept) in told
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    record = json.loads(kept.read_text())
    assert "_meets_something_else" in record["exception"] and record["level"] == "error"


def test_without_a_data_folder_the_traceback_stands_in_a_file_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PROMPTDOCK_HOME", str(tmp_path / "none"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(typer.Exit):
        run(_meets_something_else)
    (kept,) = tmp_path.iterdir()
    assert str(kept) in capsys.readouterr().err
    assert "_meets_something_else" in kept.read_text()


def test_who_wants_to_debug_sees_the_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PROMPTDOCK_HOME", str(tmp_path / "none"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("LOG_LEVEL", "debug")
    with pytest.raises(typer.Exit):
        run(_meets_something_else)
    assert "Traceback" in capsys.readouterr().err


def test_a_secret_in_an_error_that_nobody_foresaw_is_written_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PROMPTDOCK_HOME", str(tmp_path))
    (tmp_path / "logs").mkdir()
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)

    async def told(settings: Settings) -> int:
        raise RuntimeError(f"the key is {KEY}")

    with pytest.raises(typer.Exit):
        run(told)
    assert KEY not in capsys.readouterr().err + (tmp_path / "logs" / "cli.log").read_text()


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (PromptDockError("x"), 1),
        (UsageError("x"), 2),
        (BusUnreachable("x"), 3),
        (StoreUnavailable("x"), 3),
        (ConfigurationError("x"), 4),
        (ModelRefused("x"), 4),
        (TimedOut("x"), 5),
        (Denied("x"), 6),
        (Interrupted("x"), 130),
        (KeyboardInterrupt(), 130),
        (BrokenPipeError(), 0),
    ],
)
def test_each_kind_of_error_has_its_exit_code(error: BaseException, code: int) -> None:
    def fails() -> int:
        raise error

    assert ending.code(fails) == code
