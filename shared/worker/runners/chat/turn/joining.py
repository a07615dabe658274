"""What comes for a conversation's turn while it runs: more words, answers that are late, outcomes, stops."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from shared import log
from shared.bus import messages
from shared.errors import BadMessage
from shared.turns.queue import QueueEntry
from shared.turns.records import NoteRecord
from shared.worker.runners import inheriting
from shared.worker.runners.chat import wording
from shared.worker.runners.chat.turn import outcomes
from shared.worker.runners.chat.turn.state import ChatTurn
from shared.worker.runners.inputs import pictures, said, sort
from shared.worker.runners.peers import Peers


class Joining:
    """Takes in what joined one turn, and hands its model the words."""

    def __init__(self, chat: ChatTurn, peers: Peers, human: str) -> None:
        self._chat, self._peers, self._human = chat, peers, human

    async def __call__(self) -> Sequence[str | NoteRecord]:
        """The words that came since the last call; CancelledError where the person ended the turn."""
        turn = self._chat.turn
        await turn.look()
        words: list[str | NoteRecord] = []
        for entry in turn.joined():
            if entry.channel != self._human and self._peers.take(entry):
                continue
            words += await self._read(entry)
        return words

    async def _read(self, entry: QueueEntry) -> list[str | NoteRecord]:
        try:
            more = sort([entry], self._human)
        except BadMessage as error:
            log.get().warning("What joined the turn cannot be read", why=str(error))
            return []
        words: list[str | NoteRecord] = []
        for answer in more.answers:
            words += await self._answered(answer)
        spoken: list[messages.Said | messages.Amend] = [*more.said, *more.amends]
        self._chat.people.join(spoken)
        words += map(_noted, spoken)
        for stop in more.stops:
            if stop.request_id:
                self._peers.give_up(stop.request_id, stop.reason or "")
                self._chat.turn.wake_up.set()
        if self._chat.is_ended_by(more.stops):
            raise asyncio.CancelledError("stopped by the person")
        return words

    async def _answered(self, answer: messages.AgentMessage) -> list[str]:
        """An outcome, or an answer that nobody awaits any more."""
        outcome, ours = outcomes.is_outcome(answer), answer.request_id in self._peers.asked
        if outcome or not ours:
            inheriting.answer(self._chat.turn, answer)
        if outcome:
            await outcomes.tell(self._chat, answer)
            return [wording.outcome(answer)]
        if ours:
            return []
        self._peers.late(answer)
        return [wording.late(answer)]


def _noted(message: messages.Said | messages.Amend) -> str | NoteRecord:
    images = pictures(message)
    return NoteRecord(text=said(message), images=images) if images else said(message)
