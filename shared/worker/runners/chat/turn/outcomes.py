"""Outcomes of tasks in a conversation's turn: told on its way, or as its only output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shared.bus import messages
from shared.conversation.past import History
from shared.guard.permissions import marks
from shared.worker.budgets import prompt as allowance
from shared.worker.runners import inheriting
from shared.worker.runners.chat import wording
from shared.worker.runners.chat.turn.state import ChatTurn

_SHOWN = ("task_id", "status", "branch", "commits", "receipt", "error")


def is_outcome(answer: messages.AgentMessage) -> bool:
    """Whether an answer says how a task came out."""
    return bool(answer.payload.get("task_id"))


def _card(answer: messages.AgentMessage) -> dict[str, Any]:
    return {key: answer.payload.get(key) for key in _SHOWN}


async def tell(chat: ChatTurn, answer: messages.AgentMessage) -> None:
    """Tell one beside what else the turn answers; one that came alone is its output."""
    given = chat.input
    if given.said or given.requests or given.commands or len(given.answers) > 1:
        text = wording.outcome_text(answer)
        await chat.output.tell("task_update", text, f"t.{answer.request_id}", task=_card(answer))


async def close(chat: ChatTurn, tasks: Sequence[messages.AgentMessage], past: History) -> None:
    """Nothing but outcomes needs no model: the last one is the output; the window notes them all."""
    note = "\n".join(wording.outcome(answer) for answer in tasks)
    read, at = marks.mark(chat.turn.records), chat.output.now()
    added = inheriting.noted(note, "Noted, and told to the person.", chat.turn, past, at, read)
    last = tasks[-1]
    card = _card(last)
    status: messages.Status = "task_update"
    asked: dict[str, Any] = {}
    if isinstance(budget := last.payload.get("budget"), dict):
        status, asked = "awaiting_input", await out_of_money(chat, budget | {"task": card["task_id"]})
    text = "\n".join([wording.outcome_text(last), *([asked["question"]] if asked else [])])
    demo = True if last.payload.get("demo") else None
    await chat.output.close(status, text, **asked, added=added, past=past, task=card, demo=demo)


async def out_of_money(chat: ChatTurn, budget: dict[str, Any]) -> dict[str, Any]:
    """The question whether more may be spent, as fields of an output."""
    return await allowance.ask(chat.resources.store, chat.turn.session, chat.people.person, budget)
