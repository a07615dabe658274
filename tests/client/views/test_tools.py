"""The tools that there are, by any of their names."""

from __future__ import annotations

import pytest

from shared.client.views import tools
from shared.errors import UsageError


def test_the_tools_of_a_category_are_those_that_say_so() -> None:
    everything = tools.catalogue()
    category = everything[-1]["category"]
    assert tools.catalogue(category) == [card for card in everything if card["category"] == category]
    with pytest.raises(UsageError, match="there is no category 'nonsense'"):
        tools.catalogue("nonsense")


def test_a_part_of_a_name_shows_a_tool_but_runs_none() -> None:
    assert tools.tool("list_task")["name"] == "list_tasks"
    assert tools.tool("list_tasks", exact=True)["name"] == "list_tasks"
    with pytest.raises(UsageError, match="list_task"):
        tools.tool("list_task", exact=True)
