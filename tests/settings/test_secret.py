"""The cluster's secret is one that nobody else could have read."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path

import pytest

from shared.errors import ConfigurationError
from shared.secret import kept
from tests.support.guards import guarded


def test_a_secret_is_made_once_and_read_by_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    made = kept(file)
    assert (kept(file), file.stat().st_mode & 0o777) == (made, 0o600)


@guarded("private-files")
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_a_secret_that_others_could_read_is_none(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "secret"
    file.write_text("a" * 64)
    file.chmod(mode)
    assert not _taken(file)


@guarded("private-files")
def test_a_secret_of_another_user_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "secret"
    file.touch(0o600)
    file.write_text("a" * 64)
    somebody = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: somebody)
    assert not _taken(file)


@guarded("private-files")
@pytest.mark.parametrize("program", ["", "touch"])
def test_a_secret_that_git_has_is_none_and_nothing_of_the_repository_runs(
    tmp_path: Path, program: str
) -> None:
    home, ran = tmp_path / "repository" / ".promptdock", tmp_path / "ran"
    home.mkdir(parents=True)
    file = home / "secret"
    file.touch(0o600)
    file.write_text("a" * 64)
    assert kept(file)  # there is no repository

    def git(*words: str) -> None:
        subprocess.run(["git", *words], cwd=home.parent, check=True, capture_output=True, timeout=30)

    git("init", "-q")
    if program:
        git("config", "core.fsmonitor", f"{program} {ran}")
    assert kept(file)  # git does not have it
    git("-c", "core.fsmonitor=false", "add", "-f", ".promptdock/secret")
    assert not _taken(file) and not ran.exists()


def test_who_takes_the_secret_out_of_the_repository_gets_a_new_one(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    old = kept(file)
    for words in (["init", "-q"], ["add", "-f", "secret"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True, capture_output=True, timeout=30)
    with pytest.raises(ConfigurationError, match="git has it") as raised:
        kept(file)
    assert "git rm --cached secret" in raised.value.fix
    subprocess.run(["git", "rm", "-q", "--cached", "secret"], cwd=tmp_path, check=True, timeout=30)
    file.unlink()
    assert kept(file) != old


def _taken(file: Path) -> str:
    with contextlib.suppress(ConfigurationError):
        return kept(file)
    return ""
