"""An error as people read it."""

from __future__ import annotations

import pytest

from shared.errors import PromptDockError


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        (
            ("the key is not taken", "it ran out", "set a new one"),
            "the key is not taken. It ran out. Set a new one",
        ),
        (("no cluster runs", "", "promptdock up starts one"), "no cluster runs. promptdock up starts one"),
        (("it is refused.", "list_tasks shows them"), "it is refused. list_tasks shows them"),
        (
            ("it is refused", "shop.py is a file", "'x' is free"),
            "it is refused. shop.py is a file. 'x' is free",
        ),
        (("there is none", "Did you mean x?", "say it"), "there is none. Did you mean x? Say it"),
        (("it is refused", "make"), "it is refused. make"),
    ],
)
def test_after_a_full_stop_stands_a_capital_unless_it_is_a_name(parts: tuple[str, ...], told: str) -> None:
    assert PromptDockError(*parts).told() == told
