"""How well what is remembered fits, as it is told beside the best of one answer."""

from __future__ import annotations

import pytest

from gateways.cli.commands.memory import _fits


@pytest.mark.parametrize(
    ("scores", "told"),
    [
        ([0.04, 0.02, 0.01], ["100%", "50%", "25%"]),
        ([7], ["100%"]),
        ([0.5, -0.5], ["100%", "0%"]),
        ([0, 0], ["", ""]),
        ([-1, -2], ["", ""]),
        ([], []),
    ],
    ids=["a scale", "one", "none below nothing", "nothing fits", "all below nothing", "nothing found"],
)
def test_the_best_is_the_whole_and_the_others_are_shares_of_it(scores: list[float], told: list[str]) -> None:
    assert _fits([{"score": score} for score in scores]) == told
