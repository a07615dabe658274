"""What a process hears once and hands to all its readers: each gets all of it, whenever another one comes."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from shared.bus.base import StreamEntry
from shared.bus.keys import Names
from shared.client.client import Client
from shared.client.fanout import Fanout, Reader, before

STREAM = Names("x").stream("s")
TAIL = "2-0"  # of which the process has heard, of four that are there


class Stream:
    """Four events of one session."""

    async def read(self, cursors: dict[str, str], _block_ms: int, _count: int = 500) -> list[StreamEntry]:
        ids = ("1-0", "2-0", "3-0", "4-0")
        return [
            StreamEntry(STREAM, one, {"data": b'{"event": "chunk"}'})
            for one in ids
            if before(cursors[STREAM], one)
        ]

    async def command(self, *_words: object) -> Any:
        return [(b"1-0", [])]


async def test_who_comes_later_and_reads_what_was_missed_takes_nothing_from_the_others() -> None:
    async def tail(*_words: object) -> Any:
        return [(TAIL.encode(), [])]

    bus = Stream()
    fanout = Fanout(cast(Client, SimpleNamespace(bus=bus, names=Names("x"))))
    fanout._tasks.append(asyncio.create_task(asyncio.sleep(0)))  # in place of those that listen
    bus.command = tail  # type: ignore[method-assign]
    async with fanout.reading({"s": TAIL}) as first:
        bus.command = Stream().command  # type: ignore[method-assign]
        async with fanout.reading({"s": "1-0"}) as late:
            assert await cursors(late) == ["2-0", "3-0", "4-0"]
            fanout._look("s")
            await fanout._read()
            assert await cursors(first) == ["3-0", "4-0"]
            assert await cursors(late) == []


async def cursors(reader: Reader) -> list[str]:
    """Of what waits for it now."""
    return [moment.cursor for moment in await reader.take(0.01) or []]
