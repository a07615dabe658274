"""Category sessions: the threads of the channels in which a person speaks, and ending one."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from shared.conversation import threads as known
from shared.errors import ToolError
from shared.guard.permissions.touching import touching
from shared.store.query import IN_LIMIT
from shared.store.records import Session
from shared.tools.context import ClusterCalls, Context
from shared.tools.registry import Result
from shared.tools.sessions import category as family
from shared.turns import threads
from shared.turns.threads import Thread

category = family.sessions()
_RECORDS = touching("records")
ThreadChannel = Annotated[
    str, Field(max_length=190, description="SURFACE:ID, as `discord:7`; all channels without it.")
]


@category.tool(effect="pure", touches=_RECORDS, detail=lambda arguments: str(arguments.get("channel") or ""))
async def list_threads(here: Context, channel: ThreadChannel = "") -> Result:
    """The threads of the person's channels that have a number now, with their states."""
    family.person(here)
    found = await _cluster(here).threads(channel)
    keys = [thread.session for thread in found][:IN_LIMIT]
    rows = await here.store.select(Session, {"key": ("in", keys)}) if keys else []
    return {"threads": await known.called(here.store, found), **family.marks(here, rows)}


@category.tool(effect="idempotent", touches=_RECORDS, detail=lambda arguments: f"#{arguments.get('number')}")
async def kill_thread(
    here: Context, number: Annotated[int, Field(ge=1)], channel: ThreadChannel = ""
) -> Result:
    """End what runs in a thread, and take back what waits there; it goes on with the next reply."""
    family.person(here)
    cluster = _cluster(here)
    thread: Thread = threads.numbered(await cluster.threads(channel), number, channel or cluster.channel)
    if thread.session == here.session_id:
        raise ToolError("this is that thread", "it would end this very turn", "end the turn with your answer")
    if thread.state == "completed":  # a stop would count as said there, and hold its number for longer
        raise ToolError(f"thread #{number} is finished", "nothing runs in it", "it goes on with a reply")
    if thread.active:  # one that was killed is, also where this call did it and is made again
        await cluster.kill(thread, here.step_id or here.turn_id)
    return {"killed": number, "channel": thread.channel, "was": thread.state, "session_id": thread.session}


def _cluster(here: Context) -> ClusterCalls:
    if here.cluster is None:
        raise ToolError("threads cannot be seen from here", "this turn is not part of the cluster", "")
    return here.cluster
