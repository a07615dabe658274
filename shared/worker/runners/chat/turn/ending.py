"""How a conversation's turn ends that a model answered: its output, what stays of it, and what is to be done later."""

from __future__ import annotations

from typing import Any

from shared import failpoints, log
from shared.bus import messages
from shared.conversation import context
from shared.conversation.past import History
from shared.loop import Done
from shared.turns.records import Record
from shared.worker import incidents
from shared.worker.runners.chat import drawing, memory, summary, titling, warm
from shared.worker.runners.chat.turn import outcomes
from shared.worker.runners.chat.turn.state import ChatTurn


async def finish(chat: ChatTurn, done: Done, past: History) -> None:
    """Close the turn with what the model said."""
    log.get().info("Publishing response..." if not done.tools else "Publishing final response")
    added = chat.added(past, [chat.opening.message(), *done.messages])
    added[-1][warm.FIELD] = warm.after(chat.turn, past)
    parting = await chat.part(context.changes(chat.turn.records), past, added)
    status, content, extra = await _closing(chat, done)
    if len(content) > len(done.text):  # the question, which is no part of what the model said
        part = max(1, len(chat.turn.records.answers))
        chat.live("chunk", {"content": content[len(done.text) :], "part": part})
    live = {"thinking": done.thinking, "has_thinking": bool(done.thinking)}
    live |= {"usage": extra["usage"], "cost": done.usage.cost}
    live |= {"footer": list(done.told)} if done.told else {}
    failpoints.point("final bought", chat.turn.id)
    await chat.output.close(status, content, added=added, past=past, live=live, parting=parting, **extra)
    await _follow_up(chat, past, added, parted=parting is not None)


async def _closing(chat: ChatTurn, done: Done) -> tuple[messages.Status, str, dict[str, Any]]:
    """The output's status, its words, and its other fields."""
    usage = done.usage
    extra: dict[str, Any] = {
        "demo": done.demo or None,
        "model": done.model,
        "footer": list(done.told) or None,
        "usage": {
            "input": usage.input,
            "output": usage.output,
            "cache_read": usage.cache_read,
            "cache_write": usage.cache_write,
            "cost": usage.cost,
        },
    }
    if done.kind == "question" and done.question is not None:
        asked = done.question
        # Each a paragraph of its own: in Markdown a single line break is none.
        content = "\n\n".join(part for part in (done.text, asked["asked"], asked["context"]) if part)
        return "awaiting_input", content, extra | {"question": asked["asked"], "options": asked["options"]}
    if done.kind == "refusal":
        incidents.declined(chat.agent_runner.profile.name, done.model)
        return "error", done.text, extra
    if done.spent and not chat.input.requests:
        extra |= await outcomes.out_of_money(chat, chat.turn.spent or {"scope": "turn", "dollars": 0})
        return "awaiting_input", f"{done.text}\n{extra['question']}", extra
    return "complete", done.text, extra


async def _follow_up(chat: ChatTurn, past: History, added: list[Record], parted: bool) -> None:
    """Ask for what a conversation is given beside its turns: its summary, its title, what is drawn from it."""
    turn, settings, connection = chat.turn, chat.resources.settings, chat.resources.connection
    if not parted and past.pressing(added):
        await summary.ask(turn.queue, turn.session, added[-1]["seq"])
    elif not parted and past.unsummarised(added):
        await summary.plan(connection, chat.agent_runner.profile.name, turn.session)
    if chat.input.said and settings.budget_titles and titling.second(past.window):
        await titling.ask(turn.queue, turn.session)
    if memory.wanted(chat.input) and settings.budget_memory:
        await drawing.plan(connection, turn.session, settings.memory_rest_ms)
