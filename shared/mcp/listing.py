"""What a server says that it has, read into types of ours, bounded; what cannot be used is named with the reason."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from shared.mcp.bounds import DESCRIPTION, PAGES, SCHEMAS, TOOLS
from shared.mcp.schema import Takes, Unusable

if TYPE_CHECKING:
    from mcp import types
    from mcp.client.session import ClientSession

Repeat = Literal["pure", "idempotent", "once"]
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
_LONGEST = 64  # letters of `mcp__server__tool` that every provider takes


@dataclass(frozen=True)
class ListedTool:
    """One tool of a server, as it is called here and there."""

    name: str  # letters that providers take; unique among the server's
    theirs: str  # as the server calls it
    description: str
    arguments: Takes
    effect: Repeat
    output: dict[str, Any] | None = None  # the schema of its structured answers
    definition: str = ""  # a digest of all that the server says of it


@dataclass(frozen=True)
class Listing:
    """The tools of a server, and those that cannot be used, each with the reason."""

    tools: tuple[ListedTool, ...] = ()
    left_out: tuple[str, ...] = ()


async def pages(ask: Callable[[str | None], Awaitable[Any]], part: str, most: int) -> list[Any]:
    """All items of a list that is told in pages, as far as there is a bound on them."""
    found: list[Any] = []
    cursor: str | None = None
    for _ in range(PAGES):
        page = await ask(cursor)
        found += getattr(page, part)
        cursor = page.next_cursor
        if not cursor or len(found) > most:
            break
    return found


async def tools(session: ClientSession, server: str) -> Listing:
    """What it lists now."""
    from mcp import types

    async def ask(cursor: str | None) -> types.ListToolsResult:
        return await session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))

    return listing(await pages(ask, "tools", TOOLS), server)


def listing(given: Iterable[types.Tool], server: str) -> Listing:
    """These, checked one by one."""
    found: dict[str, ListedTool] = {}
    left: list[str] = []
    size = 0
    for number, tool in enumerate(given):
        try:
            if number >= TOOLS:
                raise Unusable(f"more than {TOOLS} tools")
            one = _tool(tool, server)
            size += len(json.dumps(one.arguments.schema)) + len(one.description)
            if size > SCHEMAS:
                raise Unusable(f"all schemas together have more than {SCHEMAS // 1024} KiB")
        except Unusable as error:
            if len(left) < TOOLS:
                left.append(f"{_short(tool.name)}: {error}")
            continue
        if one.name in found:
            left.append(f"{_short(tool.name)}: another tool has that name")
            continue
        found[one.name] = one
    return Listing(tuple(found.values()), tuple(left))


def _tool(tool: types.Tool, server: str) -> ListedTool:
    told = tool.model_dump(mode="json", exclude_none=True, include=_TELLING)
    if len(text := json.dumps(told, sort_keys=True)) > SCHEMAS:
        raise Unusable(f"it is described by more than {SCHEMAS // 1024} KiB")
    return ListedTool(
        _name(tool.name, server),
        tool.name,
        (tool.description or tool.title or "").strip()[:DESCRIPTION],
        Takes.of(tool.input_schema),
        _effect(tool.annotations),
        tool.output_schema,
        hashlib.sha256(text.encode()).hexdigest()[:16],
    )


_TELLING = {"name", "title", "description", "input_schema", "output_schema", "annotations"}


def _name(theirs: str, server: str) -> str:
    """The tool's name in letters that providers take; where letters are lost, a digest tells it from others."""
    room = _LONGEST - len(f"mcp__{server}__")
    if _PLAIN.fullmatch(theirs) and len(theirs) <= room:
        return theirs
    plain = re.sub(r"[^A-Za-z0-9_-]+", "_", theirs)[: room - 7].strip("_") or "tool"
    return f"{plain}_{hashlib.sha256(theirs.encode()).hexdigest()[:6]}"


def _effect(annotations: types.ToolAnnotations | None) -> Repeat:
    """What becomes of a call that was cut off: it is `once` unless the server says that another does no harm."""
    if annotations is None:
        return "once"
    if annotations.read_only_hint:
        return "pure"
    return "idempotent" if annotations.idempotent_hint else "once"


def _short(name: str) -> str:
    return re.sub(r"[^\x21-\x7e]+", "_", name)[:60] or "a tool without a name"
