"""Tries come ever more seldom, and end after days."""

from __future__ import annotations

import itertools
from datetime import timedelta

from shared.notify import pace
from shared.store.records import now


def test_tries_come_ever_more_seldom_and_end_after_three_days() -> None:
    begun = at = now()
    pauses: list[float] = []
    while (later := pace.again(len(pauses) + 1, begun, at)) is not None:
        pauses.append((later - at).total_seconds())
        at = later
    assert 4 < pauses[0] < 6 and 25 < pauses[1] < 35
    assert all(later > 0.8 * sooner for sooner, later in itertools.pairwise(pauses))
    assert timedelta(days=pace.DAYS) <= at - begun < timedelta(days=pace.DAYS, hours=7)
    assert len(pauses) < 30


def test_a_receiver_that_asks_to_be_left_alone_is() -> None:
    at = now()
    later = pace.again(1, at, at, least=3600)
    assert later is not None and later - at == timedelta(hours=1)
