"""Names of agents become keys and channels: what is none becomes neither."""

from __future__ import annotations

import pytest

from shared.bus.keys import Names
from shared.errors import UsageError
from shared.worker.runners import peers

NONSENSE = ["x}:{y", "*", "a\nb", "", "A", "x" * 65, "../x", "a b", "é"]


@pytest.mark.parametrize("name", NONSENSE)
def test_what_no_agent_is_called_becomes_no_key_and_no_channel(name: str) -> None:
    for make in (Names().queue, Names().agent):
        with pytest.raises(UsageError, match="no agent is called"):
            make(name)
    assert not peers._asked(name)


@pytest.mark.parametrize("name", ["status", "person", "system", "operator", "human"])
def test_names_that_are_something_else_are_not_asked(name: str) -> None:
    assert not peers._asked(name)
    assert peers._asked("planner")
