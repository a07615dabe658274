"""How a conversation's turn begins: its words, the model and the project that they name, and what holds then."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from shared.bus import messages
from shared.conversation import model_choice, prompt, sessions
from shared.conversation.past import History
from shared.errors import Missing
from shared.loop import final
from shared.models.base import ModelMessage
from shared.turns.records import NoteRecord
from shared.worker.runners import situation
from shared.worker.runners.chat import beside, memory, wording
from shared.worker.runners.chat.turn.state import ChatTurn, Opening
from shared.worker.runners.consult import asked_for
from shared.worker.runners.inputs import pictures, said, words


async def begin(
    chat: ChatTurn,
    past: History,
    late: Sequence[messages.AgentMessage],
    tasks: Sequence[messages.AgentMessage],
    note: str,
) -> tuple[list[ModelMessage], str] | None:
    """What the model is sent, and the project that the turn begins in; None where there is no such project: it is told
    so, and the turn is closed.
    """
    chat.opening = _opening(chat, late, tasks, note)
    named, project = await asyncio.gather(_model(chat), _project(chat), return_exceptions=True)
    if isinstance(named, BaseException):
        raise named
    chat.model = named
    _announce(chat)
    if isinstance(project, Missing):  # another try would not find it either
        await chat.output.close("error", project.told(), code=project.exit_code)
        return None
    if isinstance(project, BaseException):
        raise project
    connection = chat.resources.connection
    shown = past.messages(chat.output.now())
    nearby = beside.lines(connection, chat.turn, chat.people.person)
    around, others_active = await asyncio.gather(_around(chat, project), nearby)
    news = prompt.news(around, shown)
    remembered = await memory.lines(chat.resources.store, chat.turn, chat.input, project, past)
    lines = [*chat.remarks, *others_active, *remembered]
    chat.opening.texts.append(situation.of(chat.turn, project, lines, news))
    return [*shown, chat.opening.message()], project


def _opening(
    chat: ChatTurn, late: Sequence[messages.AgentMessage], tasks: Sequence[messages.AgentMessage], note: str
) -> Opening:
    texts = [*words(chat.input), *map(wording.late, late), *map(wording.outcome, tasks)]
    texts += [note] if note else []
    # What joined the turn before its worker died is in the journal already.
    noted = {record.text for record in chat.turn.records.of(NoteRecord)}
    texts = [*texts[:1], *(text for text in texts[1:] if text not in noted)]
    return Opening(texts, [one for m in chat.input.said if said(m) in texts for one in pictures(m)])


def _announce(chat: ChatTurn) -> None:
    """Say that it begins; one that goes on says from which answer of the model on it begins anew."""
    model = chat.model or chat.agent_runner.model
    model = "demo" if chat.resources.model.demo else chat.resources.outages.first(model)
    told = {"turn_id": chat.turn.id, "task_id": chat.turn.id, "model": model}
    spoken = final.spoken((answer.content, answer.cut) for answer in chat.turn.records.answers)
    again = {"again": True, "from": len(spoken) + 1, "said": spoken}
    chat.live("start", told | (again if spoken or chat.turn.tries > 1 else {}))


async def _model(chat: ChatTurn) -> str | None:
    """The model that the message names, or the request, or that was chosen for the conversation."""
    named = [message.model for message in chat.input.said[:1]]
    named += [asked_for(request)["model"] for request in chat.input.requests[:1]]
    first = next(filter(None, named), None)
    return first or await model_choice.chosen(chat.resources.store, chat.turn.session)


async def _project(chat: ChatTurn) -> str:
    """The project that this turn begins in: the one that its message or request names, else the active one."""
    if begun := situation.project(chat.turn):
        return begun
    store = chat.resources.store
    named: list[Any] = [message.project_id or chat.speaker.project for message in chat.input.said[:1]]
    named += [request.payload.get("project") for request in chat.input.requests[:1]]
    for one in filter(None, named):
        return await sessions.need_project(store, str(one))
    return await sessions.active_project(store, chat.turn.session)


async def _around(chat: ChatTurn, project: str) -> str:
    """Who and what is there."""
    repos = await chat.resources.repositories.rows(project)
    lines = "\n".join(f"- {repo.name} ({repo.kind}): {repo.url or repo.path}" for repo in repos)
    return prompt.around(await chat.resources.connection.presence.roster(), lines)
