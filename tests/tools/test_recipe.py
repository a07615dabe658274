"""The recipe of AGENTS.md for a tool is followed as it is written."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from shared.guard.permissions.presets import preset
from shared.tools.execute import ToolExecutor
from shared.tools.knowledge import notes
from shared.tools.registry import Category, Registry, Tool
from tests.tools.bench import Bench

PAGE = Path(__file__).parents[2] / "AGENTS.md"


def _followed(change: str = "") -> Tool:
    """The tool that the page writes into the module of the notes, which does not stay in it."""
    found = re.search(r"```python\n(.*?)  ```", PAGE.read_text(), re.DOTALL)
    assert found, "the recipe has an example"
    written = textwrap.dedent(found[1])
    category = Category(notes.category.name, notes.category.description)
    exec(
        written.replace(', touches=touching("records")', change or ', touches=touching("records")'),
        {**vars(notes), "category": category},
    )
    return category.tools[0]


def _vote(tool: Tool) -> str:
    checked = tool.check({"project_id": "default"})
    return (
        preset("standard")
        .decide(tool.name, tool.category, [tool.detail(checked)], tool.touched(checked))
        .vote
    )


async def test_the_tool_of_the_recipe_can_be_called_and_is_allowed(bench: Bench) -> None:
    tool = _followed()
    assert tool.description == "How many notes a project has." and "project_id" in tool.schema["properties"]
    assert _vote(tool) == "allow"
    await bench.ok("append_note", project_id="default", title="A note", content="x")
    category = Category(tool.category, "", [tool])
    told = await ToolExecutor(Registry([category])).execute(
        tool.name, {"project_id": "default"}, bench.context(), "s"
    )
    assert told == {"project_id": "default", "notes": 1}


def test_one_that_does_not_say_what_it_touches_is_asked_for() -> None:
    assert _vote(_followed(change=" ")) == "ask"
