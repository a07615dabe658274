"""A call is bound once: what a gate judges is what runs."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator

from shared.errors import ToolError
from shared.tools.context import Context
from shared.tools.execute import ToolExecutor
from shared.tools.registry import BoundCall, BoundCalls, Category, Registry, Result
from tests.tools.bench import Bench

read: list[Any] = []


def _counted(value: Any) -> Any:
    read.append(value)
    return value


category = Category("things", "Things")


@category.tool(effect="pure", detail=lambda arguments: f"number {arguments['number']}", also=("old_double",))
async def double(here: Context, number: Annotated[int, BeforeValidator(_counted)], more: str = "-") -> Result:
    """Twice the number."""
    assert here.registry is REGISTRY
    return {"twice": 2 * number, "more": more}


REGISTRY = Registry([category])


def test_a_bound_call_has_its_arguments_as_the_tool_takes_them() -> None:
    bound = REGISTRY.bind("old_double", {"number": "4"})
    assert isinstance(bound, BoundCall)
    assert (bound.name, bound.tool.name, bound.detail) == ("old_double", "double", "number 4")
    assert bound.arguments == {"number": 4, "more": "-"}


def test_what_cannot_be_bound_says_why() -> None:
    unknown, wrong = REGISTRY.bind("treble", {}), REGISTRY.bind("double", {"number": "four"})
    assert isinstance(unknown, ToolError) and "no tool called 'treble'" in str(unknown)
    assert isinstance(wrong, ToolError) and "number: " in str(wrong)


async def test_the_arguments_are_read_once_for_the_permission_and_the_run(bench: Bench) -> None:
    read.clear()
    given = {"number": "4"}
    calls = BoundCalls(REGISTRY)
    judged = calls.of("t.1.1", "double", given)
    given["number"] = "5"  # whoever still holds them changes nothing of what was judged
    bound = calls.pop("t.1.1", "double", given)
    assert bound is judged and read == ["4"]
    assert (await ToolExecutor(REGISTRY).run(bound, bench.context()))["twice"] == 8
    assert calls.of("t.1.1", "double", given) is not judged and read == ["4", "5"]


async def test_a_call_that_cannot_be_bound_is_a_result_that_says_so(bench: Bench) -> None:
    executor = ToolExecutor(REGISTRY)
    told = await executor.run(REGISTRY.bind("double", {}), bench.context())
    assert told == await executor.execute("double", {}, bench.context())
    assert "cannot take these arguments" in told["error"]
