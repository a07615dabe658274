"""What the model is shown of the registry during one interaction: core at first, the rest when it is loaded.

What was loaded is read from the journal of the turn, so that a worker which takes the turn over shows the
same. On models that can defer tools the list stays the same, byte for byte, and loading reveals parts of it:
the provider's cache begins with the tools. Elsewhere what is loaded is appended, in the order of loading.
Running a tool never depends on any of this.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from shared.errors import ToolError
from shared.models.base import Answer, Block, Model, ModelMessage, OnDelta, Request, ToolSpec
from shared.tools.abridge import abridged
from shared.tools.categories import CORE, tiers
from shared.tools.registry import Registry, Tool
from shared.turns.records import Records

LOAD = "load_tools"
ToolMode = Literal["tiered", "full"]


def spec(tool: Tool, deferred: bool = False) -> ToolSpec:
    """A tool as the model is shown it."""
    return ToolSpec(tool.name, tool.description, tool.schema, deferred)


def named(registry: Registry, name: str) -> list[Tool]:
    """The tools that loading `name` (a category, or one tool) brings; ToolError for an unknown one."""
    loadable = tiers(registry)
    if name in loadable:
        return registry.category(name)
    if name in registry:
        return [registry.get(name)]
    raise ToolError(
        f"there is no category or tool called {name!r}",
        f"the categories are: {', '.join(loadable)}",
        "browse_tools lists them",
    )


def loaded(records: Records) -> list[str]:
    """What was loaded by the turn whose journal this is, in order, each once."""
    names = [str(result.content.get("loaded")) for result in records.results(LOAD) if not result.error]
    return list(dict.fromkeys(names))


@dataclass(frozen=True)
class ToolView:
    """The view of one agent: `always` is shown from the start; with `on_demand`, the categories can be loaded,
    and of its own tools what is `loadable`.

    `hidden` tools are never shown, in whatever way they would be.
    """

    registry: Registry
    always: Sequence[str]
    on_demand: bool = False
    mode: ToolMode = "tiered"
    hidden: Callable[[Tool], bool] = lambda _tool: False
    loadable: Sequence[str] = ()

    def shown(self, names: Iterable[str] = ()) -> list[Tool]:
        """The tools to show once `names` (categories and tools) were loaded, each once."""
        tools = self.registry.pick(self.always)
        if self.on_demand:
            tools += self._rest() if self.mode == "full" else self._loaded(names)
        return self._visible(tools)

    def specs(self, names: Iterable[str] = (), defer: bool = False) -> tuple[ToolSpec, ...]:
        """The same for the model; with `defer` always all of them, what is not core being deferred."""
        if not (defer and self.on_demand and self.mode == "tiered"):
            return tuple(spec(tool) for tool in self.shown(names))
        return self._deferring

    def runs(self, name: str) -> bool:
        """Whether a call of that name is one for this agent: shown or, on demand, anything in the view."""
        if name not in self.registry:
            return False
        tool = self.registry.get(name)
        if tool.name in self._own:
            return True
        return self.on_demand and (tool.category in (CORE, *self._names) or tool.name in self.loadable)

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(tiers(self.registry))

    @cached_property
    def _own(self) -> frozenset[str]:
        return frozenset(tool.name for tool in self.registry.pick(self.always))

    @cached_property
    def _deferring(self) -> tuple[ToolSpec, ...]:
        tools = self._visible([*self.registry.pick(self.always), *self._rest()])
        return tuple(spec(tool, deferred=tool.name not in self._own) for tool in tools)

    @cached_property
    def index(self) -> str:
        """The names of all that can be loaded, by category, for the prompt: it spares a look around."""
        if not self.on_demand or self.mode == "full":
            return ""
        lines = [f"{name}: {abridged(tool.name for tool in tools)}" for name, tools in self._tiers()]
        if more := self._visible(self.registry.pick(self.loadable)):
            lines.append(f"by name only: {abridged(tool.name for tool in more)}")
        text = "Further tools ({a,b}_c: a_c, b_c). Before you use one, load its category, or it alone, with load_tools:"
        return "\n".join([text, *lines])

    def _tiers(self) -> Iterator[tuple[str, list[Tool]]]:
        for name in self._names:
            tools = self._visible(self.registry.category(name))
            if tools := [tool for tool in tools if tool.name not in self._own]:
                yield name, tools

    def _loaded(self, names: Iterable[str]) -> list[Tool]:
        return [tool for name in names if name != CORE for tool in named(self.registry, name)]

    def _rest(self) -> list[Tool]:
        tools = [tool for name in (CORE, *self._names) for tool in self.registry.category(name)]
        return [*tools, *(tool for tool in self.registry if tool.older), *self.registry.pick(self.loadable)]

    def _visible(self, tools: Iterable[Tool]) -> list[Tool]:
        return list({tool.name: tool for tool in tools if not self.hidden(tool)}.values())


class ViewedModel(Model):
    """A model that is shown, with each request that has tools at all, what the view holds at that moment.

    `before` is what the conversation loaded earlier; what there is no more of it is left out.
    """

    def __init__(self, model: Model, view: ToolView, records: Records, before: Sequence[str] = ()) -> None:
        self._model, self._view, self._records = model, view, records
        self._before = [name for name in before if _there(view.registry, name)]
        self.name, self.demo = model.name, model.demo

    async def answer(self, request: Request, on_delta: OnDelta | None = None) -> Answer:
        if request.tools:
            defer = self._model.defers(request.model)
            tools = self._view.specs(dict.fromkeys([*self._before, *loaded(self._records)]), defer)
            later = frozenset(tool.name for tool in tools if tool.deferred)
            messages = tuple(_revealing(request.messages, later)) if later else request.messages
            request = replace(request, tools=tools, messages=messages)
        return await self._model.answer(request, on_delta)

    async def models(self) -> list[str]:
        return await self._model.models()

    async def check(self) -> None:
        await self._model.check()


def _there(registry: Registry, name: str) -> bool:
    return name in registry or name in tiers(registry)


def _revealing(messages: Iterable[ModelMessage], deferred: frozenset[str]) -> Iterator[ModelMessage]:
    """The messages with references to tools in place of what load_tools said.

    Earlier interactions keep theirs: a history that changes would cost the cache, and with it the thought.
    """
    calls: set[str] = set()
    for message in messages:
        if isinstance(message["content"], str):
            yield message
            continue
        blocks: list[Block] = message["content"]
        calls |= {block["id"] for block in blocks if block["type"] == "tool_use" and block["name"] == LOAD}
        yield {**message, "content": [_reference(block, calls, deferred) for block in blocks]}


def _reference(block: Block, calls: set[str], deferred: frozenset[str]) -> Block:
    if block["type"] != "tool_result" or block["tool_use_id"] not in calls or block.get("is_error"):
        return block
    try:
        added = json.loads(block["content"])["tools_added"]
    except (ValueError, TypeError, KeyError):
        return block
    found = [{"type": "tool_reference", "tool_name": name} for name in added if name in deferred]
    return {**block, "content": found} if found else block
