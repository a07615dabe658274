"""A question to a person about one call: put once, answered once, by who may."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict, replace
from typing import Any

import pytest

from shared.bus import messages
from shared.bus.keys import CHATTER, CHATTER_OUTPUT
from shared.guard.permissions.requests import ApprovalRequest, fingerprint
from shared.store.records import Approval, Setting
from shared.store.sqlite import SqliteStore
from shared.turns.outbox import Outbox
from shared.turns.records import AskRecord
from shared.worker.connection import Connection
from shared.worker.permissions.service import GONE, ApprovalService
from tests.worker.ground import connected, turn_of


@pytest.fixture
def connection() -> Connection:
    return connected()


@pytest.fixture
def approvals(connection: Connection, store: SqliteStore) -> ApprovalService:
    return ApprovalService(connection, store, frozenset({"lead"}), demo=False)


async def put(approvals: ApprovalService, **more: Any) -> ApprovalRequest:
    """Ada is asked whether Backend may push."""
    now, arguments = await approvals.now(), {"branch": "main"}
    card = ApprovalRequest(
        *("a1b2", "t.1.1", "backend", "talk", "ada", "q1", "s", "git_push", "tool:git_push:main"),
        *(arguments, fingerprint(arguments), "why", "tool:git_push:main", "default", now, now + 60_000),
    )
    card = replace(card, **more)
    await approvals.put(card)
    return card


def answer(decision: str, **more: Any) -> messages.ApprovalMessage:
    fields = {"type": "approval", "id": f"m-{decision}", "user_id": "ada", "approval_id": "a1b2"}
    return messages.ApprovalMessage.model_validate({**fields, "decision": decision, **more})


def said(content: str, **more: Any) -> messages.Said:
    message = messages.human({"id": "m", "user_id": "ada", "session_id": "talk", "content": content, **more})
    assert isinstance(message, messages.Said)
    return message


async def states(connection: Connection, store: SqliteStore) -> list[tuple[str, str | None]]:
    """How the Store lists the questions."""
    await Outbox(connection.bus, connection.names, store, CHATTER, "w1").drain()
    return [(row.state, row.decided_by) for row in await store.select(Approval)]


async def test_a_question_that_is_put_again_after_a_crash_is_shown_once(
    connection: Connection, store: SqliteStore, approvals: ApprovalService
) -> None:
    shown: asyncio.Queue[bytes] = asyncio.Queue()
    ready = asyncio.Event()

    async def listening() -> None:
        ready.set()

    channel = connection.names.channel(CHATTER_OUTPUT)
    listener = connection.bus.listener([channel], lambda _, data: shown.put_nowait(data), listening, channel)
    listens = asyncio.create_task(listener.run())
    try:
        async with asyncio.timeout(5):
            await ready.wait()
            card = await put(approvals)
            await approvals.put(card)
            await connection.bus.publish(channel, b"last")
            output = json.loads(await shown.get())
            assert (output["status"], output["approval"]["id"]) == ("awaiting_approval", "a1b2")
            assert await shown.get() == b"last"
    finally:
        listens.cancel()
        await asyncio.gather(listens, return_exceptions=True)
    assert await states(connection, store) == [("pending", None)]


async def test_an_answer_is_kept_and_wakes_the_turn_that_waits(
    connection: Connection, store: SqliteStore, approvals: ApprovalService
) -> None:
    await put(approvals)
    settled = await approvals.settle(answer("allow_once"))
    assert settled.ok and "git_push" in settled.text
    decided = await approvals.approvals.decision("a1b2")
    assert decided is not None and (decided.how, decided.by) == ("allow_once", "ada")
    assert await states(connection, store) == [("allow_once", "ada")]


@pytest.mark.parametrize(("queue", "woken"), [("", "backend"), ("chatter", "chatter")])
async def test_the_workers_are_woken_in_whose_queue_the_turn_is_whoever_speaks_in_it(
    connection: Connection, approvals: ApprovalService, queue: str, woken: str
) -> None:
    heard: asyncio.Queue[str] = asyncio.Queue()
    ready = asyncio.Event()

    async def listening() -> None:
        ready.set()

    names = {agent: connection.queue(agent).wake_up for agent in ("backend", "chatter")}
    listener = connection.bus.listener(
        list(names.values()), lambda channel, _: heard.put_nowait(channel), listening, names[woken]
    )
    listens = asyncio.create_task(listener.run())
    try:
        async with asyncio.timeout(5):
            await ready.wait()
            await put(approvals, queue=queue)
            await approvals.settle(answer("allow_once"))
            assert await heard.get() == names[woken]
    finally:
        listens.cancel()
        await asyncio.gather(listens, return_exceptions=True)


async def test_the_first_answer_counts_and_a_later_one_is_told_so(approvals: ApprovalService) -> None:
    await put(approvals)
    await approvals.settle(answer("deny"))
    later = await approvals.settle(answer("allow_once"))
    assert not later.ok and "Nothing was changed" in later.text
    decided = await approvals.approvals.decision("a1b2")
    assert decided is not None and decided.how == "deny"


async def test_an_answer_to_no_question_says_that_there_is_none(approvals: ApprovalService) -> None:
    assert (await approvals.settle(answer("allow_once"))).text == GONE


async def test_an_answer_for_other_arguments_than_were_shown_counts_for_nothing(
    approvals: ApprovalService,
) -> None:
    await put(approvals)
    settled = await approvals.settle(answer("allow_once", arguments_hash=fingerprint({"branch": "prod"})))
    assert not settled.ok and await approvals.approvals.decision("a1b2") is None


@pytest.mark.parametrize(
    ("who", "ok"), [({"user_id": "bob"}, False), ({"user_id": "bob", "roles": ["lead"]}, True)]
)
async def test_somebody_else_answers_only_as_an_approver(
    approvals: ApprovalService, who: dict[str, Any], ok: bool
) -> None:
    await put(approvals)
    assert (await approvals.settle(answer("allow_once", **who))).ok is ok


async def test_always_leaves_a_standing_permission_of_the_one_who_gave_it(
    store: SqliteStore, approvals: ApprovalService
) -> None:
    await put(approvals)
    settled = await approvals.settle(answer("always"))
    assert settled.ok and "holds for ada alone" in settled.text
    (grant,) = await store.select(Setting)
    assert grant.value["by"] == "ada"


async def test_a_plain_yes_answers_the_only_open_question_and_none_of_several(
    approvals: ApprovalService,
) -> None:
    await put(approvals)
    await put(approvals, id="c3d4", call="t.2.1")
    several = await approvals.word(said("yes"))
    assert not several.ok and "Several" in several.text and "a1b2" in several.text
    assert (await approvals.word(said("yes c3d4"))).ok
    assert (await approvals.word(said("no"))).ok
    first, second = [await approvals.approvals.decision(id) for id in ("a1b2", "c3d4")]
    assert first is not None and second is not None
    assert (first.how, second.how) == ("deny", "allow_once")


async def test_a_turn_that_ends_withdraws_what_it_still_asks(
    connection: Connection, store: SqliteStore, approvals: ApprovalService
) -> None:
    turn = await turn_of(connection, "backend")
    card = await put(approvals)
    turn.keep(AskRecord(at=card.at, call=card.call, card=asdict(card)))
    await approvals.withdraw(turn)
    assert [decided.how for decided in turn.records.decisions()] == ["withdrawn"]
    assert not (await approvals.settle(answer("allow_once"))).ok
    assert await states(connection, store) == [("withdrawn", None)]
