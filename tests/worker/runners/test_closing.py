"""What an agent answers another with, and where its answer goes."""

from __future__ import annotations

import json

import pytest

from shared.bus.keys import CHATTER_OUTPUT
from shared.bus.messages import AgentMessage
from shared.bus.reading import MAX_BYTES
from shared.redaction import hide
from shared.store.records import TurnRow
from shared.store.sqlite import SqliteStore
from shared.turns.outbox import Outbox
from shared.worker.permissions.service import ApprovalService
from shared.worker.runners import closing
from shared.worker.runners.closing import Replies, envelope
from tests.worker.ground import connected, heard, request, turn_of


def test_an_answer_holds_none_of_the_clusters_secrets() -> None:
    hide(secret := "sk-ant-of-the-answer-0123456789")
    question = {"id": "q", "from": "chatter", "to": "backend", "type": "task", "payload": {"question": "?"}}
    asked = AgentMessage.model_validate(question)
    sent = json.loads(envelope("backend", asked, "response", {"summary": f"used {secret}"}, "agent:chatter"))
    assert sent["payload"] == {"request_id": "q", "summary": "used [hidden]"}


def test_an_answer_that_is_too_large_says_so_and_keeps_its_small_fields() -> None:
    data = envelope("backend", request(), "response", {"answer": "x" * MAX_BYTES, "status": "complete"}, "c")
    assert len(data) < MAX_BYTES
    payload = json.loads(data)["payload"]
    assert payload["status"] == "complete" and "too large" in payload["warning"] and "answer" not in payload


async def test_an_answer_reaches_the_turn_that_waits_for_it() -> None:
    connection = connected()
    asker = await turn_of(connection, "chatter", "m1")
    await asker.step(calls=["m1.1"])
    await Replies(connection, "backend").deliver(request(id="m1.1"), "response", {"answer": "42"})
    await asker.step()
    (answer,) = asker.joined()
    assert json.loads(answer.data)["payload"] == {"request_id": "m1.1", "answer": "42"}
    assert await heard(connection, "backend") == [], "it is noted with the asker's journal"


async def test_the_same_answer_sent_again_joins_once() -> None:
    connection = connected()
    asker = await turn_of(connection, "chatter", "m1")
    await asker.step(calls=["m1.1"])
    for _ in range(2):
        await Replies(connection, "backend").deliver(request(id="m1.1"), "response", {"answer": "42"})
    await asker.step()
    assert len(asker.joined()) == 1


@pytest.mark.parametrize(
    ("named", "where"),
    [
        (None, "agent:chatter"),
        ("replies:mine", "replies:mine"),
        (CHATTER_OUTPUT, "agent:chatter"),
        ("agent:planner", "agent:chatter"),
        ("pd:secret", "agent:chatter"),
    ],
)
async def test_a_program_is_answered_on_its_own_channel_but_on_none_that_others_trust(
    named: str | None, where: str
) -> None:
    connection = connected()
    asked = request(reply_channel=named and connection.names.channel(named))
    await Replies(connection, "backend").deliver(asked, "response", {"answer": "42"})
    (sent,) = await heard(connection, "backend")
    assert connection.names.bare(sent["via"]) == where


async def test_the_end_of_a_turn_leaves_its_row_with_why_it_failed(store: SqliteStore) -> None:
    connection = connected()
    turn = await turn_of(connection, "backend")
    approvals = ApprovalService(connection, store, frozenset(), demo=False)
    await closing.close(approvals, "demo", "backend", turn, "error", error="no money")
    assert turn.ended
    await Outbox(connection.bus, connection.names, store, "backend", "w1").drain()
    (row,) = await store.select(TurnRow)
    assert (row.state, row.error, row.request_id) == ("error", "no money", "q1")
