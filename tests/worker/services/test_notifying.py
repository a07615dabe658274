"""Who is to be told outside is told: of everything at least once, in order, each apart from all others."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.bus.messages import Output
from shared.guard.sandbox.addresses import Reach
from shared.notify import events
from shared.notify.sealing import Seal
from shared.notify.webhook import SendOutcome
from shared.store.records import (
    Approval,
    Delivery,
    Setting,
    Subscription,
    Task,
    TaskEvent,
    TurnRow,
    now,
    project_key,
)
from shared.store.row import derived
from shared.store.sqlite import SqliteStore
from shared.turns.lease import Lease
from shared.worker.changes import Changes
from shared.worker.connection import Connection
from shared.worker.services import notices, notifying
from shared.worker.services.notices import NAME
from shared.worker.services.notifying import NotificationService, Senders
from tests.worker.ground import connected

OK = SendOutcome(True, 200)


@dataclass
class Line:
    """What was sent, and how receivers answer, by their address."""

    sent: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    pushed: list[list[dict[str, Any]]] = field(default_factory=list)
    answers: dict[str, SendOutcome] = field(default_factory=dict)
    holds: dict[str, asyncio.Event] = field(default_factory=dict)

    async def webhook(
        self, address: str, key: bytes, id: str, at: int, body: dict[str, Any], reach: Reach
    ) -> SendOutcome:
        if address in self.holds:
            await self.holds[address].wait()
        self.sent.append((address, id, body))
        return self.answers.get(address, OK)

    async def push(self, address: str, bodies: Sequence[dict[str, Any]], reach: Reach) -> SendOutcome:
        self.pushed.append(list(bodies))
        return self.answers.get(address, OK)


class Ground:
    """A cluster whose Chatter says what a test wants, and services that tell of it."""

    def __init__(self, store: SqliteStore, connection: Connection) -> None:
        self.store, self.connection, self.line = store, connection, Line()
        self.seal = Seal(connection.signer)
        self.stream = connection.names.keys("chatter").outputs

    def service(self, holder: str = "a") -> NotificationService:
        bus, names = self.connection.bus, self.connection.names
        return NotificationService(
            self.connection,
            self.store,
            Lease(bus, names, NAME, holder, 60_000),
            Changes(bus, names),
            "http://dock.example",
            frozenset(),
            Senders(self.line.webhook, self.line.push),
        )

    async def subscribe(self, slug: str = "ci", **more: Any) -> Subscription:
        given: dict[str, Any] = {
            "transport": "webhook",
            "shown": "x",
            "user_id": "ada",
            "events": list(events.EVENTS),
        }
        address = self.seal.close(f"https://{slug}.example")
        row = Subscription(slug=slug, address=address, **{**given, **more})
        await self.store.insert(row)
        return row

    async def said(self, id: str, status: Any = "awaiting_input", session: str = "talk", **more: Any) -> None:
        given = {"user_id": "ada", "content": id, "status": status, "id": id, "session_id": session}
        output = Output.model_validate({**given, "timestamp": now().isoformat(), **more})
        await self.connection.bus.command("XADD", self.stream, "*", "data", output.model_dump_json())

    async def told(self, service: NotificationService) -> list[str]:
        """What the receivers have heard after a look: the words of each."""
        await service._read()
        await service.look()
        await service.idle()
        return [
            str(body["data"].get("content", body["data"].get("task_id"))) for _, _, body in self.line.sent
        ]

    async def due(self) -> None:
        """The time of all that waits has come."""
        await self.store.update(Delivery, {"due_at": now()}, {"state": "pending"})


@pytest.fixture
async def ground(store: SqliteStore) -> Ground:
    return Ground(store, connected())


async def test_what_is_said_is_told_in_order_and_once(ground: Ground) -> None:
    await ground.subscribe()
    service = ground.service()
    for number in range(5):
        await ground.said(f"q{number}")
    for _ in range(6):  # of one conversation one after the other
        told = await ground.told(service)
    assert told == ["q0", "q1", "q2", "q3", "q4"]
    assert len({id for _, id, _ in ground.line.sent}) == 5
    assert [row.state for row in await ground.store.select(Delivery)] == ["delivered"] * 5
    [one] = await ground.store.select(Subscription)
    assert one.delivered_at and not one.failing_since


async def test_what_is_said_in_the_millisecond_of_the_subscription_is_told(ground: Ground) -> None:
    await ground.said("q0")
    [(id, _)] = await ground.connection.bus.command("XRANGE", ground.stream, "-", "+")
    ms = int(id.partition(b"-")[0] if isinstance(id, bytes) else id.partition("-")[0])
    await ground.subscribe(created_at=datetime.fromtimestamp(ms / 1000 + 0.0005, UTC))
    assert await ground.told(ground.service()) == ["q0"]


async def test_what_the_one_before_read_is_read_on_and_nothing_is_told_twice(ground: Ground) -> None:
    await ground.subscribe()
    first = ground.service("a")
    await ground.said("q0")
    await ground.told(first)
    await ground.said("q1")
    second = ground.service("b")  # the first was killed
    assert await ground.told(second) == ["q0", "q1"]
    # killed before it noted how far it read: the same deliveries are no new ones
    await ground.store.delete(Setting, {"scope": "tails"})
    assert await ground.told(ground.service("c")) == ["q0", "q1"]


async def test_what_was_written_down_and_not_sent_is_sent_by_the_next(ground: Ground) -> None:
    await ground.subscribe()
    first = ground.service("a")
    await first._read()
    await ground.said("q0")
    first._begin = lambda one: None  # type: ignore[method-assign]  # killed before it sent
    await first.look()
    assert ground.line.sent == [] and await ground.store.count(Delivery, {"state": "pending"}) == 1
    assert await ground.told(ground.service("b")) == ["q0"]


async def test_a_receiver_that_fails_is_tried_again_under_the_same_id_and_then_given_up(
    ground: Ground,
) -> None:
    await ground.subscribe()
    service = ground.service()
    ground.line.answers["https://ci.example"] = SendOutcome(False, 500, "it answered 500")
    await ground.said("q0")
    await ground.said("q1")
    assert await ground.told(service) == ["q0"]
    assert await ground.told(service) == ["q0"]  # not yet, and q1 waits behind it
    [row, _] = await ground.store.select(Delivery, order=[("position", "asc"), ("created_at", "asc")])
    assert (row.tries, row.status, row.error) == (1, 500, "it answered 500") and row.due_at > now()
    await ground.due()
    service._due = {}
    assert await ground.told(service) == ["q0", "q0"]
    assert len({id for _, id, _ in ground.line.sent}) == 1
    [one] = await ground.store.select(Subscription)
    assert one.failing_since and one.error == "it answered 500"
    await ground.store.update(
        Delivery, {"created_at": now() - timedelta(days=4), "due_at": now()}, {"id": row.id}
    )
    service._due = {}
    await ground.told(service)
    service._due = {}
    assert await ground.told(service) == ["q0", "q0", "q0", "q1"]  # what was given up holds up nothing
    assert [
        r.state
        for r in await ground.store.select(Delivery, order=[("position", "asc"), ("created_at", "asc")])
    ] == [
        "dead",
        "pending",
    ]


async def test_who_never_answers_holds_nobody_up(ground: Ground) -> None:
    await ground.subscribe("slow")
    await ground.subscribe("quick")
    ground.line.holds["https://slow.example"] = asyncio.Event()
    service = ground.service()
    await service._read()
    for number in range(3):
        await ground.said(f"q{number}")
        await service.look()
        async with asyncio.timeout(5):
            while len(ground.line.sent) <= number:
                await asyncio.sleep(0.01)
                await service.look()
    assert [address for address, _, _ in ground.line.sent] == ["https://quick.example"] * 3
    ground.line.holds["https://slow.example"].set()
    await service.idle()


async def test_conversations_do_not_wait_for_each_other(ground: Ground) -> None:
    await ground.subscribe()
    service = ground.service()
    for session in ("one", "two", "three"):
        await ground.said(f"q-{session}", session=session)
    assert sorted(await ground.told(service)) == ["q-one", "q-three", "q-two"]  # by one look


async def test_what_tasks_go_through_is_told(ground: Ground) -> None:
    await ground.subscribe(events=["task.completed"])
    service = ground.service()
    await ground.told(service)  # begins to read here
    task = Task(
        slug="calm-otter", project_id=project_key("default"), title="Paint", user_id="ada", status="COMPLETED"
    )
    await ground.store.upsert([task])
    for event, to in (("started", "IN_PROGRESS"), ("passed", "COMPLETED")):
        await ground.store.insert(TaskEvent(task_id=task.id, event=event, to_status=to))
    service._watch.all()
    assert await ground.told(service) == ["calm-otter"]
    assert ground.line.sent[0][2]["url"] == "http://dock.example/tasks/calm-otter"


async def test_that_a_turn_ended_is_told_once_its_row_says_so(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notices, "SETTLE", timedelta(0))
    await ground.subscribe()
    service = ground.service()
    await ground.said("t1.end", "complete", "talk")
    await ground.said("t2.end", "complete", "other")  # closes a stop, say: no turn has it
    assert await ground.told(service) == []
    row = TurnRow(id=derived("turn", "chatter", "t1"), turn_id="t1", agent="chatter", state="complete")
    await ground.store.insert(row)
    await ground.due()
    service._due = {}
    assert await ground.told(service) == ["t1.end"]
    monkeypatch.setattr(notifying, "_UNKNOWN", timedelta(0))
    await ground.due()
    service._due = {}
    assert await ground.told(service) == ["t1.end"]
    assert sorted(r.state for r in await ground.store.select(Delivery)) == ["delivered", "quiet"]


async def test_a_person_is_notified_once_of_all_that_still_waits(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notices, "GRACE", timedelta(0))
    await ground.subscribe("phone", transport="push")
    service = ground.service()
    for id in ("a1", "a2", "a3"):
        await ground.said(id, "awaiting_approval", approval={"id": id}, session=id)
    answered = Approval(approval_id="a2", agent="backend", action="x", state="allow_once")
    await ground.store.insert(answered)
    await ground.told(service)
    assert [[body["data"]["content"] for body in one] for one in ground.line.pushed] == [["a1", "a3"]]
    assert ground.line.sent == []
    # what comes in the minute after it waits, and is one again
    for id in ("a4", "a5"):
        await ground.said(id, "awaiting_approval", approval={"id": id}, session=id)
    await ground.told(service)
    assert len(ground.line.pushed) == 1
    await ground.due()
    await ground.store.update(Subscription, {"delivered_at": now() - timedelta(minutes=2)}, {"slug": "phone"})
    service._watch.all()
    await ground.told(service)
    assert [body["data"]["content"] for body in ground.line.pushed[1]] == ["a4", "a5"]


async def test_what_was_answered_in_time_is_not_notified(ground: Ground) -> None:
    await ground.subscribe("phone", transport="push")
    service = ground.service()
    await ground.said("a1", "awaiting_approval", approval={"id": "a1"})
    await ground.told(service)
    assert ground.line.pushed == []  # they may just be looking
    await ground.store.insert(Approval(approval_id="a1", agent="backend", action="x", state="deny"))
    await ground.due()
    service._due = {}
    await ground.told(service)
    assert ground.line.pushed == [] and [r.state for r in await ground.store.select(Delivery)] == ["quiet"]


async def test_who_wants_nothing_more_is_told_nothing_more(ground: Ground) -> None:
    await ground.subscribe()
    service = ground.service()
    ground.line.answers["https://ci.example"] = SendOutcome(False, 410, "gone", gone=True)
    await ground.said("q0")
    await ground.told(service)
    await ground.said("q1")
    await ground.due()
    service._watch.all()
    assert await ground.told(service) == ["q0"]
    [one] = await ground.store.select(Subscription)
    assert not one.enabled and await ground.store.count(Delivery) == 1


async def test_no_more_waits_for_a_receiver_than_there_is_room_for(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notices, "MOST", 3)
    await ground.subscribe(failing_since=now(), error="it answered 500")
    service = ground.service()
    ground.line.answers["https://ci.example"] = SendOutcome(False, 500, "it answered 500")
    for number in range(3):
        await ground.said(f"q{number}")
    await ground.told(service)
    await ground.said("q3")
    await ground.told(service)
    assert await ground.store.count(Delivery) == 3
    [one] = await ground.store.select(Subscription)
    assert "lost" in one.error


async def test_one_of_several_workers_sends(ground: Ground) -> None:
    await ground.subscribe()
    first, second = ground.service("a"), ground.service("b")
    await first._turn()
    await ground.said("q0")
    waiting = asyncio.create_task(second._turn())
    await first._turn()
    await first.idle()
    waiting.cancel()
    assert [id for _, id, _ in ground.line.sent] and len(ground.line.sent) == 1 and second._epoch == 0


async def test_an_address_of_another_secret_is_told_to_be_added_anew(ground: Ground) -> None:
    one = await ground.subscribe()
    await ground.store.update(Subscription, {"address": "gAAAAA"}, {"id": one.id})
    await ground.said("q0")
    assert await ground.told(ground.service()) == []
    assert "add it again" in (await ground.store.select(Subscription))[0].error
