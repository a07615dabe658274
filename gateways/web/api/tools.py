"""The tools of this release, and calling one through the door."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from gateways.web.access import Line, Person, Visitor
from gateways.web.api.fields import Body, Name
from gateways.web.calls import call
from shared.bus.messages import SessionId
from shared.client.types import Card
from shared.client.views import tools as views
from shared.client.views import visible
from shared.errors import Denied

router = APIRouter(prefix="/api/tools", tags=["tools"])
ALL = "tools"  # the role that may call every tool; `tools.NAME` is for one


class ToolCall(Body):
    """The arguments, as the tool's schema has them."""

    arguments: dict[str, Any] = Field({}, description="As `input_schema` says.")
    session_id: SessionId | None = None


@router.get("")
async def listing(
    _visitor: Visitor, category: Annotated[str | None, Query(max_length=100)] = None
) -> dict[str, list[Card]]:
    """All of them, with their schemas."""
    return {"tools": views.catalogue(category)}


@router.get("/{tool}")
async def one(tool: Name, _visitor: Visitor) -> Card:
    """One of them."""
    return views.tool(tool, exact=True)


@router.post("/{tool}/call")
async def run(tool: Name, client: Line, visitor: Visitor, asked: ToolCall | None = None) -> dict[str, Any]:
    """Run it with this person's roles; what needs a permission is asked as ever."""
    known, asked = views.tool(tool, exact=True), asked or ToolCall()
    check(visitor, known["name"])
    if asked.session_id:
        await visible.session(client, visitor.sight, asked.session_id)
    return await call(client, visitor, known["name"], asked.arguments, asked.session_id or "")


def check(person: Person, tool: str) -> None:
    """Denied where none of their roles is for this tool."""
    if not (person.owner or {ALL, f"{ALL}.{tool}"} & set(person.roles)):
        raise Denied(
            f"{tool} is not for you to call", f"that takes the role {ALL} or {ALL}.{tool}", "ask the owner"
        )
