"""Whoever waits for Redis waits on, however long it is away: a night makes thousands of tries."""

from __future__ import annotations

import asyncio
import contextlib
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import pytest

from shared.bus import keys
from shared.bus.redis.listener import RedisListener
from shared.client import feed
from shared.client.delivery import SpoolDelivery
from shared.errors import BusUnreachable
from shared.turns.queue import Queue

TRIES = 3000


async def away(*_: object) -> NoReturn:
    raise BusUnreachable("Redis is away")


async def nothing(*_: object) -> None:
    pass


async def listen() -> None:
    await RedisListener(away, ["c"], [], cast(Any, nothing), nothing, 1.0).run()


async def read() -> None:
    line = SimpleNamespace(bus=SimpleNamespace(read=away), moved=nothing)
    async for _ in feed.entries(cast(Any, line), "s", "0"):
        pass


async def post() -> None:
    connection = SimpleNamespace(moved=nothing)
    await SpoolDelivery._keep_trying(
        cast(Any, SimpleNamespace(_letters=[1], _connection=connection, _flush=away))
    )


async def script() -> None:
    queue = Queue(cast(Any, SimpleNamespace(script=away)), keys.Names("t"), "chatter")
    await queue._call(cast(Any, object()), patience=600)


@pytest.mark.parametrize("wait", [listen, read, post, script])
async def test_the_pauses_stay_bounded_and_never_end(monkeypatch: pytest.MonkeyPatch, wait: Any) -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == TRIES:
            raise asyncio.CancelledError

    monkeypatch.setattr(asyncio, "sleep", sleep)
    with contextlib.suppress(asyncio.CancelledError):
        await wait()
    assert len(pauses) == TRIES
    assert 0.5 < max(pauses) <= 2.0
    assert max(pauses[:2]) <= 0.4
