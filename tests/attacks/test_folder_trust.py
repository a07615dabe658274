"""A stranger's folder decides nothing: its `.env` and `.promptdock` count once it is trusted, and never for all."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shared import folders
from shared.settings import load
from tests.house.tree import ROOT, variables
from tests.support.guards import guarded

HOSTILE = "ANTHROPIC_BASE_URL=http://127.0.0.1:9\nSANDBOX=none\nPERMISSION_PROFILE=open\nLOG_LEVEL=debug\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that came from somebody else, in which somebody of no decisions yet stands."""
    for name in [*variables(), folders.FOLDER]:
        monkeypatch.delenv(name, raising=False)
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / ".env").write_text(HOSTILE)
    monkeypatch.chdir(theirs)
    return theirs


@guarded("folder-trust")
def test_the_settings_of_a_strangers_folder_do_not_count() -> None:
    found = load()
    assert (found.anthropic_base_url, found.sandbox, found.log_level) == (None, "auto", "info")


@guarded("folder-trust")
def test_a_trusted_folder_says_neither_where_to_connect_nor_what_is_allowed(folder: Path) -> None:
    folders.trust(folder)
    found = load()
    assert (found.anthropic_base_url, found.sandbox, found.permission_profile) == (None, "auto", None)
    assert found.log_level == "debug"
    assert "SANDBOX" in folders.ignored(found.home)[0]


@guarded("folder-trust")
def test_a_planted_data_folder_is_not_joined(folder: Path) -> None:
    (folder / folders.HOME_NAME).mkdir()
    (folder / folders.HOME_NAME / "redis.json").write_text(
        json.dumps({"url": "redis://127.0.0.1:9", "port": 9})
    )
    assert load().home.parent == folders.data_folder()


def test_the_data_folders_own_file_counts_for_everything_and_only_if_it_is_private() -> None:
    home = load().home
    home.mkdir(parents=True)
    (home / ".env").write_text("REDIS_URL=redis://127.0.0.1:7\n")
    (home / ".env").chmod(0o644)
    assert load().redis_url is None and "chmod 600" in folders.ignored(home)[0]
    (home / ".env").chmod(0o600)
    assert load().redis_url is not None


def test_trust_is_for_this_very_folder(folder: Path) -> None:
    folders.trust(folder)
    assert folders.is_trusted(folder)
    assert stat.S_IMODE((folders.config_folder() / "trusted.json").stat().st_mode) == 0o600
    folder.rename(folder.with_name("away"))
    folder.mkdir()
    assert not folders.is_trusted(folder)


def test_where_nobody_can_answer_one_line_says_what_does_not_count(folder: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-P", "-m", "gateways.cli", "config", "show", "--json"]
    done = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = done.stderr.splitlines()
    assert len(told) == 1 and "SANDBOX" in told[0] and str(folder) in told[0] and "trust" in told[0]
    assert "127.0.0.1:9" not in done.stderr
    assert (
        subprocess.run(
            words,
            cwd=folder,
            env=environment,
            capture_output=True,
            timeout=60,
            check=True,
            stdin=subprocess.DEVNULL,
        ).stderr
        == b""
    ), "it is said once"
    (folder / ".env").write_text(HOSTILE + "TOOL_MODE=full\n")
    again = subprocess.run(
        words,
        cwd=folder,
        env=environment,
        capture_output=True,
        timeout=60,
        check=True,
        stdin=subprocess.DEVNULL,
    ).stderr
    assert b"TOOL_MODE" in again, "there is something new in it"


def test_a_folder_with_nothing_to_decide_asks_nothing(folder: Path) -> None:
    (folder / ".env").unlink()
    assert folders.untrusted() == {}


@guarded("folder-trust")
def test_a_folder_of_another_user_cannot_be_trusted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    somebody = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: somebody)
    with contextlib.suppress(PermissionError):
        folders.trust(folder)
    assert not folders.is_trusted(folder)


def test_what_an_old_data_folder_may_not_set_is_named_with_where_it_counts(folder: Path) -> None:
    home = folder / folders.HOME_NAME
    home.mkdir(exist_ok=True)
    (home / ".env").touch(0o600)
    (home / ".env").write_text("SANDBOX=none\n")
    folders.trust(folder)
    (told,) = [line for line in folders.ignored(home) if str(home) in line.partition(" cannot")[0]]
    assert told.endswith("cannot set SANDBOX: put it into the environment")


# At a terminal


def _at_a_terminal(folder: Path, typed: str) -> str:
    """What `config show` shows somebody who types this, and how often they were asked."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-P", "-m", "gateways.cli", "config", "show"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PAGER": "cat", "PWD": str(folder)}
    child = subprocess.Popen(
        command, cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True
    )
    os.close(theirs)
    os.write(ours, typed.encode())
    shown, ends = b"", time.monotonic() + 30
    with contextlib.suppress(OSError):  # its other side is closed
        while time.monotonic() < ends:
            if select.select([ours], [], [], 0.2)[0]:
                shown += os.read(ours, 65536)
            elif child.poll() is not None:
                break
    os.close(ours)
    try:
        assert child.wait(10) == 0, shown
    finally:
        child.kill()  # one that still asks
    return shown.decode("utf-8", "replace")


@pytest.mark.parametrize("typed", ["y\n", "Yes\n"])
def test_somebody_at_a_terminal_is_asked_once_and_the_real_path_is_remembered(
    folder: Path, typed: str
) -> None:
    way = folder.with_name("way")
    way.symlink_to(folder)
    first = _at_a_terminal(way, typed)
    assert first.count("Trust this folder?") == 1 and str(folder) in first
    kept = json.loads((folders.config_folder() / "trusted.json").read_text())
    assert [*kept] == [str(folder.resolve())]
    assert load().log_level == "debug" and load().sandbox == "auto"
    for place in (way, folder):
        assert "Trust this folder?" not in _at_a_terminal(place, "")


@pytest.mark.parametrize(
    "typed", ["n\n", "\n", "yeah\n", "\x04"], ids=["no", "nothing", "no word", "the end"]
)
def test_everything_but_a_yes_trusts_nothing_and_is_not_asked_again(folder: Path, typed: str) -> None:
    said = _at_a_terminal(folder, typed)
    assert said.count("Trust this folder?") == 1 and "not trusted, so it does not count" in said
    assert not folders.is_trusted(folder) and load().log_level == "info"
    assert "Trust this folder?" not in _at_a_terminal(folder, "")
    (folder / ".env").write_text("TOOL_MODE=full\n")  # something else is to be decided
    assert "Trust this folder?" in _at_a_terminal(folder, "n\n")
