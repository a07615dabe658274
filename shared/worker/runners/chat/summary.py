"""Buying the summary of a long conversation: a turn of its own, off the path of any answer.

It is asked for when the conversation has rested until the provider's cache of it is cold, or at once where that would
be too late. Its journal holds what was bought, so that a successor pays for nothing twice; its window holds the newest
summary, put there with the end of the turn, under its lease.
"""

from __future__ import annotations

import time
from typing import Any

from shared import log
from shared.conversation import past as pasts
from shared.conversation import summary as summaries
from shared.conversation import window as windows
from shared.errors import PromptDockError
from shared.store.records import SnapshotRow
from shared.store.row import derived
from shared.turns import outbox, requests
from shared.turns.queue import Completion, Queue
from shared.turns.records import ModelRecord, Record, pack, unpack
from shared.turns.turn import Turn
from shared.worker.connection import Connection
from shared.worker.runners.agent import AgentRunner, model_name
from shared.worker.runners.chat import buying
from shared.worker.runners.chat.warm import WARM
from shared.worker.runners.history import turn_rows


def condenses(turn: Turn, human: str) -> bool:
    """Whether the turn was opened by `ask`; what people say in a session of such a name is theirs."""
    return turn.session.startswith(pasts.PREFIX) and bool(turn.given) and turn.given[0].channel != human


async def plan(connection: Connection, agent: str, session: str, rest_ms: int = WARM) -> None:
    """Have a conversation summarised when it has rested for so long; each answer begins the time anew."""
    due = int(time.time() * 1000) + rest_ms
    try:
        await connection.bus.command("ZADD", connection.names.unsummarised(), due, f"{agent} {session}")
    except PromptDockError as error:
        log.get().warning("A conversation will not be summarised when it rests", why=str(error))


async def begin(connection: Connection) -> int:
    """Ask for what is due; asked for by several workers at once, it is done once. How many it were."""
    key, now = connection.names.unsummarised(), int(time.time() * 1000)
    due = await connection.bus.command("ZRANGE", key, "-inf", now, "BYSCORE", "LIMIT", 0, 100, "WITHSCORES")
    for member, at in zip(due[::2], due[1::2], strict=True):
        agent, _, session = member.decode("utf-8", "replace").partition(" ")
        await ask(connection.queue(agent), session, int(float(at)))
        await connection.bus.command("ZREM", key, member)
    return len(due) // 2


async def ask(queue: Queue, session: str, at: int) -> None:
    """Have the conversation summarised; asked again with the same number of a message, or moment, it is done once."""
    id = f"{pasts.PREFIX}{derived('summary', session, at)}"
    payload = {"command": "summarise", "session_id": session}
    try:
        await requests.to_itself(queue, id, f"{pasts.PREFIX}{session}", payload)
    except PromptDockError as error:
        log.get().warning("No summary was asked for", why=str(error))


class SummaryRunner:
    """Makes one summary. Made anew for each turn."""

    def __init__(self, engine: AgentRunner, turn: Turn) -> None:
        self._engine, self._turn, self._resources = engine, turn, engine.resources
        self._session = turn.session.removeprefix(pasts.PREFIX)
        self._before = next((item for item in reversed(turn.window) if pasts.marked(item)), None)

    @property
    def deadline(self) -> int:
        """It never is too late: what is covered is looked up when it begins."""
        return 0

    async def run(self) -> None:
        """Buy what is due, unless a worker before us did, and leave it for the next turn of the conversation."""
        bought = self._turn.records.first(ModelRecord)
        if bought is None:
            bought = await self._buy()
        if bought and (text := buying.text(bought)):
            log.get().info("A conversation was summarised", of=self._session, until=bought.last)
            await self._close("complete", made=summaries.record(text, bought.first, bought.last))
        else:
            await self._close("complete")

    async def stopped(self) -> None:
        """The conversation goes on without."""
        await self._close("stopped")

    async def failed(self, error: PromptDockError, dead: str = "") -> None:
        """The conversation goes on without; its next turn asks again."""
        log.get().warning("A conversation was not summarised", of=self._session, why=str(error))
        await self._close("error", why=str(error), dead=dead)

    async def _buy(self) -> ModelRecord | None:
        """One call of the model; None where nothing is due, or no money is left."""
        resources, profile = self._resources, self._engine.profile
        window = [unpack(data) for data in await self._turn.queue.window(self._session)]
        if self._before and self._before["last"] <= windows.floor(window):
            self._before = None  # it tells what was before the conversation was cleared
        last = self._before["last"] if self._before else 0
        if not (due := summaries.covered(window, last)):
            return None
        before = self._before["text"] if self._before else ""
        request = summaries.request(
            model_name(resources.settings, profile, resources.model), profile.name, before, due
        )
        first = self._before["first"] if self._before else due[0]["seq"]
        span = {"first": first, "last": due[-1]["seq"]}
        return await buying.buy(
            *(self._engine, self._turn, self._session, request), lambda answer: answer.model_copy(update=span)
        )

    async def _close(self, state: str, made: Record | None = None, why: str = "", dead: str = "") -> None:
        turn = self._turn
        rows: list[Any] = turn_rows(
            self._engine.profile.name,
            turn.id,
            self._session,
            turn.records,
            state=state,
            epoch=turn.epoch,
            tries=turn.tries,
            started_ms=turn.claimed_at,
            ended_ms=turn.claimed_at + turn.elapsed_ms(),
            error=why or None,
            provider=self._resources.model.name,
            project_id=turn.project_id,
        )
        if made:
            rows.append(self._row(made))
        await turn.finish(
            Completion(
                rows=outbox.pack(rows),
                dead=dead,
                drop=len(turn.window) if made else 0,
                window=[pack(made)] if made else [],
            )
        )

    def _row(self, made: Record) -> SnapshotRow:
        return SnapshotRow(
            id=derived("summary", self._session, made["last"]),
            session_id=self._session,
            agent=self._engine.profile.name,
            kind="summary",
            summary=made["text"],
            message_count=made["last"] - made["first"] + 1,
            first_seq=made["first"],
            last_seq=made["last"],
        )
