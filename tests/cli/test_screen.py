"""What the command line makes of values before it prints them."""

from __future__ import annotations

import time

import pytest

from gateways.cli import screen


def test_a_moment_is_told_to_the_minute_in_the_persons_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as place:
        place.setenv("TZ", "CET-1")
        time.tzset()
        told = screen.moment("2026-11-22T23:33:42.428567+00:00")
    time.tzset()
    assert told == "2026-11-23 00:33 CET"
    assert screen.moment("soon") == "soon"
