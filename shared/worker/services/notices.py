"""What happens is written down for whoever is to be told of it: read once, in order, from where the one before stopped.

The outputs of Chatter are a stream in Redis, transitions of tasks are rows. What was read is noted after its
deliveries are rows, and these have ids that follow from the notice: reading twice is writing once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

from shared import failpoints, log
from shared.bus import messages
from shared.bus.keys import CHATTER
from shared.notify import events
from shared.notify.events import Notice
from shared.store.base import Store
from shared.store.query import IN_LIMIT
from shared.store.records import Delivery, Project, Session, Setting, Subscription, Task
from shared.store.row import derived, now
from shared.worker.connection import Connection
from shared.worker.services.task_log import TaskLog

NAME = "notifications"
MOST = 5000  # deliveries that wait for one receiver; what comes beyond is told as lost
GRACE = timedelta(seconds=20)  # in which a person may see it themselves, before a notification is sent
SETTLE = timedelta(seconds=2)  # after which the rows of a turn that ended are in the Store mostly
_COUNT = 200


class Notices:
    """From what happened to rows of deliveries."""

    def __init__(self, connection: Connection, store: Store, page: str) -> None:
        self._connection, self._store, self._page = connection, store, page
        self._stream = connection.names.keys(CHATTER).outputs
        self._tasks = TaskLog(store, NAME)
        self._cursor = ""

    def forget(self) -> None:
        """Somebody else read meanwhile."""
        self._tasks = TaskLog(self._store, NAME)
        self._cursor = ""

    async def outputs(self, subscriptions: Sequence[Subscription], wait_ms: int = 1) -> set[UUID]:
        """Write down what Chatter said; which subscriptions have something new. Waits so long for the first."""
        if not self._cursor:
            self._cursor = await self._resume(subscriptions)
        entries = await self._connection.bus.read({self._stream: self._cursor}, wait_ms, _COUNT)
        if not entries:
            return set()
        told = await self._write(subscriptions, [n for e in entries if (n := _notice(e.id, e.fields))])
        failpoints.point("notices written", entries[-1].id)
        self._cursor = entries[-1].id
        await self._keep(self._cursor)
        return told

    async def tasks(self, subscriptions: Sequence[Subscription]) -> set[UUID]:
        """Write down what tasks went through; which subscriptions have something new."""
        rows = await self._tasks.new()
        if not rows:
            return set()
        ids = sorted({row.task_id for row in rows})
        found: dict[UUID, Task] = {}
        for at in range(0, len(ids), IN_LIMIT):
            some = await self._store.select(Task, {"id": ("in", ids[at : at + IN_LIMIT])})
            found |= {task.id: task for task in some}
        projects = events.project_of(await self._store.select(Project))
        notices = [
            notice
            for row in rows
            if (task := found.get(row.task_id))
            for notice in events.of_task(row, task, projects.get(task.project_id, ""))
        ]
        return await self._write(subscriptions, notices)

    async def _write(self, subscriptions: Sequence[Subscription], notices: Iterable[Notice]) -> set[UUID]:
        notices = await self._placed(subscriptions, list(notices))
        rows = [
            delivery(subscription, notice, self._page)
            for notice in notices
            for subscription in subscriptions
            if subscription.enabled and events.hears(subscription, notice)
        ]
        known: set[UUID] = set()
        for at in range(0, len(rows), IN_LIMIT):
            ids = [row.id for row in rows[at : at + IN_LIMIT]]
            known |= {row.id for row in await self._store.select(Delivery, {"id": ("in", ids)})}
        fresh = [row for row in rows if row.id not in known]
        fresh = await self._bounded(subscriptions, fresh)
        if fresh:
            await self._store.upsert(fresh)
        return {row.subscription_id for row in fresh}

    async def _placed(self, subscriptions: Sequence[Subscription], notices: list[Notice]) -> list[Notice]:
        """With the projects of their conversations, where somebody hears of a project."""
        if not any(one.project_id and not one.everything for one in subscriptions):
            return notices
        keys = sorted({one.session for one in notices if one.session and one.project_id is None})
        rows: list[Session] = []
        for at in range(0, len(keys), IN_LIMIT):
            rows += await self._store.select(Session, {"key": ("in", keys[at : at + IN_LIMIT])})
        of = {row.key: row.project_id or row.active_project for row in rows}
        return [
            Notice(**{**vars(one), "project_id": one.project_id or of.get(one.session)}) for one in notices
        ]

    async def _bounded(self, subscriptions: Sequence[Subscription], rows: list[Delivery]) -> list[Delivery]:
        """Without those for a receiver that has not taken anything for so long that no more can wait."""
        full = set()
        for one in subscriptions:
            if one.failing_since and any(row.subscription_id == one.id for row in rows):
                waiting = await self._store.count(Delivery, {"subscription_id": one.id, "state": "pending"})
                if waiting >= MOST:
                    full.add(one.id)
                    why = f"{waiting} events wait for it, and later ones are lost"
                    await self._store.update(Subscription, {"error": why}, {"id": one.id})
                    log.get().warning(
                        "Events for a receiver are lost", subscription=one.slug, waiting=waiting
                    )
        return [row for row in rows if row.subscription_id not in full]

    async def _resume(self, subscriptions: Sequence[Subscription]) -> str:
        found = await self._store.select(Setting, {"scope": "tails", "key": NAME + "-outputs"}, limit=1)
        since = min((one.created_at for one in subscriptions), default=now())
        # A read begins behind its cursor: what was said in the millisecond of the subscription is part of it.
        begun = f"{int(since.timestamp() * 1000) - 1}-0"
        kept = str(found[0].value.get("id", "")) if found else ""
        return max(kept, begun, key=_place) if kept else begun

    async def _keep(self, cursor: str) -> None:
        id = derived("setting", "tails", NAME + "-outputs")
        row = Setting(id=id, scope="tails", key=NAME + "-outputs", value={"id": cursor})
        await self._store.upsert([row])


def delivery(subscription: Subscription, notice: Notice, page: str) -> Delivery:
    """The row of one notice for one address."""
    at = now()
    wait = SETTLE if notice.event.startswith("turn.") else timedelta(0)
    if subscription.transport == "push" and notice.event != events.TEST:
        wait = GRACE
    return Delivery(
        id=derived("delivery", str(subscription.id), notice.key),
        subscription_id=subscription.id,
        event=notice.event,
        subject=notice.subject,
        position=int(notice.at.timestamp() * 1000),
        body=notice.body(page),
        due_at=at + wait,
    )


def _notice(id: str, fields: dict[str, bytes]) -> Notice | None:
    try:
        output = messages.Output.model_validate_json(fields.get("data", b""))
    except ValueError:
        return None
    return events.of_output(output, datetime.fromtimestamp(_place(id)[0] / 1000, UTC))


def _place(cursor: str) -> tuple[int, int]:
    ms, _, number = cursor.partition("-")
    return int(ms or 0), int(number or 0)
