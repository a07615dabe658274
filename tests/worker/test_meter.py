"""What a turn may spend: the budgets that hold for it, and which of them is spent."""

from __future__ import annotations

from typing import Any

import pytest

from shared.conversation import sessions
from shared.loop import Limits
from shared.models.base import Usage
from shared.settings import Settings
from shared.store.records import Project, Task, project_key
from shared.store.sqlite import SqliteStore
from shared.turns.records import ModelRecord, ResultRecord
from shared.turns.turn import Turn
from shared.worker.budgets.ledger import Ledger
from shared.worker.budgets.meter import Meter
from shared.worker.connection import Connection
from tests.support.valkey import until
from tests.worker.ground import connected, turn_of

SHOP = Project(id=project_key("shop"), slug="shop", name="Shop", budget=2.0)


class Ground:
    """A turn on the project `shop`, and the ledger of its cluster."""

    def __init__(self, connection: Connection, store: SqliteStore, turn: Turn) -> None:
        self.ledger, self.store, self.turn = Ledger(connection.bus, connection.names), store, turn

    async def meter(self, task: Task | None = None, session: str = "s", **budgets: Any) -> Meter:
        settings = Settings.model_validate(budgets)
        made = Meter(self.ledger, self.store, settings, self.turn, "shop", task, session)
        await made.open()
        return made


@pytest.fixture
async def ground(store: SqliteStore) -> Ground:
    connection = connected()
    await store.insert(SHOP)
    return Ground(connection, store, await turn_of(connection, "chatter"))


def bought(cost: float) -> ModelRecord:
    """The journal's record of a call."""
    return ModelRecord(at=1_700_000_000_000, content=[], stop="end_turn", usage=(1, 1, 0, 0, cost))


def spent(meter: Meter) -> dict[str, float]:
    return {budget.scope: used for budget, used in meter.budgets()}


async def test_only_budgets_that_somebody_set_are_counted(ground: Ground) -> None:
    assert spent(await ground.meter()) == {"project": 0.0}
    some = await ground.meter(BUDGET_TURN="1", BUDGET_SESSION="1", BUDGET_DAY="1")
    assert list(spent(some)) == ["turn", "session", "project", "day"]


async def test_a_task_pays_from_its_own_money_and_from_no_conversation(ground: Ground) -> None:
    task = Task(slug="calm-otter", project_id=SHOP.id, title="Dig", budget=0.5)
    meter = await ground.meter(task, session="", BUDGET_SESSION="1")
    assert list(spent(meter)) == ["task", "project"]
    await meter.bought(0, Usage(cost=0.6))
    over = meter.over()
    assert over is not None and over.words == "the budget of the task calm-otter ($0.50)"


async def test_what_a_worker_before_us_bought_is_booked_once_and_counts(ground: Ground) -> None:
    ground.turn.keep(bought(0.4))
    for _ in range(2):
        meter = await ground.meter(BUDGET_TURN="1", BUDGET_DAY="5")
        assert spent(meter)["turn"] == 0.4
    assert (await ground.ledger.spent(str(SHOP.id))).project == 0.4


async def test_what_others_spend_meanwhile_is_seen_before_the_next_call(ground: Ground) -> None:
    meter = await ground.meter()
    await ground.ledger.charge("another", 1.9, 1, project=str(SHOP.id))
    await meter.bought(0, Usage(cost=0.2))
    assert spent(meter)["project"] == 0.2, "at once only what is our own"
    await until(lambda: spent(meter)["project"] == pytest.approx(2.1))
    over = meter.over()
    assert over is not None and over.scope == "project"


async def test_a_turn_that_goes_to_another_project_pays_from_that(ground: Ground, store: SqliteStore) -> None:
    await store.insert(Project(id=project_key("bank"), slug="bank", name="Bank", budget=9.0))
    meter = await ground.meter()
    (switch, *_) = sessions.SWITCHES
    ground.turn.keep(ResultRecord(tool=switch, id="c", content={sessions.ACTIVE: "bank"}, error=False))
    await meter.next()
    assert [budget.name for budget, _ in meter.budgets()] == ["bank"]


async def test_the_limits_of_a_turn_name_the_budget_that_ended_it(ground: Ground) -> None:
    meter = await ground.meter(BUDGET_TURN="1")
    limits = meter.limits(Limits(rounds=3))
    assert limits.rounds == 3 and limits.over is not None and limits.over() == ""
    await meter.bought(0, Usage(cost=1.0))
    assert limits.over() == "the budget of one turn ($1.00)"


async def test_a_budget_that_a_person_raised_is_larger_by_that(ground: Ground) -> None:
    await ground.ledger.allow("session", "s", 1.0, key="m1")
    meter = await ground.meter(BUDGET_SESSION="1")
    assert [budget.dollars for budget, _ in meter.budgets() if budget.scope == "session"] == [2.0]
