"""The money of one turn: each model call is booked, and a budget that is spent ends the turn.

A budget may be set for a turn, a conversation, a task, a project and a day. What others spend at the same moment
is seen before the next call; so that a budget is passed by no more than the calls that were under way.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace

from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from shared import log
from shared.conversation import sessions
from shared.errors import PromptDockError, StoreUnavailable
from shared.loop import Limits
from shared.models.base import Answer, Model, OnDelta, Request, Usage
from shared.plain import dollars
from shared.settings import Settings
from shared.store.base import Store
from shared.store.records import Project, Task, project_key
from shared.tasks import budgets
from shared.turns.records import PricedRecord
from shared.turns.turn import Turn
from shared.worker.budgets.ledger import Ledger, Spent, today

_TRIES = 5
_booking: set[asyncio.Task[None]] = set()  # a task without a reference may vanish


@dataclass(frozen=True)
class Budget:
    """A limit in dollars, and what it is of: `scope` is turn, session, task, project or day."""

    scope: str
    name: str
    dollars: float

    @property
    def words(self) -> str:
        """As people and models read it."""
        of = {"day": "for today", "session": "of this conversation", "turn": "of one turn"}
        return (
            f"the budget {of.get(self.scope, f'of the {self.scope} {self.name}')} ({dollars(self.dollars)})"
        )


class Meter:
    """What a turn may spend, and what it has spent."""

    def __init__(
        self,
        ledger: Ledger,
        store: Store,
        settings: Settings,
        turn: Turn,
        project: str,
        task: Task | None,
        session: str,
    ) -> None:
        self._ledger, self._store, self._settings = ledger, store, settings
        self._turn, self._slug, self._task = turn, project, task
        self._session = session  # the conversation that pays; "" for a task, which has money of its own
        self._spent, self._own = Spent(), 0.0
        self._budgets: dict[str, float | None] = {}  # of the projects that the turn works on
        self._day_budget = settings.budget_day
        self._begun = project
        turn.project_id, turn.task_id = project_key(project), task.id if task else None

    async def _follow(self) -> None:
        """Pay from the project that the turn works on by now."""
        self._slug = sessions.project_now(self._turn.records, self._begun)
        if self._slug in self._budgets:
            return
        try:
            found = await self._store.select(Project, {"id": project_key(self._slug)}, limit=1)
            self._budgets[self._slug] = found[0].budget if found else None
        except StoreUnavailable as error:
            log.get().warning("The budget of a project cannot be read", project=self._slug, why=str(error))

    async def next(self) -> None:
        """Before a call: where it is booked, and what is left there, if the project is another by now."""
        before = self._slug
        await self._follow()
        if self._slug != before:
            await self._read()

    async def open(self) -> None:
        """Read what was spent; book again what a worker before us may not have come to book."""
        try:
            self._day_budget = await budgets.day(self._store, self._settings.budget_day)
        except StoreUnavailable as error:
            log.get().warning("Budgets that people set cannot be read", why=str(error))
        project, number = self._begun, 0
        for record in self._turn.records:
            project = sessions.switched(record) or project
            if isinstance(record, PricedRecord):
                usage = Usage(*record.usage)
                self._own += usage.cost
                await self._book(number, usage, record.at / 1000, project)
                number += 1
        await self._follow()
        await self._read()

    async def _read(self) -> None:
        """Only where there is a budget that others spend from too."""
        limits = (self._day_budget, self._settings.budget_session, self._budgets.get(self._slug))
        if all(limit is None for limit in limits) and (self._task is None or self._task.budget is None):
            return
        task = str(self._task.id) if self._task else ""
        try:
            self._spent = await self._ledger.spent(str(project_key(self._slug)), task, self._session)
        except PromptDockError as error:
            log.get().warning("What was spent cannot be read", why=str(error))

    def budgets(self) -> list[tuple[Budget, float]]:
        """Each budget that is set, with what was spent of it."""
        spent, settings = self._spent, self._settings
        task = self._task
        rows = [
            ("turn", self._turn.id, settings.budget_turn, 0.0, self._own),
            ("task", task.slug if task else "", task.budget if task else None, 0.0, spent.task),
            (
                "session",
                self._session,
                settings.budget_session if self._session else None,
                spent.raised_session,
                spent.session,
            ),
            ("project", self._slug, self._budgets.get(self._slug), 0.0, spent.project),
            ("day", today(), self._day_budget, spent.raised_day, spent.day),
        ]
        return [
            (Budget(scope, name, limit + raised), used)
            for scope, name, limit, raised, used in rows
            if limit is not None
        ]

    def over(self) -> Budget | None:
        """The first budget that is spent."""
        return next((budget for budget, used in self.budgets() if used >= budget.dollars), None)

    def limits(self, limits: Limits) -> Limits:
        """These limits, and the money."""

        def over() -> str:
            budget = self.over()
            return budget.words if budget else ""

        return replace(limits, over=over)

    async def bought(self, number: int, usage: Usage) -> None:
        """Book call `number` of the turn, and see what is left."""
        self._own += usage.cost
        shared = self._spent
        # What we know at once; the totals of all follow when the call is booked.
        self._spent = replace(
            shared,
            day=shared.day + usage.cost,
            project=shared.project + usage.cost,
            task=shared.task + usage.cost,
            session=shared.session + usage.cost,
        )

        project = self._slug

        async def book() -> None:
            await self._book(number, usage, time.time(), project)
            await self._read()

        task = asyncio.create_task(book())
        _booking.add(task)
        task.add_done_callback(_booking.discard)

    async def _book(self, number: int, usage: Usage, at: float, project: str) -> None:
        tokens = usage.input + usage.output + usage.cache_read + usage.cache_write
        task = str(self._turn.task_id or "")
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(PromptDockError),
            stop=stop_after_attempt(_TRIES),
            wait=wait_exponential(0.2),
            reraise=True,
        )
        try:
            await retrying(
                self._ledger.charge,
                f"{self._turn.queue.agent}:{self._turn.id}:{number}", usage.cost, tokens, at=at,
                project=str(project_key(project)), task=task, session=self._session,
            )  # fmt: skip
        except PromptDockError as error:
            log.get().warning("A model call could not be booked", why=str(error))


class MeteredModel(Model):
    """A model that is asked in the name of one turn: its calls are booked, and none leaves once the turn is lost."""

    def __init__(self, model: Model, meter: Meter, turn: Turn) -> None:
        self._model, self._meter, self._turn = model, meter, turn
        self.name, self.demo = model.name, model.demo

    async def answer(self, request: Request, on_delta: OnDelta | None = None) -> Answer:
        number = len(self._turn.records.priced)
        answer = await self._model.answer(replace(request, ours=self._turn.ours), on_delta)
        await self._meter.bought(number, answer.usage)
        return answer

    async def models(self) -> list[str]:
        return await self._model.models()

    async def check(self) -> None:
        await self._model.check()

    def defers(self, model: str) -> bool:
        return self._model.defers(model)

    def warmest(self, model: str) -> float:
        return self._model.warmest(model)
