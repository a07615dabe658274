"""The question of a task: kept for the person, and told again while it waits for its answer."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import cast
from unittest.mock import AsyncMock

import pytest

from shared.bus import messages
from shared.bus.event_stream import EventStream
from shared.bus.keys import Names
from shared.bus.redis import RedisBus
from shared.bus.signing import Signer
from shared.errors import ToolError
from shared.models.base import Model
from shared.store.base import Store
from shared.turns.queue import Queue, ThreadPlace
from shared.turns.records import JournalRecord, Records
from shared.turns.turn import Turn
from shared.worker.connection import Connection
from shared.worker.permissions.approver import Approver
from shared.worker.permissions.service import ApprovalService
from shared.worker.runners import question
from shared.worker.runners.chat.output import TurnOutput
from shared.worker.runners.closing import Replies
from shared.worker.runners.inputs import TurnInput
from shared.worker.runners.question import TaskQuestion
from shared.worker.runners.task_run import TaskRun
from tests.support.valkey import eventually

ASKED = {"asked": "Which color?", "options": ["red", "blue"]}


class Journal(Records):
    """What a turn notes."""

    async def step(self, *records: JournalRecord) -> None:
        self.extend(records)


def question_of(redis: RedisBus, names: Names, turn_id: str = "turn") -> TaskQuestion:
    """Backend asks Ann about the task calm-otter; her conversation is `s`."""
    connection = Connection(redis, names, Signer("x" * 64), 1000)
    journal = Journal()
    turn = SimpleNamespace(
        id=turn_id, session="work", records=journal, step=journal.step, wake_up=asyncio.Event()
    )
    turn.look = AsyncMock()
    card = {"task_id": "calm-otter", "status": "waiting"}
    task_run = SimpleNamespace(id="calm-otter", move=AsyncMock(), news=AsyncMock(), card=lambda _: card)
    who = Approver(user_id="ann", session="s")
    return TaskQuestion(connection, "backend", cast(Turn, turn), cast(TaskRun, task_run), who, demo=False)


async def kept(redis: RedisBus, names: Names) -> list[messages.Output]:
    """What the conversation is to be told again."""
    queue = Queue(redis, names, "chatter", lease_ms=1000)
    found = await redis.command("XRANGE", f"{queue.prefix}untold:s", "-", "+")
    return [messages.Output.model_validate_json(fields[1]) for _, fields in found]


async def test_a_question_that_nobody_was_shown_is_open_until_it_is_answered(
    redis: RedisBus, names: Names
) -> None:
    asking = asyncio.create_task(question_of(redis, names).ask(ASKED, minutes=1))
    await eventually(lambda: kept(redis, names))
    (output,) = await kept(redis, names)
    assert "Which color?" in output.content and output.user_id == "ann"
    assert await question.still_open(redis, names, output)
    assert await question.answer(redis, names, "calm-otter", "ann", "blue") == "Which color?"
    assert not await question.still_open(redis, names, output)
    assert await asking == "blue"


async def test_the_number_of_an_option_is_an_answer_and_the_history_keeps_the_options(
    redis: RedisBus, names: Names
) -> None:
    question_put = question_of(redis, names, "numbered")
    asking = asyncio.create_task(question_put.ask(ASKED, minutes=1))
    await eventually(lambda: kept(redis, names))
    assert "  2. blue" in (await kept(redis, names))[0].content
    with pytest.raises(ToolError, match="there are 1 to 2"):
        await question.answer(redis, names, "calm-otter", "ann", "3")
    await question.answer(redis, names, "calm-otter", "ann", "2")
    assert await asking == "blue"
    moved = cast(AsyncMock, question_put._task_run.move).await_args_list[0]
    assert moved.kwargs["detail"] == {"asked": "Which color?", "options": ["red", "blue"], "context": ""}


async def test_a_question_that_nobody_answered_in_time_is_closed(redis: RedisBus, names: Names) -> None:
    assert await question_of(redis, names).ask(ASKED, minutes=0) == ""
    (output,) = await kept(redis, names)
    assert not await question.still_open(redis, names, output)
    with pytest.raises(ToolError, match="has asked nothing"):
        await question.answer(redis, names, "calm-otter", "ann", "blue")


async def test_the_same_message_may_answer_twice_and_another_may_not(redis: RedisBus, names: Names) -> None:
    asking = asyncio.create_task(question_of(redis, names, "twice").ask(ASKED, minutes=1))
    await eventually(lambda: kept(redis, names))
    for _ in range(2):
        await question.answer(redis, names, "calm-otter", "ann", "1", "m-1")
    for message in ("m-2", ""):
        with pytest.raises(ToolError, match="was answered already"):
            await question.answer(redis, names, "calm-otter", "ann", "2", message)
    assert await asking == "red"


async def test_what_nobody_signed_answers_no_question() -> None:
    words = {"user_id": "ann", "content": "2", "id": "m"}
    said = messages.human({**words, "unsigned": True})
    assert isinstance(said, messages.Said)
    nowhere, none = cast(Connection, None), cast(Store, None)  # it is not even looked for
    assert await question.waiting(nowhere, none, said) == []


def test_words_answer_what_they_reply_to_else_the_only_question_here_that_has_such_an_option() -> None:
    def meant(content: str, *open_: question.Waiting, reply: str | None = None) -> str | None:
        said = messages.human({"user_id": "ann", "content": content, "id": "m", "in_reply_to": reply})
        assert isinstance(said, messages.Said)
        found = question.meant(list(open_), "s", said)
        return found.task if found else None

    here = question.Waiting("calm-otter", "t.q1", ["red", "blue"], "s")
    also = question.Waiting("wild-lynx", "u.q1", ["red", "green"], "s")
    elsewhere = question.Waiting("tidy-ivy", "v.q1", ["red"], "other")
    assert meant("2", here, elsewhere) == meant(" Blue ", here) == "calm-otter"
    assert meant("3", here) is meant("teal", here) is meant("1", here, also) is meant("1", elsewhere) is None
    assert meant("teal", here, also, reply="u.q1") == meant("x", also, reply="m9.away.u.q1") == "wild-lynx"
    assert meant("2", here, reply="somewhat.else") is None


async def test_only_a_question_that_is_open_is_told_again(redis: RedisBus, names: Names) -> None:
    await question_of(redis, names).ask(ASKED, minutes=0)
    asking = asyncio.create_task(
        question_of(redis, names, "later").ask(ASKED | {"asked": "How many?"}, minutes=1)
    )
    queue = Queue(redis, names, "chatter", lease_ms=1000)

    async def both() -> bool:
        return len(await kept(redis, names)) == 2

    await eventually(both)
    untold = await redis.command("XRANGE", f"{queue.prefix}untold:s", "-", "+")
    turn = SimpleNamespace(
        id="m",
        session="s",
        thread=ThreadPlace(),
        given=[],
        records=Records(),
        untold=[(id.decode(), fields[1]) for id, fields in untold],
    )
    turn.send = AsyncMock()
    connection = Connection(redis, names, Signer("x" * 64), 1000)
    model = cast(Model, SimpleNamespace(demo=False))
    given = SimpleNamespace(said=[], stops=[], commands=[], answers=[], requests=[], rests=[])
    live = cast(EventStream, None)
    replies, approvals = Replies(connection, "chatter"), cast(ApprovalService, None)
    output = TurnOutput(replies, approvals, model, cast(Turn, turn), cast(TurnInput, given), live)
    output.who = {"user_id": "ann"}
    await output.tell_missed()
    (told,) = [json.loads(call.args[1]) for call in turn.send.await_args_list]
    assert told["content"].startswith("While you were away: Backend asks about task calm-otter: How many?")
    assert len(await kept(redis, names)) == 1, "the other is not told later either"
    await question.answer(redis, names, "calm-otter", "ann", "two")
    assert await asking == "two"
