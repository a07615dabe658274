"""A whole turn of Chatter without tools: how long, how many, and what the worker asks of Redis for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from benchmarks.durable import Message
from benchmarks.race import lap, typical
from benchmarks.server import process, server
from benchmarks.side import WORDS
from shared.bus.keys import CHATTER_OUTPUT, HUMAN_INPUT, Names
from shared.bus.messages import Said
from shared.bus.redis import RedisBus
from shared.turns import route
from shared.turns.desk import Desk


class Person(Message):
    """The client's side: people who each say one thing in a session of their own, or all in the same one."""

    name, about = "chatter", "a person's message through Chatter"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.names = Names()
        self.desk = Desk(self.bus, self.names, "chatter", limit=100_000)
        self._input = self.names.channel(HUMAN_INPUT)
        self._output = self.names.channel(CHATTER_OUTPUT)

    async def send(self, request: str) -> None:
        said = Said(user_id="bench", content=WORDS, id=request, session_id=request)
        data = json.dumps({**said.model_dump(exclude_none=True), "via": self._input}).encode()
        receipt = await self.desk.post(route.human(self.names, said, data))
        assert receipt.outcome == "accepted", receipt

    def heard(self, data: bytes) -> None:
        content = json.loads(data)
        assert content["status"] == "complete", content
        super().heard(data)


async def measure(home: Path, rounds: int, seconds: float, levels: Sequence[int]) -> None:
    """Print what a turn takes."""
    print("\nA whole turn of Chatter without tools (its model answers at once), appendfsync always:")
    async with AsyncExitStack() as stack:
        url = stack.enter_context(server(home / "turn", "always"))
        child = stack.enter_context(
            process(
                "-m",
                "benchmarks.chatter",
                home=home,
                REDIS_URL=url,
                PROMPTDOCK_HOME=str(home),
                LOG_LEVEL="warning",
            )
        )
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
        commands = await _commands(person, turns=100)
        print(f"  {commands:.1f} commands of the worker to Redis per turn, background taken off")
        assert child.process.poll() is None


async def _commands(person: Person, turns: int) -> float:
    """Commands that the worker's connections sent per turn: the server counts them by connection."""
    await asyncio.sleep(1.0)  # what the turns before left behind goes out
    before = await _sent(person.bus)
    await asyncio.sleep(2.0)
    idle = (await _sent(person.bus) - before) / 2.0
    loop = asyncio.get_running_loop()
    started, before = loop.time(), await _sent(person.bus)
    for _ in range(turns):
        await person.ask()
    await asyncio.sleep(0.2)  # live events leave a moment after the answer
    return (await _sent(person.bus) - before - idle * (loop.time() - started)) / turns


async def _sent(bus: RedisBus) -> int:
    lines = (await bus.command("CLIENT", "LIST")).decode().splitlines()
    clients = [dict(part.split("=", 1) for part in line.split(" ") if "=" in part) for line in lines]
    return sum(int(client["tot-cmds"]) for client in clients if client["name"] == "promptdock-chatter")
