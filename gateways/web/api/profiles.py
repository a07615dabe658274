"""Profiles that are rows: how an agent works, its prompt as it is sent, and the channels that agents answer."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import Field

from gateways.web.access import Line, Visitor
from gateways.web.api.fields import Body, Long, Name, NamePart
from gateways.web.api.tools import check
from gateways.web.calls import call

router = APIRouter(prefix="/api/profiles", tags=["agents"])
Names = Annotated[list[NamePart], Field(max_length=300)]


class ProfileFields(Body):
    """Fields of a profile; docs/agents.md says what each means. Those that are given count."""

    name: NamePart | None = None
    description: str | None = None
    model: NamePart | None = None
    permission_mode: NamePart | None = None
    allowed_tools: Names | None = None
    categories: Names | None = None
    sections: list[dict[str, Any]] | None = Field(None, description="Each `{name, text, title?, enabled?}`.")
    system_prompt_suffix: Long | None = None
    permissions: dict[str, Any] | None = None
    mcp_servers: dict[str, Any] | None = None
    limits: dict[str, Any] | None = None
    budget: float | None = None
    temperature: float | None = None
    max_tokens: int | None = None


class NewProfileFields(ProfileFields):
    """The same, and by which id it goes."""

    id: NamePart
    name: NamePart


@router.get("")
async def listing(client: Line, visitor: Visitor) -> dict[str, Any]:
    """All of them, by name."""
    check(visitor, "list_profiles")
    return {"profiles": (await call(client, visitor, "list_profiles", {}))["profiles"]}


@router.post("", status_code=201)
async def create(asked: NewProfileFields, client: Line, visitor: Visitor) -> dict[str, Any]:
    """Make one."""
    check(visitor, "create_profile")
    return await call(client, visitor, "create_profile", asked.model_dump(exclude_none=True))


@router.get("/{profile}")
async def one(profile: Name, client: Line, visitor: Visitor) -> dict[str, Any]:
    """One of them, who works by it, and in `prompt` what an agent of it is sent, part by part."""
    check(visitor, "get_profile")
    found = await call(client, visitor, "get_profile", {"profile_id": profile})
    sent = await call(client, visitor, "show_prompt", {"agent_id": profile})
    shown = ("parts", "sent", "characters", "tools", "model", "permissions", "beside")
    return found | {"prompt": {name: sent[name] for name in shown}}


@router.patch("/{profile}")
async def edit(profile: Name, asked: ProfileFields, client: Line, visitor: Visitor) -> dict[str, Any]:
    """Change what is given, from the next turn on."""
    check(visitor, "edit_profile")
    words = {"profile_id": profile, **asked.model_dump(exclude_none=True)}
    return await call(client, visitor, "edit_profile", words)


@router.delete("/{profile}")
async def delete(profile: Name, client: Line, visitor: Visitor) -> dict[str, Any]:
    """Away with one that nobody uses."""
    check(visitor, "delete_profile")
    return await call(client, visitor, "delete_profile", {"profile_id": profile})
