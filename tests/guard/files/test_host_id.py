"""A home has one id, whoever asks first."""

from __future__ import annotations

import fcntl
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from shared.guard.files.host_id import home_id

WORKERS = 5


def test_workers_that_start_at_the_same_moment_agree_on_it(tmp_path: Path) -> None:
    together = Barrier(WORKERS)

    def ask(home: Path) -> str:
        together.wait(30)
        return home_id(home)

    with ThreadPoolExecutor(WORKERS) as pool:
        for number in range(300):
            found = set(pool.map(ask, [tmp_path / f"home{number}"] * WORKERS))
            assert len(found) == 1 and "" not in found


def test_a_home_that_has_one_is_only_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = home_id(tmp_path)
    monkeypatch.setattr(fcntl, "flock", lambda *_: pytest.fail("it was opened to be written"))
    assert home_id(tmp_path) == first


def test_it_stays_the_same_and_one_that_was_left_empty_is_made_anew(tmp_path: Path) -> None:
    first = home_id(tmp_path / "home")
    assert home_id(tmp_path / "home") == first != home_id(tmp_path / "other")
    (tmp_path / "home" / "home-id").write_text("")
    assert len(home_id(tmp_path / "home")) == len(first)
