"""A part of a name is enough, where it can mean one thing only."""

from __future__ import annotations

import pytest

from shared.client.text.matching import pick
from shared.errors import UsageError

NAMES = ["calm-otter", "calm-ivy", "warm-otter-2", "warm"]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("calm-otter", "calm-otter"),
        ("calm-o", "calm-otter"),
        ("CALM-I", "calm-ivy"),
        ("warm", "warm"),
        ("ter-2", "warm-otter-2"),
    ],
)
def test_a_name_its_beginning_or_a_part_that_no_other_has_is_that_name(typed: str, meant: str) -> None:
    assert pick(typed, NAMES, "task") == meant


@pytest.mark.parametrize(
    ("typed", "several"), [("calm", "calm-ivy, calm-otter"), ("otter", "calm-otter, warm-otter-2")]
)
def test_what_may_mean_several_is_refused_with_their_names(typed: str, several: str) -> None:
    with pytest.raises(UsageError) as told:
        pick(typed, NAMES, "task")
    assert several in told.value.why and told.value.fix == "write more of it"


def test_a_misspelt_name_is_answered_with_what_comes_close() -> None:
    with pytest.raises(UsageError) as told:
        pick("calm-oter", NAMES, "task", "promptdock tasks list shows them")
    assert told.value.what == "there is no task 'calm-oter'"
    assert "did you mean calm-otter" in told.value.why
    assert told.value.fix == "promptdock tasks list shows them"


@pytest.mark.parametrize("typed", ["", "zz", "er"])
def test_what_fits_by_chance_alone_means_nothing(typed: str) -> None:
    with pytest.raises(UsageError, match="there is no task"):
        pick(typed, NAMES, "task")
