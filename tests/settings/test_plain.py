"""Amounts as people read them."""

from __future__ import annotations

import pytest

from shared.plain import dollars


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (0, "$0.00"),
        (2.5, "$2.50"),
        (20, "$20.00"),
        (0.1, "$0.10"),
        (0.05, "$0.05"),
        (0.001, "$0.001"),
        (0.0123, "$0.0123"),
    ],
)
def test_an_amount_that_is_less_than_a_cent_is_not_told_as_nothing(value: float, told: str) -> None:
    assert dollars(value) == told
