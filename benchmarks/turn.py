"""A whole turn of Chatter without tools: how long, how many, and what the worker asks of Redis for it."""

from __future__ import annotations

import asyncio
import json
import statistics
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from benchmarks.durable import Message
from benchmarks.race import lap, typical
from benchmarks.server import process, server
from benchmarks.side import WORDS
from shared.bus.keys import CHATTER_OUTPUT, HUMAN_INPUT, Names
from shared.bus.messages import Said
from shared.bus.redis import RedisBus
from shared.turns import routing
from shared.turns.queue import Queue


class Person(Message):
    """The client's side: people who each say one thing in a session of their own, or all in the same one."""

    name, about = "chatter", "a person's message through Chatter"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.names = Names()
        self.queue = Queue(self.bus, self.names, "chatter", limit=100_000)
        self._input = self.names.channel(HUMAN_INPUT)
        self._output = self.names.channel(CHATTER_OUTPUT)

    async def send(self, request: str) -> None:
        said = Said(user_id="bench", content=WORDS, id=request, session_id=request)
        data = json.dumps({**said.model_dump(exclude_none=True), "via": self._input}).encode()
        receipt = await self.queue.post(routing.human(self.names, said, data))
        assert receipt.outcome == "accepted", receipt

    def heard(self, data: bytes) -> None:
        content = json.loads(data)
        assert content["status"] == "complete", content
        super().heard(data)


async def measure(home: Path, rounds: int, seconds: float, levels: Sequence[int], counted: int = 20) -> None:
    """Print what a turn takes, and what the worker asks of Redis for it."""
    print("\nA whole turn of Chatter without tools (its model answers at once), appendfsync always:")
    async with AsyncExitStack() as stack:
        url = stack.enter_context(server(home / "turn", "always"))
        told = {"REDIS_URL": url, "PROMPTDOCK_HOME": str(home), "LOG_LEVEL": "warning"}
        child = stack.enter_context(process("-m", "benchmarks.chatter", home=home, **told))
        person = Person(url)
        stack.push_async_callback(person.close)
        await person.open()
        async with asyncio.timeout(30):
            await person.ask()
        for level in levels:
            laps = [await lap(person, level, seconds) for _ in range(rounds)]
            print(
                f"  {level:4} in flight: p50 {typical(laps, 'p50') / 1000:6.2f} ms, "
                f"p99 {typical(laps, 'p99') / 1000:6.2f} ms, {typical(laps, 'rate'):6.0f} turns a second"
            )
        until_answer, in_all = await _asked(url, person, counted)
        print(f"  commands of the worker to Redis: {until_answer} until the answer, {in_all:.1f} in all")
        assert child.process.poll() is None


async def _asked(url: str, person: Person, turns: int) -> tuple[int, float]:
    """Commands per turn that the worker sends until the answer is out, and in all, background taken off."""
    async with Monitor(url, await _addresses(person.bus)) as monitor:
        await asyncio.sleep(1.5)
        idle = monitor.sent / 1.5
        loop = asyncio.get_running_loop()
        started, monitor.sent = loop.time(), 0
        for _ in range(turns):
            await person.ask()
            await asyncio.sleep(0.1)  # live events leave a moment after the answer
        in_all = (monitor.sent - idle * (loop.time() - started)) / turns
        return statistics.mode(monitor.until_answer), in_all


class Monitor:
    """What the server is asked, as it tells: commands that a script runs are not counted."""

    def __init__(self, url: str, addresses: frozenset[str]) -> None:
        self._place, self._addresses = urlsplit(url), addresses
        self.sent = 0
        self._posted = 0
        self.until_answer: list[int] = []

    async def __aenter__(self) -> Self:
        lines, self._writer = await asyncio.open_connection(
            self._place.hostname, self._place.port, limit=1 << 20
        )
        self._writer.write(f"AUTH {self._place.username} {self._place.password}\r\nMONITOR\r\n".encode())
        self._task = asyncio.create_task(self._read(lines))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        self._writer.close()
        await self._writer.wait_closed()

    async def _read(self, lines: asyncio.StreamReader) -> None:
        async for line in lines:
            source, _, command = line.decode("utf-8", "replace").partition(" [")[2].partition("] ")
            if source.partition(" ")[2] in self._addresses:
                self.sent += 1
            elif command.startswith(f'"PUBLISH" "{HUMAN_INPUT}"'):
                self._posted = self.sent
            elif command.startswith(f'"PUBLISH" "{CHATTER_OUTPUT}"'):
                self.until_answer.append(self.sent - self._posted)


async def _addresses(bus: RedisBus) -> frozenset[str]:
    lines = (await bus.command("CLIENT", "LIST")).decode().splitlines()
    clients = [dict(part.split("=", 1) for part in line.split(" ") if "=" in part) for line in lines]
    return frozenset(client["addr"] for client in clients if client["name"] == "promptdock-chatter")
