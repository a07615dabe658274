"""A call of the model that a conversation needs beside its answers: a summary, a title. It is booked like any other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from shared import failpoints
from shared.conversation import sessions
from shared.loop import final
from shared.loop.transcript import answer_record
from shared.models.base import Request
from shared.settings import Settings
from shared.turns.records import BoughtRecord, ModelRecord, PricedRecord
from shared.turns.turn import Turn
from shared.worker.budgets.meter import Meter, MeteredModel
from shared.worker.runners.agent import AgentRunner

Bought = TypeVar("Bought", ModelRecord, BoughtRecord)


def beside(answer: ModelRecord, text: str) -> BoughtRecord:
    """An answer that stands beside the turn; `text` says what it is."""
    return BoughtRecord.model_validate({**answer.fields(), "k": "bought", "text": text})


async def buy(
    agent_runner: AgentRunner,
    turn: Turn,
    session: str,
    request: Request,
    made: Callable[[ModelRecord], Bought],
    settings: Settings | None = None,
    account: str = "",
) -> Bought | None:
    """One answer, in the journal before it is used, as `made` has it; None where no money is left.

    `session` pays, or an account of its own, whose bound stands in `settings`.
    """
    resources = agent_runner.resources
    project = await sessions.active_project(resources.store, session)
    meter = Meter(
        *(agent_runner.ledger, resources.store, settings or resources.settings, turn, project, None),
        account or session,
    )
    await meter.open()
    if meter.over():
        return None
    started = turn.elapsed_ms()
    answer = await MeteredModel(resources.model, meter, turn).answer(request)
    bought = made(answer_record(answer, turn.elapsed_ms() - started))
    failpoints.point("model answered", turn.id)
    await turn.step(bought)
    failpoints.point("answer stored", turn.id)
    return bought


def text(bought: PricedRecord | None) -> str:
    """What it says; "" where it says nothing, or declines."""
    if bought is None or bought.stop == "refusal":
        return ""
    return final.split(bought.content)[0].strip()
