"""What a turn does with the window of its conversation at its end: clear it, save it, load what was saved."""

from __future__ import annotations

from collections.abc import Sequence

from shared import failpoints, log
from shared.conversation import context
from shared.conversation import summary as summaries
from shared.conversation.context import SHORT, Parting, WindowChange
from shared.conversation.past import History
from shared.conversation.window import FOREIGN
from shared.errors import BusUnreachable, Fenced, Missing, PromptDockError, ToolError
from shared.store.origin import BEFORE
from shared.store.records import SnapshotRow
from shared.turns.records import BoughtRecord, Record
from shared.turns.turn import Turn
from shared.worker.runners.agent import AgentRunner, model_name
from shared.worker.runners.chat import buying


class WindowKeeper:
    """Carries the changes of one turn out. `by` is who asked for them, as people read it."""

    def __init__(
        self,
        agent_runner: AgentRunner,
        turn: Turn,
        past: History,
        added: Sequence[Record],
        by: str,
        person: str | None,
    ) -> None:
        self._agent_runner, self._turn, self._by, self._person = agent_runner, turn, by, person
        self._window: list[Record] = [*past.window, *added]  # as the changes so far leave it
        self._seq = added[-1]["seq"] if added else past.seq
        self._summary = past.summary["text"] if past.summary else ""

    async def part(self, changes: Sequence[WindowChange]) -> Parting:
        """What the turn leaves; ToolError where there is nothing to save, to clear, or to load."""
        parting = Parting(seq=self._seq)
        for change in changes:
            match change.do:
                case "save":
                    await self._save(change, parting)
                case "clear":
                    self._clear(parting)
                case "restore":
                    await self._restore(change, parting)
        failpoints.point("window changed", self._turn.id)
        return parting

    @property
    def empty(self) -> bool:
        """Whether nothing is gone on from."""
        return not (self._window or self._summary)

    async def _save(self, change: WindowChange, parting: Parting) -> None:
        if self.empty:
            raise ToolError(
                "there is nothing to save", "nothing was said since the conversation began anew", ""
            )
        summary = await self._summarised()
        row = context.snapshot(
            *(change, self._turn.session, self._agent_runner.profile.name, self._person),
            *(self._window, summary, self._foreign()),
        )
        parting.rows.append(row)
        without = "" if summary else ", without a summary, since no model gave one"
        count = _count(row.message_count, "message")
        parting.told.append(f"Saved as {change.id[:SHORT]}: {row.description} ({count}{without}).")
        parting.result |= {
            "saved": change.id,
            "description": row.description,
            "messages": row.message_count,
            "tool_calls": row.tool_calls,
            "summary": summary,
        }

    async def _summarised(self) -> str:
        """The summary of all that is gone on from, bought once; the one that there is where none can be had."""
        bought = self._turn.records.first(BoughtRecord)
        try:
            if bought is None and self._window:
                bought = await self._buy()
        except (Fenced, BusUnreachable):
            raise
        except PromptDockError as error:
            log.get().warning("A conversation is saved without a summary", why=str(error))
        return buying.text(bought) or self._summary

    async def _buy(self) -> BoughtRecord | None:
        resources, profile = self._agent_runner.resources, self._agent_runner.profile
        name = model_name(resources.settings, profile, resources.model)
        request = summaries.request(name, profile.name, self._summary, self._window)
        session = self._turn.session
        return await buying.buy(
            *(self._agent_runner, self._turn, session, request),
            lambda answer: buying.beside(answer, "the summary of what is saved"),
        )

    def _clear(self, parting: Parting) -> None:
        if self.empty:
            raise ToolError(
                "there is nothing to clear", "nothing was said since the conversation began anew", ""
            )
        count = len(self._window)
        # A person who clears it knows that nothing is gone on from; what a model does takes no mark off.
        foreign = "" if self._person and self._by == self._person else self._foreign()
        fresh = context.cleared(self._by, self._turn.id, self._turn.now(), foreign)
        self._begin(parting, fresh)
        stays = "stays" if count == 1 else "stay"
        parting.told.append(f"Cleared. {_count(count, 'message')} {stays} in the history.")
        parting.result |= {"cleared": count}

    async def _restore(self, change: WindowChange, parting: Parting) -> None:
        rows = await self._agent_runner.resources.store.select(
            SnapshotRow, {"id": change.id, "kind": "saved"}, limit=1
        )
        if not rows:
            raise Missing(f"there is nothing saved as {change.id[:SHORT]}", "it was deleted meanwhile", "")
        now = self._turn.now()
        window = context.restored(rows[0], self._by, self._turn.id, self._turn.session, now)
        self._begin(parting, window)
        count = _count(rows[0].message_count, "message")
        parting.told.append(f"Restored {change.id[:SHORT]}: {rows[0].description} ({count}).")
        parting.result |= {"restored": change.id, "messages": rows[0].message_count}

    def _begin(self, parting: Parting, window: list[Record]) -> None:
        parting.begin_anew(window)
        self._window, self._summary = list(parting.window), ""

    def _foreign(self) -> str:
        """What was read in what is gone on from."""
        return str(self._window[-1].get(FOREIGN, BEFORE)) if self._window else ""


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
