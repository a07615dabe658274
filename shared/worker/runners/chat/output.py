"""What a turn of a conversation says: progress on its way, and its one closing output."""

from __future__ import annotations

from typing import Any, Literal

from shared import log
from shared.bus import messages
from shared.bus.event_stream import EventStream
from shared.bus.keys import CHATTER, CHATTER_OUTPUT, HUMAN_INPUT
from shared.conversation import sessions
from shared.conversation.context import Parting
from shared.conversation.past import History
from shared.conversation.window import FOREIGN
from shared.errors import Fenced, PromptDockError
from shared.guard.permissions.display import tagless
from shared.models.base import Model
from shared.redaction import conceal
from shared.store.records import Row
from shared.turns import outbox
from shared.turns.queue import Completion, Keep
from shared.turns.records import Record, pack
from shared.turns.turn import Turn
from shared.worker.permissions.service import ApprovalService, answered_by
from shared.worker.runners import question, situation
from shared.worker.runners.chat import memory, wording
from shared.worker.runners.closing import Replies
from shared.worker.runners.history import conversation_rows, ended_in, turn_rows
from shared.worker.runners.inputs import TurnInput
from shared.worker.runners.missed import missed, news


class TurnOutput:
    """Speaks for one turn, to the person or to the agent that asked."""

    def __init__(
        self,
        replies: Replies,
        approvals: ApprovalService,
        model: Model,
        turn: Turn,
        given: TurnInput,
        live: EventStream,
    ) -> None:
        self._replies, self._approvals, self._model = replies, approvals, model
        self.turn, self._input, self._live = turn, given, live
        self._connection = replies.connection
        self.agent = ""  # who speaks, where that is another one
        self.who: dict[str, Any] = {}  # the person: user_id, user_name, roles
        self._human = self._connection.names.channel(HUMAN_INPUT)
        self._channel = self._connection.names.channel(CHATTER_OUTPUT)
        self._told = 0

    async def tell(self, status: messages.Status, text: str, suffix: str, **extra: Any) -> None:
        """Say something that does not close the turn."""
        text = self._output(status, text, suffix, **extra)
        await self.turn.send(self._channel, text, await self._keep(status))

    async def tell_missed(self) -> None:
        """Say again what this person was not shown: answers, outcomes, news of their tasks."""
        bus, names = self._connection.bus, self._connection.names
        for id, output in missed(self.turn.untold, str(self.who.get("user_id", ""))):
            asks = output.status == "task_update" and output.question
            if asks and not await question.still_open(bus, names, output):
                await self._connection.queue(CHATTER).acknowledge(self.turn.session, id)
                continue
            more = {"task": output.task, "demo": output.demo, "question": output.question if asks else None}
            text = self._output("task_update", wording.away(output), f"away.{id}", **more)
            await self.turn.send(self._channel, text, await self._keep("task_update"), id)

    async def _keep(self, status: messages.Status) -> Keep:
        """Whether this is told again where the person is not shown it now."""
        given = self._input
        if not (status == "task_update" or status in messages.CLOSING) or given.stops or given.commands:
            return ""
        if given.rests:
            return await news(self._connection)
        if given.said:
            return "shown" if given.said[0].source in messages.ACKNOWLEDGING else ""
        return await news(self._connection) if given.answers and not given.requests else ""

    async def say(self, text: str) -> None:
        """Progress, as the person reads it."""
        self._told += 1
        try:
            for request in self._input.requests:
                await self._replies.progress(request, text)
            if self._input.requests:
                return
            await self.tell("progress", text, f"p{self._told}")
        except Fenced:
            raise
        except PromptDockError as error:
            log.get().warning("Progress was not sent", why=str(error))

    async def close(
        self,
        status: messages.Status,
        text: str,
        *,
        added: list[Record] | None = None,
        past: History | None = None,
        state: str = "",
        error: str | None = None,
        dead: str = "",
        live: dict[str, Any] | None = None,
        parting: Parting | None = None,
        talked: bool = True,
        **extra: Any,
    ) -> None:
        """The one closing output, the one event that says so, and everything that this turn leaves.

        Not `talked`: nobody answered, so that no conversation begins with it.
        """
        if self._model.demo and "demo" not in extra:
            extra["demo"] = True
        await self._approvals.withdraw(self.turn)
        added = added or []
        drop, kept = past.leaves(added) if past else (0, added)
        last = added[-1]["seq"] if added else None
        if parting and parting.floor is not None:
            drop, kept, last = self.turn.held, parting.window, parting.seq
        told = state or {"task_update": "complete"}.get(status, status)
        rows: list[Row | outbox.RowChange] = [
            *turn_rows(
                self.agent or self._replies.agent,
                self.turn.id,
                self.turn.session,
                self.turn.records,
                state=told,
                epoch=self.turn.epoch,
                tries=self.turn.tries,
                started_ms=self.turn.claimed_at,
                ended_ms=self.now(),
                user_id=str(self.who.get("user_id", "")) or None,
                request_id=self._input.requests[0].id if self._input.requests else None,
                error=error,
                provider=self._model.name,
                task_id=self.turn.task_id,
                project_id=self.turn.project_id,
            )
        ]
        rows += conversation_rows(self.turn.session, self.turn.id, added)
        project = sessions.project_now(self.turn.records, situation.project(self.turn) or sessions.DEFAULT)
        rows += memory.rows(self.turn, self._input, added, project, self._replies.agent)
        rows += parting.rows_of(self.turn.session, self.turn.id) if parting else []
        rows += [self._touched(added, parting)] if talked else []
        if self._input.requests:
            await self._answer_agents(status, text, extra)
        events = await self._live.last(*self._ended(status, text, told, live or {}))
        await self.turn.finish(
            Completion(
                channel=self._channel,
                output="" if self._input.requests else self._output(status, text, **extra),
                rows=outbox.pack(rows),
                keep="" if state == "stopped" else await self._keep(status),
                dead=dead,
                drop=drop,
                window=[pack(item) for item in kept],
                seq=last,
                events=events,
                listens=self._live.listens,
            )
        )

    def _ended(
        self, status: messages.Status, text: str, state: str, more: dict[str, Any]
    ) -> tuple[str, dict[str, Any]]:
        """The event that closes the turn: `error` where the output is one, else `done`."""
        ids = {"turn_id": self.turn.id, "task_id": self.turn.id, "session_id": self.turn.session}
        if status == "error":
            return "error", {**ids, "error": text}
        usage: dict[str, Any] = {"thinking": "", "has_thinking": False, "usage": None, "cost": 0.0}
        timed = {"total_time_ms": self.elapsed(), "status": status, "content": text}
        return "done", {**ids, **usage, **timed, **({"stopped": True} if state == "stopped" else {}), **more}

    async def _answer_agents(self, status: messages.Status, text: str, extra: dict[str, Any]) -> None:
        """Another agent's question is answered where it came from, and no person is told."""
        await self.turn.step()  # the answer is kept before it is sent: a successor sends the same one
        payload = {"answer": text, "status": status, **extra}
        kind: Literal["response", "error"] = "response"
        if status == "error":
            kind, payload["error"] = "error", text
        for request in self._input.requests:
            told = {key: value for key, value in payload.items() if value is not None}
            await self._replies.deliver(request, kind, told)

    def _output(self, status: messages.Status, text: str, suffix: str = "end", **extra: Any) -> str:
        answers = [entry.id for entry in self.turn.given if entry.channel == self._human]
        answers += answered_by(self.turn.records)
        if self._model.demo and "demo" not in extra:
            extra["demo"] = True
        output = messages.Output(
            user_id=str(self.who.get("user_id", "")),
            content=text,
            status=status,
            id=f"{self.turn.id}.{suffix}",
            session_id=self.turn.session,
            in_reply_to=answers[0] if answers else None,
            answers=answers if status in messages.CLOSING else [],
            agent=self.agent or None,
            channel=self.turn.thread.channel or None,
            thread_id=str(self.turn.thread.number) if self.turn.thread.number else None,
            **extra,
        )
        return output.text(self._channel)

    def _touched(self, added: list[Record], parting: Parting | None) -> outbox.RowChange:
        person = str(self.who.get("user_id", "")) or None
        values: dict[str, Any] = {
            "key": self.turn.session,
            "user_id": person,
            "agent": self.agent or self._replies.agent,
        }
        if self._input.said:
            values["title"] = sessions.title(tagless(conceal(self._input.said[0].content)))
        values["rested"] = bool(self._input.rests and not self._input.said)
        if project := ended_in(self.turn.records, self.turn.project_id):
            values["project_id"] = str(project)
        if added:  # what was read without leaving words in the conversation is not read on
            values |= {"origin": {"foreign": added[-1][FOREIGN]}, "talked": True}
        if (place := self.turn.thread).channel:
            values |= {"channel": place.channel} | ({"number": place.number} if place.number else {})
        if parting:
            values |= parting.session
            if parting.window:
                values["origin"] = {"foreign": parting.window[-1][FOREIGN]}
        return outbox.RowChange("session", values)

    def now(self) -> int:
        """Milliseconds, by the server's clock."""
        return self.turn.claimed_at + self.elapsed()

    def elapsed(self) -> int:
        """Milliseconds since the turn was claimed."""
        return self.turn.elapsed_ms()
