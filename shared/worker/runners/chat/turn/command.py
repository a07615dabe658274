"""A person's own command in their conversation: one tool, called by them instead of the model."""

from __future__ import annotations

from typing import Any

from shared.bus import messages
from shared.conversation import context, sessions
from shared.conversation.context import Parting
from shared.conversation.past import History, look_back
from shared.errors import ToolError, sentences
from shared.loop import Call
from shared.tools.approvals.trust import CONVERSATION
from shared.tools.context import Context
from shared.turns import outbox
from shared.turns.records import IntentRecord
from shared.worker.runners import inheriting
from shared.worker.runners.chat.turn import outcomes
from shared.worker.runners.chat.turn.state import ChatTurn


async def run(chat: ChatTurn, command: messages.CommandMessage) -> None:
    """Call the tool, and close the turn with what came of it."""
    past = await chat.look_back() if command.tool in context.TOOLS else None
    here = await _context(chat, command, past)
    key = f"{chat.turn.id}.1.1"
    again = chat.turn.records.first(IntentRecord) is not None
    call = Call(key, key, command.tool, command.arguments, again)
    approver = chat.people.approver()
    result = await chat.agent_runner.command(
        chat.turn, call, here, approver, chat.live, profile=command.profile
    )
    result, parting = await _parted(chat, result, past)
    for answer in filter(
        outcomes.is_outcome, chat.input.answers
    ):  # came beside it, and opens no turn of its own
        await outcomes.tell(chat, answer)
    text = _text(command, result)
    more: dict[str, Any] = {}
    if parting:
        more = {"past": past, "parting": parting}
    elif result.get("trusted") == CONVERSATION:
        more = await _trusted(chat, command)
    status: messages.Status = "error" if "error" in result else "complete"
    await chat.output.close(status, text, result=result, **more)


async def _context(chat: ChatTurn, command: messages.CommandMessage, past: History | None) -> Context:
    resources, turn = chat.resources, chat.turn
    conversation = turn.session
    if conversation.startswith(messages.COMMANDS):  # it is given beside the conversation that it is about
        conversation = messages.default_session(command.user_id)
    if command.tool in context.READS:  # what a person did a moment ago is there for them
        await outbox.settled(resources.connection.bus, resources.connection.names, turn.queue.agent)
    project = await sessions.active_project(resources.store, conversation)
    return Context(
        agent="person",
        session_id=turn.session,
        turn_id=turn.id,
        store=resources.store,
        user_id=command.user_id,
        on_behalf=(command.user_id, conversation),
        roles=chat.people.roles,
        project_id=str(command.arguments.pop("project", None) or project),
        cluster=chat.peers(),
        repos=resources.repos,
        sandbox=chat.agent_runner.sandbox,
        services=chat.agent_runner.services,
        past=past,
    )


async def _parted(
    chat: ChatTurn, result: dict[str, Any], past: History | None
) -> tuple[dict[str, Any], Parting | None]:
    """The result, with what the tool asked to be done with the window."""
    change = context.asked(result) if past else None
    if past is None or not change:
        return result, None
    chat.turn.alone = True  # an outcome that comes from now on opens the next turn
    try:
        parting = await chat.part([change], past, [])
    except ToolError as error:
        return error.as_dict(), None
    if parting is None:
        return result, None
    return {**parting.result, "told": " ".join(parting.told)}, parting


def _text(command: messages.CommandMessage, result: dict[str, Any]) -> str:
    if "error" in result:
        return sentences(*(str(result.get(key) or "") for key in ("error", "why", "fix")))
    return str(result.get("told") or f"{command.tool}: done")


async def _trusted(chat: ChatTurn, command: messages.CommandMessage) -> dict[str, Any]:
    """The person takes the mark off this conversation: what is added to it bears none, and hands on none."""
    resources = chat.resources
    past = await look_back(resources.store, chat.turn, resources.settings.conversation_timeout_ms)
    said = f"[{command.user_id} trusts what was read in this conversation until now]"
    added = inheriting.noted(said, "Noted.", chat.turn, past, chat.output.now(), "")
    return {"added": added, "past": past}
