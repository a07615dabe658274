"""A person's words that answer a question which is open: that of a task, or whether more may be spent."""

from __future__ import annotations

from shared.bus import messages
from shared.conversation.past import History
from shared.errors import PromptDockError, ToolError
from shared.turns.records import SettlesRecord
from shared.worker.budgets import prompt as allowance
from shared.worker.runners import question
from shared.worker.runners.chat import wording
from shared.worker.runners.chat.turn.state import ChatTurn
from shared.worker.runners.inputs import words


async def settle(chat: ChatTurn, past: History) -> str | None:
    """A note for the model where they decide about money, "" where they answer nothing; None where that was all."""
    if await _answers_task(chat, past):
        return None
    try:
        decided = await allowance.answered(
            *(chat.resources.store, chat.agent_runner.ledger, chat.resources.settings.approver_roles),
            *(chat.turn.session, chat.input.said[0]),
        )
    except PromptDockError as error:
        await chat.output.close("error", error.told(), code=error.exit_code)
        return None
    note, closing = decided or ("", "")
    if closing:
        await chat.output.close("complete", closing)
        return None
    return note


async def _answers_task(chat: ChatTurn, past: History) -> bool:
    """Hand the words on where they answer the question of a task, and close; else note what is open here."""
    said, session, connection = chat.input.said[0], chat.turn.session, chat.resources.connection
    kept = chat.turn.records.first(SettlesRecord)
    if kept is None:
        open_ = await question.waiting(connection, chat.resources.store, said)
        if (one := question.meant(open_, session, said)) is None:
            chat.remarks += question.note(open_, session)
            return False
        kept = SettlesRecord(task=one.task)
        await chat.turn.step(kept)  # a successor would not find it open
    status: messages.Status = "complete"
    told = f"Your answer is with task {kept.task}."
    told += f" {wording.UNSENT_PICTURES}" if said.images else ""
    try:
        content, id = said.content, said.id or ""
        await question.answer(connection.bus, connection.names, kept.task, said.user_id, content, id)
    except ToolError as error:
        status, told = "error", error.told()
    exchange = (("user", words(chat.input)[0]), ("assistant", told))
    messages_ = [{"role": role, "content": [{"type": "text", "text": text}]} for role, text in exchange]
    await chat.output.close(status, told, added=chat.added(past, messages_), past=past)
    return True
