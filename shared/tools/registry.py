"""The registry: a tool is a typed async function with a docstring, registered by a decorator.

    category = Category("files", "Read, write, edit, search, and browse files in project workspaces")

    @category.tool(effect="pure", touches=touching("files"))
    async def read_file(context: Context, path: str, max_lines: int = 2000) -> dict[str, Any]:
        '''Read a file's contents from a workspace.'''

Name, description and JSON Schema come from the function; pydantic validates the arguments. What a tool
returns is a JSON object; a failure is a ToolError, which the executor turns into `{"error": …}`. What it touches is
declared beside it, and from that the permissions follow (`shared/guard/permissions/touching.py`).
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from shared.errors import ToolError
from shared.guard.permissions.touching import UNKNOWN, Touches, TouchKind, declare, spelled

# pure: reads only; idempotent: run again; keyed: the other side refuses the second; once: probe, else ask.
Effect = Literal["pure", "idempotent", "keyed", "once"]
Result = dict[str, Any]
Function = Callable[..., Awaitable[Result]]
Detail = Callable[[dict[str, Any]], str]
Binds = Callable[..., Awaitable[dict[str, str]]]
Later = Callable[[dict[str, Any]], list[tuple[str, dict[str, Any]]]]  # calls: a tool's name and its arguments


_NULL = {"type": "null"}


def _changes(_arguments: dict[str, Any]) -> bool:
    return False


class Accepts(Protocol):
    """What a tool of elsewhere takes: a schema that follows from no signature of ours."""

    @property
    def schema(self) -> dict[str, Any]:
        """As the model is shown it."""

    def check(self, tool: str, arguments: Any) -> dict[str, Any]:
        """The arguments, as they are handed on; ToolError says what is wrong with them."""


@dataclass(frozen=True)
class Tool:
    """One tool: how the model is shown it, how its arguments are checked, and what runs."""

    name: str
    category: str
    description: str
    effect: Effect
    function: Function
    detail: Detail = field(default=lambda _arguments: "")
    touches: Touches | None = None  # None: nobody said, so that it may reach anything
    foreign: bool = True  # its result holds what others wrote
    older: bool = False  # a name of before: it runs and is listed, but no category shows it
    also: tuple[str, ...] = ()  # further names under which it can be called
    reads: Callable[[dict[str, Any]], bool] = (
        _changes  # whether it only reads when called with these arguments
    )
    probes: bool = False  # `once`, but it journals what it is about to do, and can tell whether that was done
    personal: bool = False  # for a person's own command alone: no model is shown it, and none may call it
    later: Later | None = (
        None  # the calls that what it makes will make: they need the permission of who makes it
    )
    # Raises ToolError for what cannot be done anyway, before a person is asked for permission.
    ready: Callable[..., Awaitable[None]] | None = None
    # What a call depends on beside its arguments, as facts by name: a yes is for these, and for no others.
    binds: Binds | None = None
    accepts: Accepts | None = None  # in place of the function's signature

    @cached_property
    def arguments(self) -> type[BaseModel]:
        """Their model; made on first use, as a hundred of them cost every start 0.2 s and megabytes."""
        return _arguments(self.function)

    @cached_property
    def schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments in as few words as say the same: a model reads it with every request."""
        if self.accepts is not None:
            return self.accepts.schema
        schema: dict[str, Any] = _plain(self.arguments.model_json_schema())
        return schema

    @property
    def reads_only(self) -> bool:
        return self.effect == "pure"

    @cached_property
    def _defaults(self) -> dict[str, Any]:
        parameters = inspect.signature(self.function).parameters.values()
        return {p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty}

    @property
    def _declared(self) -> Touches:
        return self.touches or UNKNOWN

    def kinds(self, arguments: dict[str, Any] | None = None) -> tuple[TouchKind, ...]:
        """What a call with these (checked) arguments touches; without any, what every call does."""
        return self._declared.kinds(arguments, self._defaults) if arguments else self._declared.always

    def touched(self, arguments: dict[str, Any] | None = None) -> tuple[str, ...]:
        """The same as the permissions spell it."""
        return spelled(self.kinds(arguments), self.reads_only)

    def check(self, arguments: Any) -> dict[str, Any]:
        """The arguments, validated; ToolError says which one is wrong and why."""
        if self.accepts is not None:
            return self.accepts.check(self.name, arguments)
        try:
            checked = self.arguments.model_validate(arguments)
        except ValidationError as error:
            text = "; ".join(
                f"{'.'.join(map(str, item['loc'])) or 'arguments'}: {item['msg']}"
                for item in error.errors()[:5]
            )
            raise ToolError(
                f"{self.name} cannot take these arguments", text, "correct them and call it again"
            ) from None
        return {name: getattr(checked, name) for name in type(checked).model_fields}


