"""Times as a person reads them: in their own zone, and named."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from shared.client.text.times import back, moment, since
from shared.errors import UsageError


@pytest.fixture(autouse=True)
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Somewhere one hour east of Greenwich."""
    with monkeypatch.context() as there:
        there.setenv("TZ", "CET-1")
        time.tzset()
        yield
    time.tzset()


def test_a_moment_is_told_in_the_persons_own_time_with_its_zone() -> None:
    iso = "2026-11-22T23:33:42.428567+00:00"
    assert moment(iso) == "2026-11-23 00:33 CET"
    assert moment(iso, seconds=True) == "2026-11-23 00:33:42 CET"
    assert moment("2026-11-22T23:33:42") == "2026-11-23 00:33 CET", "what names no zone is UTC"


def test_of_today_the_day_can_be_left_out() -> None:
    now = datetime.now(UTC)
    assert moment(now.isoformat(), brief=True) == now.astimezone().strftime("%H:%M CET")
    assert moment((now - timedelta(days=2)).isoformat(), brief=True).count("-") == 2


def test_what_is_no_moment_stays_as_it_is() -> None:
    assert (moment("soon"), moment(None), since("soon")) == ("soon", "", "")


def test_how_long_ago_something_was_is_told_in_one_word() -> None:
    assert since((datetime.now(UTC) - timedelta(minutes=3, seconds=5)).isoformat()) == "3 min"


def test_a_span_or_a_moment_that_a_person_types_is_understood_in_their_own_time() -> None:
    assert abs(back("10m") - (datetime.now(UTC) - timedelta(minutes=10))) < timedelta(seconds=5)
    assert abs(back("2 h") - (datetime.now(UTC) - timedelta(hours=2))) < timedelta(seconds=5)
    assert back("2026-11-22 14:30") == datetime(2026, 11, 22, 13, 30, tzinfo=UTC)
    assert back("14:30").astimezone().strftime("%H:%M %Z") == "14:30 CET"


@pytest.mark.parametrize("typed", ["", "soon", "10 weeks", "25:00", "99999999999d"])
def test_what_is_no_time_is_refused_with_an_example(typed: str) -> None:
    with pytest.raises(UsageError, match="is no time"):
        back(typed)
