"""What a worker does with each message that it hears: which turn it wakes, stops or asks to look."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Coroutine
from typing import Any, cast

import pytest

from shared.bus.keys import HUMAN_INPUT
from shared.profiles.profile import Profile
from shared.turns.signatures import Signatures
from shared.turns.turn import Turn
from shared.worker.dispatch import Dispatcher
from shared.worker.pool import Pool
from shared.worker.runners.closing import Replies
from tests.worker.ground import connected, heard, turn_of


class Runner:
    """Runs until it is stopped, and remembers what it was told."""

    deadline = 0

    def __init__(self) -> None:
        self.told, self.given_up = list[tuple[str, str]](), list[str]()
        self.reasons: list[str] = []

    async def run(self) -> None:
        await asyncio.Event().wait()

    async def progress(self, request_id: str, text: str) -> None:
        self.told.append((request_id, text))

    def stop_request(self, request_id: str, reason: str = "") -> None:
        self.given_up.append(request_id)
        self.reasons.append(reason)

    async def stopped(self) -> None: ...
    async def failed(self, error: Exception, dead: str = "") -> None: ...


class Held:
    """What a pool says of a turn that it runs."""

    def __init__(self, turn: Turn, task: asyncio.Task[None], runner: Runner) -> None:
        self.turn, self.task, self.runner = turn, task, runner


class Running:
    """A pool of turns that were put there by hand."""

    def __init__(self) -> None:
        self.turns: dict[str, Held] = {}
        self.stopped: list[str] = []

    def __iter__(self) -> Any:
        return iter(self.turns.values())

    def __len__(self) -> int:
        return len(self.turns)

    def of(self, session: str) -> Held | None:
        return self.turns.get(session)

    def stop(self, session: str) -> None:
        self.stopped.append(session)
        if held := self.of(session):
            held.task.cancel()


class Ground:
    """A dispatcher, and the turns of its worker."""

    def __init__(self, turns: int = 8) -> None:
        self.connection, self.pool = connected(), Running()
        self.stale, self.shutdowns, self.met = asyncio.Event(), list[int](), list[tuple[str, bool]]()
        self.hurried = list[int]()
        self.signer = self.connection.signer
        self.began = int(time.time() * 1000)
        self._spawned: list[asyncio.Task[None]] = []
        self.dispatcher = Dispatcher(
            Replies(self.connection, "chatter"),
            Signatures(self.connection.names, self.signer),
            frozenset({"lead"}),
            self.stale,
            Profile(name="chatter", turns=turns),
            cast(Pool, self.pool),
            self._spawn,
            stop=lambda: self.shutdowns.append(1),
            hurry=lambda: self.hurried.append(1),
            met=lambda cluster, asks: self.met.append((cluster, asks)),
        )

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self._spawned.append(asyncio.create_task(work))

    async def runs(self, id: str, session: str) -> Held:
        """A turn of this session that is under way."""
        task = asyncio.create_task(asyncio.Event().wait())
        held = Held(await turn_of(self.connection, "chatter", id, session), cast(Any, task), Runner())
        self.pool.turns[session] = held
        self._spawned.append(cast(Any, task))
        return held

    async def hears(self, channel: str, signed: Any = False, at: Any = 1000, **content: Any) -> None:
        """A message comes, signed `at` ms after the worker began, and what it sets off is over."""
        name = self.connection.names.channel(channel) if channel else ""
        if signed:
            content["sig"] = self.signer.sign(name, content, self.began + at)
        self.dispatcher.heard(name, content)
        done = [task for task in self._spawned if task.get_coro().__qualname__ != "Event.wait"]  # type: ignore[union-attr]
        await asyncio.gather(*done)

    async def end(self) -> None:
        for task in self._spawned:
            task.cancel()
        await asyncio.gather(*self._spawned, return_exceptions=True)


@pytest.fixture
async def ground() -> Any:
    made = Ground()
    yield made
    await made.end()


async def test_after_a_gap_every_turn_looks_and_the_agent_is_read_anew(ground: Ground) -> None:
    one, two = await ground.runs("m1", "s"), await ground.runs("m2", "t")
    await ground.hears("")
    assert one.turn.wake_up.is_set() and two.turn.wake_up.is_set() and ground.stale.is_set()


async def test_when_rows_of_profiles_or_settings_changed_the_agent_is_read_anew_and_else_not(
    ground: Ground,
) -> None:
    board = ground.connection.names.board
    ground.dispatcher.heard(board, {"data": "tasks agents"})
    assert not ground.stale.is_set()
    ground.dispatcher.heard(board, {"data": "profiles tasks"})
    assert ground.stale.is_set()


async def test_who_looks_for_lost_mcp_servers_has_them_tried_again(ground: Ground) -> None:
    ground.dispatcher.heard(ground.connection.names.board, {"data": "mcp"})
    assert ground.hurried == [1] and not ground.stale.is_set()


async def test_an_answer_wakes_the_turn_that_asked_and_no_other(ground: Ground) -> None:
    asker, other = await ground.runs("m1", "s"), await ground.runs("m2", "t")
    await ground.hears("agent:chatter", type="response", payload={"request_id": "m1.2.1"})
    assert asker.turn.wake_up.is_set() and not other.turn.wake_up.is_set()


async def test_an_answer_for_another_replica_s_turn_is_rung_on_to_it(ground: Ground) -> None:
    rung: asyncio.Queue[bytes] = asyncio.Queue()
    queue, ready = ground.connection.queue("chatter"), asyncio.Event()

    async def listening() -> None:
        ready.set()

    listener = ground.connection.bus.listener(
        [queue.wake_up], lambda _, data: rung.put_nowait(data), listening, queue.wake_up
    )
    listens = asyncio.create_task(listener.run())
    try:
        async with asyncio.timeout(5):
            await ready.wait()
            await ground.hears("agent:chatter", type="response", payload={"request_id": "m9.1.1"})
            assert json.loads(await rung.get()) == {"answered": "m9.1.1"}
    finally:
        listens.cancel()
        await asyncio.gather(listens, return_exceptions=True)


async def test_progress_is_told_to_the_runner_that_asked_in_plain_short_words(ground: Ground) -> None:
    asker, other = await ground.runs("m1", "s"), await ground.runs("m2", "t")
    payload = {"request_id": "m1.2.1", "message": "half\u202e way" + "." * 1000}
    await ground.hears("agent:chatter", type="progress", payload=payload)
    ((request, text),) = asker.runner.told
    assert request == "m1.2.1" and text.startswith("half") and "\u202e" not in text and len(text) < 600
    assert other.runner.told == []


async def test_a_person_s_word_wakes_the_turn_of_its_session(ground: Ground) -> None:
    here, there = await ground.runs("m1", "s"), await ground.runs("m2", "t")
    words = {"id": "m3", "user_id": "ann", "session_id": "s", "content": "and more"}
    await ground.hears(HUMAN_INPUT, **words)
    assert here.turn.wake_up.is_set() and not there.turn.wake_up.is_set()


async def test_a_stop_ends_the_turn_of_its_session_where_it_names_that_or_none(ground: Ground) -> None:
    held = await ground.runs("m1", "s")
    stop = {"id": "m3", "user_id": "ann", "session_id": "s", "type": "stop"}
    await ground.hears(HUMAN_INPUT, **stop, turn_id="m0")
    assert not held.task.cancelling()
    await ground.hears(HUMAN_INPUT, **stop)
    assert held.task.cancelling()


async def test_what_is_said_to_be_accepted_and_is_not_signed_stops_nothing(ground: Ground) -> None:
    held = await ground.runs("m1", "s")
    stop = {"id": "m3", "user_id": "ann", "session_id": "s", "type": "stop", "via": HUMAN_INPUT}
    await ground.hears(HUMAN_INPUT, **stop)
    assert not held.task.cancelling() and held.turn.wake_up.is_set()
    await ground.hears(HUMAN_INPUT, signed=True, **stop)
    assert held.task.cancelling()


async def test_a_stop_of_one_consult_lets_the_turn_go_on(ground: Ground) -> None:
    held = await ground.runs("m1", "s")
    stop = {"id": "m3", "user_id": "ann", "session_id": "s", "type": "stop", "request_id": "m1.2.1"}
    await ground.hears(HUMAN_INPUT, **stop)
    assert held.runner.given_up == ["m1.2.1"] and not held.task.cancelling()


async def test_the_queue_s_own_wake_up_stops_gives_up_and_marks_what_changed(ground: Ground) -> None:
    held, own = (
        await ground.runs("m1", "s"),
        ground.connection.names.bare(ground.connection.queue("chatter").wake_up),
    )
    await ground.hears(own, look="s", give_up="m1.2.1", reason="ask planner")
    assert held.runner.reasons == ["ask planner"]
    assert held.turn.wake_up.is_set() and held.runner.given_up == ["m1.2.1"] and not ground.stale.is_set()
    await ground.hears(own, data="s", turn="m0")
    assert ground.pool.stopped == []
    await ground.hears(own, data="s", turn="m1", changed="chatter")
    assert ground.pool.stopped == ["s"] and ground.stale.is_set()


@pytest.mark.parametrize(
    ("turns", "told"), [(2, []), (1, ["Chatter is busy: the task is number 1 in its queue"])]
)
async def test_who_sends_a_task_to_a_busy_worker_is_told_its_place(turns: int, told: list[str]) -> None:
    ground = Ground(turns)
    try:
        await ground.runs("m1", "s")
        await ground.hears(
            "agent:chatter", **{"from": "planner"}, id="q", to="chatter", type="task", payload={}
        )
        sent = await heard(ground.connection, "chatter")
        assert [one["payload"]["message"] for one in sent if one.get("type") == "progress"] == told
    finally:
        await ground.end()


@pytest.mark.parametrize(
    ("signed", "at", "who", "stops"),
    [
        (True, 1000, {"user_id": "ann", "roles": ["lead"]}, True),
        (True, -1000, {"user_id": "ann", "roles": ["lead"]}, False),
        (True, 1000, {"user_id": "ann", "roles": ["guest"]}, False),
        (True, 1000, {"roles": ["lead"]}, False),
        (False, 1000, {"user_id": "ann", "roles": ["lead"]}, False),
    ],
)
async def test_only_an_approver_s_word_that_was_signed_since_we_began_ends_the_worker(
    ground: Ground, signed: bool, at: int, who: dict[str, Any], stops: bool
) -> None:
    await ground.hears("broadcast", signed, at, command="shutdown", **who)
    assert bool(ground.shutdowns) is stops


async def test_a_heartbeat_of_a_cluster_is_met_with_whether_it_asks(ground: Ground) -> None:
    ground.dispatcher.heard(ground.connection.names.clusters, {"cluster": "c2", "asks": True})
    assert ground.met == [("c2", True)]
