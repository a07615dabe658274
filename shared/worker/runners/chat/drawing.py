"""Drawing memories out of a conversation: a turn of its own, off the path of any answer.

It begins some time after an answer, so that several are drawn from together. Its journal holds what was bought, so
that a successor pays for nothing twice; what it draws, and how far it came, leave with its end, under its lease.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any

from shared import failpoints, log
from shared.conversation import sessions
from shared.errors import PromptDockError, StoreUnavailable
from shared.loop import final
from shared.loop.transcript import answer_record
from shared.memory import extraction, keeping
from shared.memory.extraction import Drawn
from shared.memory.keeping import Draw
from shared.memory.scope import MemoryScope
from shared.store.base import Store
from shared.store.origin import Origin, mark
from shared.store.records import Memory, Project
from shared.store.row import derived
from shared.turns import outbox, requests, scripts
from shared.turns.queue import Completion
from shared.turns.records import DrawingRecord, ModelRecord, Records, pack
from shared.turns.turn import Turn
from shared.worker.budgets.ledger import today
from shared.worker.budgets.meter import Meter, MeteredModel
from shared.worker.connection import Connection
from shared.worker.runners.agent import AgentRunner, model_name
from shared.worker.runners.history import turn_rows

PREFIX = "memory:"  # of the session in which a conversation's memories are drawn
SHORTEST = 12  # characters of a person's words from which it is worth to ask a model
_TURNS = 40  # messages that one call draws from
_KNOWN = 20  # facts that it is shown
_SETTLES = 15.0  # seconds that rows on their way to the Store are waited for
_AGAIN = 3_600_000  # milliseconds until what failed is tried again
_RULES = "plain rules, since the demo model understands nothing"


def draws(turn: Turn, human: str) -> bool:
    """Whether the turn was opened by `begin`; what people say in a session of such a name is theirs."""
    return turn.session.startswith(PREFIX) and bool(turn.given) and turn.given[0].channel != human


async def plan(connection: Connection, session: str, rest_ms: int) -> None:
    """Have a conversation drawn from after a while, with whatever is said in it until then."""
    due = int(time.time() * 1000) + rest_ms
    try:
        await connection.bus.command("ZADD", connection.names.undrawn(), "NX", due, session)
    except PromptDockError as error:
        log.get().warning("No memories will be drawn from an answer", why=str(error))


async def begin(connection: Connection, agent: str) -> int:
    """Begin with what is due; begun by several workers at once, it is begun once. How many it were."""
    key, now = connection.names.undrawn(), int(time.time() * 1000)
    due = await connection.bus.command("ZRANGE", key, "-inf", now, "BYSCORE", "LIMIT", 0, 100, "WITHSCORES")
    queue = connection.queue(agent)
    for member, at in zip(due[::2], due[1::2], strict=True):
        session = member.decode("utf-8", "replace")
        id = f"{PREFIX}{derived('memory', session, str(int(float(at))))}"
        payload = {"command": "remember", "session_id": session}
        await requests.to_itself(queue, id, f"{PREFIX}{session}", payload)
        await connection.bus.command("ZREM", key, member)
    return len(due) // 2


class DrawingRunner:
    """Draws once. Made anew for each turn."""

    def __init__(self, engine: AgentRunner, turn: Turn) -> None:
        self._engine, self._turn, self._resources = engine, turn, engine.resources
        self._session = turn.session.removeprefix(PREFIX)

    @property
    def deadline(self) -> int:
        """It never is too late: what is to be drawn from is looked up when it begins."""
        return 0

    async def run(self) -> None:
        """Buy what is due, unless a worker before us did, and leave it on its way to the Store."""
        try:
            await self._carry_out()
        except StoreUnavailable as error:
            await self.failed(error)

    async def _carry_out(self) -> None:
        noted = self._turn.records.first(DrawingRecord)
        if noted is None and (noted := await self._due()) is not None:
            await self._turn.step(noted)
        if noted is None:
            await self._close("complete")
            return
        drawn, by = await self._draw(noted)
        if drawn is None:
            await self._close("complete")
            return
        draw = Draw(
            self._turn.id, noted.user, noted.project, self._session, noted.last, by,
            [{"id": turn["id"], "source": turn["source"]} for turn in noted.turns],
            noted.known, drawn.model_dump(mode="json", by_alias=True), noted.origin,
        )  # fmt: skip
        log.get().info("Memories were drawn from a conversation", of=self._session, until=noted.last)
        await self._close("complete", draw)
        await self._settled()
        where = {"session_id": self._session, "kind": "turn", "created_at": ("gt", noted.last)}
        if await self._resources.store.count(
            Memory, where
        ):  # also of an answer whose worker died before it said so
            await plan(self._resources.connection, self._session, self._resources.settings.memory_rest_ms)

    async def stopped(self) -> None:
        """What was said is remembered without."""
        await self._close("stopped")

    async def failed(self, error: PromptDockError, dead: str = "") -> None:
        """It is tried again later."""
        log.get().warning("No memories were drawn", of=self._session, why=str(error))
        await self._close("error", why=str(error), dead=dead)
        if not dead:
            await plan(self._resources.connection, self._session, _AGAIN)

    async def _due(self) -> DrawingRecord | None:
        """What was said since the last time, of one person; None for nothing that is worth it."""
        store = self._resources.store
        await self._settled()
        # What was drawn a moment ago may still be on its way to the Store.
        ours = [str(item.get("last")) for item in self._turn.window if item.get("k") == "drawn"]
        last = max([await keeping.reached(store, self._session), *ours])
        where: dict[str, Any] = {"session_id": self._session, "kind": "turn", "archived": False}
        order: Any = [("created_at", "asc"), ("id", "asc")]
        where |= {"created_at": ("gt", last)} if last else {}
        rows = await store.select(Memory, where, order=order, limit=_TURNS)
        if not rows:
            return None
        person, place = rows[0].user_id, rows[0].project_id
        some = [row for row in rows if (row.user_id, row.project_id) == (person, place)]
        # What comes behind another person's words waits for the next time.
        cut = next((n for n, row in enumerate(rows) if row not in some), len(some))
        some = some[:cut]
        known = await _known(store, some, MemoryScope(person or "", await _slug(store, place)))
        foreign = mark(*some, *known)
        return DrawingRecord(
            at=self._turn.now(),
            user=person or "",
            project=await _slug(store, place),
            turns=[row.model_dump(mode="json") for row in some],
            known=[str(row.id) for row in known],
            facts=[row.model_dump(mode="json") for row in known],
            origin=Origin(self._engine.profile.name, person or "", self._session, "", foreign).kept(),
            last=some[-1].created_at.isoformat(timespec="microseconds"),
        )

    async def _settled(self) -> None:
        """Wait until the Store has what was said: a dead worker's rows wait for the next one."""
        bus, prefix = self._resources.connection.bus, self._turn.queue.prefix
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_SETTLES):
                while await bus.script(scripts.WAITS, prefix):  # noqa: ASYNC110 - in other processes
                    await asyncio.sleep(0.2)

    async def _draw(self, noted: DrawingRecord) -> tuple[Drawn | None, str]:
        """What is drawn, and by whom; None where no money is left for it."""
        turns = [Memory.model_validate(row) for row in noted.turns]
        said = [row for row in turns if row.detail.get("role") == "user" and len(row.body) >= SHORTEST]
        if not said:
            return Drawn(), ""
        if self._resources.model.demo:
            return extraction.by_rules(turns), _RULES
        bought = self._turn.records.first(ModelRecord)
        if bought is None:
            bought = await self._buy(turns, [Memory.model_validate(row) for row in noted.facts], noted)
        if bought is None:
            return None, ""
        return extraction.read(final.split(bought.content)[0]), bought.model

    async def _buy(
        self, turns: list[Memory], known: list[Memory], noted: DrawingRecord
    ) -> ModelRecord | None:
        """One call of the model, on an account of its own; None where nothing is left on it."""
        resources, profile = self._resources, self._engine.profile
        settings = resources.settings.model_copy(update={"budget_session": resources.settings.budget_memory})
        account = f"@memory:{today()}"
        meter = Meter(
            self._engine.ledger, resources.store, settings, self._turn, noted.project, None, account
        )
        await meter.open()
        if budget := meter.over():
            log.get().info("No memories are drawn: no money is left for it", budget=budget.words)
            return None
        name = model_name(resources.settings, profile, resources.model)
        request = extraction.request(name, profile.name, turns, known)
        started = self._turn.elapsed_ms()
        answer = await MeteredModel(resources.model, meter, self._turn).answer(request)
        bought = answer_record(answer, self._turn.elapsed_ms() - started)
        failpoints.point("model answered", self._turn.id)
        await self._turn.step(bought)
        failpoints.point("answer stored", self._turn.id)
        return bought

    async def _close(self, state: str, draw: Draw | None = None, why: str = "", dead: str = "") -> None:
        turn = self._turn
        rows: list[Any] = turn_rows(
            self._engine.profile.name,
            turn.id,
            self._session,
            Records(record for record in turn.records if not isinstance(record, DrawingRecord)),
            state=state,
            epoch=turn.epoch,
            tries=turn.tries,
            started_ms=turn.claimed_at,
            ended_ms=turn.now(),
            error=why or None,
            provider=self._resources.model.name,
            project_id=turn.project_id,
        )
        if draw is None:
            await turn.finish(Completion(rows=outbox.pack(rows), dead=dead))
            return
        rows.append(outbox.RowChange(keeping.APPLIER, draw.values()))
        window = [pack({"k": "drawn", "last": draw.last})]
        await turn.finish(Completion(rows=outbox.pack(rows), drop=len(turn.window), window=window))


async def _known(store: Store, turns: list[Memory], within: MemoryScope) -> list[Memory]:
    """The person's own facts that these turns may be about."""
    words = " ".join(row.body for row in turns)[:4000]
    own = within.conditions()[0]
    fits = {**own, "kind": "fact", "valid_to": None, "archived": False}
    return [row for row, _ in (await store.search(Memory, words, fits, _KNOWN)).rows]


async def _slug(store: Store, project: Any) -> str:
    rows = await store.select(Project, {"id": project}, limit=1) if project else []
    return rows[0].slug if rows else sessions.DEFAULT
