"""Who is to be told outside is told: one Chatter at a time, under a lease, each receiver apart from all others.

What is sent has been a row before, and is one until the receiver took it; so a receiver hears at least once of
everything, and by the id of a message drops what it has heard already.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from shared import failpoints, log
from shared.bus.keys import CHATTER
from shared.errors import PromptDockError, ToolError
from shared.guard.sandbox.addresses import Reach
from shared.notify import events, pace, push, webhook
from shared.notify.sealing import Seal
from shared.notify.webhook import SendOutcome
from shared.store.base import Store
from shared.store.records import Approval, Delivery, Subscription, Task, TaskEvent, TurnRow
from shared.store.row import derived, now
from shared.turns.lease import Lease
from shared.worker.changes import Changes
from shared.worker.connection import Connection
from shared.worker.services.notices import Notices

_LOOK = 1.0  # seconds between two looks at what is due, and that Chatter's next word is awaited
_IDLE = 60.0  # seconds between two looks where nobody is to be told of anything
_AT_ONCE = 20  # receivers that are sent to at the same time
_SIDE_BY_SIDE = 4  # events of different subjects on their way to one receiver
_PAGE = 200  # deliveries that are looked at together
_GROUPED = timedelta(seconds=60)  # between two notifications of one person
_NOTED = timedelta(seconds=10)  # between two notes that a receiver takes what is sent
_UNKNOWN = timedelta(seconds=30)  # after which rows of a turn that are not there will not come

Push = Callable[[str, Sequence[dict[str, Any]], Reach], Awaitable[SendOutcome]]


@dataclass(frozen=True)
class Senders:
    """How it goes out; tests have their own."""

    webhook: Callable[[str, bytes, str, int, dict[str, Any], Reach], Awaitable[SendOutcome]] = webhook.send
    push: Push = push.send


class NotificationService:
    """One worker's part in it; `run` never ends."""

    def __init__(
        self,
        connection: Connection,
        store: Store,
        lease: Lease,
        changes: Changes,
        page: str,
        hosts: frozenset[str],
        senders: Senders | None = None,
    ) -> None:
        self._connection, self._store, self._lease = connection, store, lease
        self._changes, self._watch = changes, changes.watch(Subscription, TaskEvent)
        self._notices, self._seal = Notices(connection, store, page), Seal(connection.signer)
        self._reach, self._senders = Reach(hosts=hosts), senders or Senders()
        self._subscriptions: list[Subscription] = []
        self._due: dict[UUID, float] = {}  # when a receiver is looked at again, by the monotonic clock
        self._busy: dict[UUID, asyncio.Task[None]] = {}
        self._epoch, self._known = 0, float("-inf")

    async def run(self) -> None:
        """As long as somebody is to be told of something, take the lease whenever it is free, and send."""
        well = True
        try:
            while True:
                try:
                    await self._turn()
                    well = True
                except PromptDockError as error:
                    if well:  # once: each warning is a row on its way to the Store that may be the reason
                        log.get().warning("Nobody is told outside now", why=str(error))
                    well = False
                    await asyncio.sleep(_LOOK)
        finally:
            await self._let_go()

    async def _turn(self) -> None:
        await self._read()
        if not self._subscriptions:
            await self._watch.pause(_IDLE, _LOOK, ours=True)
            return
        epoch = await self._lease.take()
        if not epoch:
            self._stop()
            await asyncio.sleep(max(_LOOK, self._lease.ms / 3000))
            return
        if epoch != self._epoch:
            self._epoch = epoch
            self._notices.forget()
            self._watch.all()
            self._due = dict.fromkeys((one.id for one in self._subscriptions), 0.0)
        await self.look(int(_LOOK * 1000))

    async def _read(self) -> None:
        """The subscriptions as they are now, where they changed."""
        with self._watch.reading(Subscription) as changed:
            if not changed and time.monotonic() - self._known < _IDLE:
                return
            rows = await self._store.select(Subscription)
        self._known = time.monotonic()
        self._due = {one.id: 0.0 for one in rows}  # it may be that a person asks for another try
        self._subscriptions = rows

    async def look(self, wait_ms: int = 1) -> None:
        """Write down what happened, and begin to send what is due."""
        told = await self._notices.outputs(self._subscriptions, wait_ms)
        with self._watch.reading(TaskEvent) as changed:
            if changed:
                told |= await self._notices.tasks(self._subscriptions)
        for id in told:
            self._due[id] = 0.0
        for one in self._subscriptions:
            if one.enabled and one.id not in self._busy and self._due.get(one.id, 0.0) <= time.monotonic():
                if len(self._busy) >= _AT_ONCE:
                    break
                self._begin(one)

    def _begin(self, one: Subscription) -> None:
        self._due[one.id] = float("inf")
        task = asyncio.create_task(self._serve(one), name=f"tell {one.slug}")
        self._busy[one.id] = task
        task.add_done_callback(lambda _done: self._busy.pop(one.id, None))

    async def idle(self) -> None:
        """Wait until nothing is on its way any more."""
        while self._busy:
            await asyncio.gather(*self._busy.values(), return_exceptions=True)

    def _stop(self) -> None:
        for task in self._busy.values():
            task.cancel()

    async def _let_go(self) -> None:
        self._stop()
        with contextlib.suppress(PromptDockError, TimeoutError):
            async with asyncio.timeout(1):
                if self._epoch:
                    await self._lease.drop()

    # -- one receiver ----------------------------------------------------------------------------------------

    async def _serve(self, one: Subscription) -> None:
        """Send what is due to one receiver; whatever goes wrong is written at its row."""
        again = time.monotonic() + _LOOK
        try:
            where = {"subscription_id": one.id, "state": "pending"}
            rows = await self._store.select(
                Delivery, where, order=[("position", "asc"), ("created_at", "asc")], limit=_PAGE
            )
            first = list({row.subject or str(row.id): row for row in reversed(rows)}.values())
            due = [row for row in reversed(first) if row.due_at <= now()]
            if due:
                await (self._pushed(one, rows) if one.transport == "push" else self._posted(one, due))
            else:
                again = float("inf")
            if rows and not due:
                wait = min(row.due_at for row in first) - now()
                again = time.monotonic() + max(0.05, wait.total_seconds())
            elif due:
                again = 0.0
        except PromptDockError as error:
            log.get().warning("A receiver could not be told", subscription=one.slug, why=str(error))
        except Exception:
            log.get().exception("Telling a receiver failed", subscription=one.slug)
        self._due[one.id] = min(self._due.get(one.id, again), again)

    async def _posted(self, one: Subscription, due: list[Delivery]) -> None:
        gate = asyncio.Semaphore(_SIDE_BY_SIDE)

        async def post(row: Delivery) -> None:
            async with gate:
                if not await self._stands(row):
                    return
                try:
                    address = self._seal.open(one.address)
                except ToolError as error:
                    await self._note(one, [row], SendOutcome(False, error=f"{error.what}: {error.fix}"))
                    return
                key, at = self._seal.signing_key(one.id), int(time.time())
                sent = await self._senders.webhook(
                    address, key, f"msg_{row.id.hex}", at, row.body, self._reach
                )
                failpoints.point("told outside", str(row.id))
                await self._note(one, [row], sent)

        await asyncio.gather(*(post(row) for row in due))

    async def _pushed(self, one: Subscription, rows: list[Delivery]) -> None:
        """One notification for all that is due and not dealt with yet, and at most one a minute."""
        since = one.delivered_at
        tests = [row for row in rows if row.event == events.TEST]
        if not tests and since is not None and now() - since < _GROUPED:
            later = since + _GROUPED
            for row in rows:
                if row.due_at < later:
                    await self._store.update(Delivery, {"due_at": later}, {"id": row.id})
            return
        open_still = tests or [row for row in rows if row.due_at <= now() and await self._stands(row)]
        if not open_still:
            return
        try:
            address = self._seal.open(one.address)
        except ToolError as error:
            await self._note(one, open_still, SendOutcome(False, error=f"{error.what}: {error.fix}"))
            return
        await self._note(
            one, open_still, await self._senders.push(address, [row.body for row in open_still], self._reach)
        )

    async def _stands(self, row: Delivery) -> bool:
        """Whether it is to be told still; what is not is closed, and what is not known yet waits."""
        if row.event.startswith("turn."):
            return await self._ended(row)
        if row.event in events.ATTENTION and await self._dealt_with(row):
            await self._close(row, "quiet", "it was dealt with before")
            return False
        return True

    async def _ended(self, row: Delivery) -> bool:
        """Whether a closing output ended a turn of words, which the turn's own row says."""
        data = row.body["data"]
        turn = str(data.get("id", "")).rpartition(".")[0]
        agent = str(data.get("agent") or CHATTER)
        known = [derived("turn", name, turn) for name in {agent, CHATTER}]
        if await self._store.select(TurnRow, {"id": ("in", known)}, limit=1):
            return True
        if now() - row.created_at > _UNKNOWN:
            await self._close(row, "quiet", "it ended no turn")
        else:
            await self._store.update(Delivery, {"due_at": now() + timedelta(seconds=2)}, {"id": row.id})
        return False

    async def _dealt_with(self, row: Delivery) -> bool:
        """Whether nobody need do anything about it any more. A webhook is told all the same: it keeps accounts."""
        subscription = next((one for one in self._subscriptions if one.id == row.subscription_id), None)
        if subscription is None or subscription.transport != "push":
            return False
        data = row.body["data"]
        if "task_id" in data:
            tasks = await self._store.select(Task, {"slug": data["task_id"]}, limit=1)
            return not tasks or (tasks[0].status.lower() != data.get("status")) or tasks[0].archived
        if isinstance(asked := data.get("approval"), dict):
            rows = await self._store.select(Approval, {"approval_id": str(asked.get("id"))}, limit=1)
            return bool(rows) and rows[0].state != "pending"
        where: dict[str, Any] = {
            "session_id": str(data.get("session_id")),
            "created_at": ("gt", _moment(row)),
        }
        return bool(await self._store.select(TurnRow, where, limit=1))

    # -- what became of it -----------------------------------------------------------------------------------

    async def _note(self, one: Subscription, rows: Sequence[Delivery], sent: SendOutcome) -> None:
        at = now()
        for row in rows:
            if sent.ok:
                await self._close(row, "delivered", "", sent.status, tries=row.tries + 1)
                continue
            later = (
                None
                if row.event == events.TEST
                else pace.again(row.tries + 1, row.created_at, at, sent.after)
            )
            if later is None:
                await self._close(row, "dead", sent.error, sent.status, tries=row.tries + 1)
                continue
            changes = {"tries": row.tries + 1, "due_at": later, "status": sent.status, "error": sent.error}
            await self._store.update(Delivery, changes, {"id": row.id, "state": "pending"})
        await self._told(one, sent, at)

    async def _told(self, one: Subscription, sent: SendOutcome, at: datetime) -> None:
        current = next((row for row in self._subscriptions if row.id == one.id), one)
        fine = not current.failing_since and current.delivered_at and at - current.delivered_at < _NOTED
        if sent.ok and fine and one.transport == "webhook":
            return
        changes: dict[str, Any] = {"delivered_at": at, "failing_since": None, "error": ""}
        if not sent.ok:
            changes = {"failing_since": current.failing_since or at, "error": sent.error}
            changes |= {"enabled": False} if sent.gone else {}
            if not current.failing_since:
                log.get().warning("A receiver takes nothing", subscription=one.slug, why=sent.error)
        changed = await self._store.update(Subscription, changes, {"id": one.id})
        self._subscriptions = [next((r for r in changed if r.id == s.id), s) for s in self._subscriptions]

    async def _close(
        self, row: Delivery, state: str, error: str, status: int | None = None, **more: Any
    ) -> None:
        changes = {"state": state, "error": error, "status": status, "ended_at": now(), **more}
        await self._store.update(Delivery, changes, {"id": row.id, "state": "pending"})


def _moment(row: Delivery) -> datetime:
    return datetime.fromtimestamp(row.position / 1000 + 0.5, now().tzinfo)
