"""Threads of channels: which there are, what they do, and ending one."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query

from gateways.web.access import Line, Visitor
from gateways.web.api.fields import Body
from gateways.web.calls import call
from shared.bus.messages import ChannelPlace
from shared.client.views.conversation import threads

router = APIRouter(prefix="/api/threads", tags=["threads"])


class KillRequest(Body):
    """In which channel; it may be left out where one thread alone has that number."""

    channel: ChannelPlace | None = None


@router.get("")
async def listing(
    client: Line, visitor: Visitor, channel: Annotated[str, Query(max_length=190)] = ""
) -> dict[str, Any]:
    """The threads that have a number now: this person's, and those that are shared; of a channel, or of all."""
    return {"threads": await threads.listed(client, visitor.user_id, channel)}


@router.post("/{number}/kill")
async def kill(
    number: Annotated[int, Path(ge=1)], asked: KillRequest, client: Line, visitor: Visitor
) -> dict[str, Any]:
    """End what runs in a thread, and take back what waits there."""
    return await call(client, visitor, "kill_thread", {"number": number, "channel": asked.channel or ""})
