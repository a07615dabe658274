"""The cluster's secret is one that nobody else could have read."""

from __future__ import annotations

import contextlib
import os
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


def _taken(file: Path) -> str:
    with contextlib.suppress(ConfigurationError):
        return kept(file)
    return ""
