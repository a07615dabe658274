"""Tools of another source than the catalog: loaded, shown, checked and run as ours are."""

from __future__ import annotations

from typing import Any

import pytest

from shared.errors import ToolError
from shared.tools import catalog
from shared.tools.categories import TIERS, tiers
from shared.tools.context import Context
from shared.tools.execute import ToolExecutor
from shared.tools.registry import Category, Result, Tool
from shared.tools.view import ToolView
from tests.tools.bench import Bench

ours = catalog.registry()


class OnlyNumbers:
    def __init__(self) -> None:
        self.schema = {"type": "object", "properties": {"2nd": {"type": "number"}}}

    def check(self, tool: str, arguments: Any) -> dict[str, Any]:
        if not all(isinstance(value, int) for value in arguments.values()):
            raise ToolError(f"{tool} cannot take these arguments", "2nd: no number")
        return dict(arguments)


async def _add(_here: Context, /, **arguments: Any) -> Result:
    return {"sum": sum(arguments.values())}


def _theirs() -> Category:
    tool = Tool("x__add", "x", "Adds.", "once", _add, accepts=OnlyNumbers())
    return Category("x", "Sums", [tool], on_demand=True)


async def test_a_tool_with_a_schema_of_its_own_is_checked_by_it_and_run(bench: Bench) -> None:
    handler = ToolExecutor(ours.extended([_theirs()]))
    assert await handler.execute("x__add", {"2nd": 2, "here": 3}, bench.context()) == {"sum": 5}
    refused = await handler.execute("x__add", {"2nd": "two"}, bench.context())
    assert refused == {"error": "x__add cannot take these arguments", "why": "2nd: no number"}


def test_extending_the_registry_leaves_ours_as_it_was() -> None:
    more = ours.extended([_theirs()])
    assert "x__add" in more and "x__add" not in ours
    assert list(tiers(ours)) == list(TIERS)
    assert list(tiers(more)) == [*TIERS, "x"]


async def test_a_category_of_another_source_is_listed_and_loaded_as_ours_are(bench: Bench) -> None:
    handler = ToolExecutor(ours.extended([_theirs()]))
    listed = await handler.execute("browse_tools", {}, bench.context())
    assert {"name": "x", "description": "Sums", "tool_count": 1} in listed["categories"]
    loaded = await handler.execute("load_tools", {"category": "x"}, bench.context())
    assert loaded["tools_added"] == ["x__add"] and loaded["message"] == "1 x tools are now available."


def test_the_view_shows_them_when_they_are_loaded_and_names_them_before() -> None:
    view = ToolView(ours.extended([_theirs()]), ["list_tasks"], on_demand=True)
    assert "x: x__add" in view.index
    assert [tool.name for tool in view.shown()] == ["list_tasks"]
    assert [tool.name for tool in view.shown(["x"])] == ["list_tasks", "x__add"]
    assert view.runs("x__add")
    assert [spec.deferred for spec in view.specs(defer=True) if spec.name == "x__add"] == [True]


def test_without_the_source_the_category_is_not_there() -> None:
    view = ToolView(ours, ["list_tasks"], on_demand=True)
    assert not view.runs("x__add")
    with pytest.raises(ToolError, match="no category or tool called 'x'"):
        view.shown(["x"])