def _plain(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result = {k: _plain(v) for k, v in schema.items() if not (k == "title" and isinstance(v, str))}
    if result.get("additionalProperties") is True:  # so it is anyway
        del result["additionalProperties"]
    return _short(result) if "anyOf" in result else result


def _short(schema: dict[str, Any]) -> dict[str, Any]:
    """A choice in fewer words: "not given" is none of it, nor does it take two branches to name a type or a value.

    Not given is null where null is the default, and "" where null means something else.
    """
    rest = {name: value for name, value in schema.items() if name != "anyOf"}
    kinds: list[dict[str, Any]] = schema["anyOf"]
    if _NULL in kinds and rest.get("default", 0) in (None, ""):
        absent = _NULL if rest.pop("default") is None else {"const": "", "type": "string"}
        kinds = [kind for kind in kinds if kind != absent]
    if len(kinds) == 1:
        return rest | kinds[0]
    if all("enum" in kind or "const" in kind for kind in kinds):
        values = [value for kind in kinds for value in kind.get("enum", [kind.get("const")])]
        return rest | {"enum": values, "type": kinds[0]["type"]}
    first, *others = kinds
    if others == [_NULL] and isinstance(first.get("type"), str) and "enum" not in first:
        return rest | first | {"type": [first["type"], "null"]}
    return rest | {"anyOf": kinds}


def _arguments(function: Function) -> type[BaseModel]:
    hints = get_type_hints(function, include_extras=True)
    parameters = list(inspect.signature(function).parameters.values())[1:]  # the first is the context
    fields: dict[str, Any] = {
        p.name: (hints[p.name], ... if p.default is inspect.Parameter.empty else p.default)
        for p in parameters
    }
    return create_model(function.__name__, __config__=ConfigDict(extra="forbid"), **fields)


def _reads_others(touches: Touches, effect: Effect) -> bool:
    kinds = touches.possible
    return "command" in kinds or "address" in kinds or (effect == "pure" and "files" in kinds)


@dataclass(frozen=True)
class BoundCall:
    """A tool with arguments that it can take: what is judged is what runs."""

    name: str  # by which it was called
    tool: Tool
    arguments: dict[str, Any]

    @property
    def detail(self) -> str:
        """The last part of its action string."""
        return self.tool.detail(self.arguments)


@dataclass
class Category:
    """A named set of tools, in the order in which they were written."""

    name: str
    description: str
    tools: list[Tool] = field(default_factory=list)
    on_demand: bool = False  # of another source than the catalog: it can be loaded as ours can

    def tool(
        self,
        *,
        effect: Effect = "once",
        detail: Detail | None = None,
        touches: Touches | None = None,
        foreign: bool = False,
        older: bool = False,
        also: tuple[str, ...] = (),
        probes: bool = False,
        reads: Callable[[dict[str, Any]], bool] = _changes,
        ready: Callable[..., Awaitable[None]] | None = None,
        binds: Binds | None = None,
        personal: bool = False,
        later: Later | None = None,
    ) -> Callable[[Function], Function]:
        """Register the function below as a tool; `detail` makes the last part of its action string.

        `touches` says what its calls touch. `foreign`: its result holds what others wrote;
        of what reads files, runs commands or reaches addresses that is known.
        """

        def register(function: Function) -> Function:
            declare(function.__name__, touches or UNKNOWN, effect == "pure")
            self.tools.append(
                Tool(
                    name=function.__name__,
                    category=self.name,
                    description=inspect.cleandoc(function.__doc__ or ""),
                    effect=effect,
                    function=function,
                    detail=detail or (lambda _arguments: ""),
                    touches=touches,
                    foreign=foreign or _reads_others(touches or UNKNOWN, effect),
                    older=older,
                    also=also,
                    probes=probes,
                    reads=reads,
                    ready=ready,
                    binds=binds,
                    personal=personal,
                    later=later,
                )
            )
            return function

        return register


class ToolSource(Protocol):
    """Tools that are not in the catalog, such as those of MCP servers; asked when a turn begins."""

    async def categories(
        self, agent: str, wanted: Sequence[str] | None, own: Mapping[str, Any]
    ) -> Sequence[Category]:
        """Of the sources `wanted` by name (None: all) and the agent's `own`; one object while nothing changed."""


class Registry:
    """All tools of a process by name; names are globally unique. Several modules may add to one category."""

    def __init__(self, categories: Iterable[Category]) -> None:
        self.categories: dict[str, Category] = {}
        self._tools: dict[str, Tool] = {}
        self._names: dict[str, Tool] = {}
        for part in categories:
            first = Category(part.name, part.description, on_demand=part.on_demand)
            whole = self.categories.setdefault(part.name, first)
            whole.tools.extend(part.tools)
            for tool in part.tools:
                self._add(tool)

    def extended(self, more: Sequence[Category]) -> Registry:
        """These tools, and those of another source; this registry stays as it is."""
        return Registry([*self.categories.values(), *more])

    def _add(self, tool: Tool) -> None:
        for name in (tool.name, *tool.also):
            if name in self._names:
                raise ValueError(f"two tools are called {name}")
            self._names[name] = tool
        self._tools[tool.name] = tool

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def get(self, name: str) -> Tool:
        """The tool of that name; ToolError for an unknown one."""
        tool = self._names.get(name)
        if tool is None:
            raise ToolError(f"there is no tool called {name!r}", "", "use one of the tools that were listed")
        return tool

    def bind(self, name: str, arguments: Any) -> BoundCall | ToolError:
        """The call of a tool, or why there can be none: an unknown name, arguments that it cannot take."""
        try:
            tool = self.get(name)
            return BoundCall(name, tool, tool.check(arguments))
        except ToolError as error:
            return error

    def pick(self, names: Iterable[str]) -> list[Tool]:
        """The tools of these names, in this order."""
        return [self.get(name) for name in names]

    def category(self, name: str) -> list[Tool]:
        """The tools that a category shows, in the order in which they were written; [] for an unknown one."""
        found = self.categories.get(name)
        return [tool for tool in found.tools if not tool.older] if found else []


class BoundCalls:
    """The calls of a turn by their keys, each bound once: between its permission and its run nothing is read anew."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._calls: dict[str, BoundCall | ToolError] = {}

    def of(self, key: str, name: str, arguments: Any) -> BoundCall | ToolError:
        """Bound now, if it was not yet."""
        if key not in self._calls:
            self._calls[key] = self._registry.bind(name, arguments)
        return self._calls[key]

    def pop(self, key: str, name: str, arguments: Any) -> BoundCall | ToolError:
        """The same, for its run, after which nobody needs it."""
        bound = self.of(key, name, arguments)
        del self._calls[key]
        return bound
