"""A long conversation: what a turn costs from the first to the last, and whether what was said early is there late.

A person tells a real Chatter things about twenty rooms, among talk of the same rooms, and asks for each of them long
after it has left the window. The model is scripted: its summaries say nothing, so that what is there was recalled.
"""

from __future__ import annotations

import json
import random
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.prefix import LONG, compare, cost
from benchmarks.search import vocabulary
from benchmarks.server import server
from shared.store.records import ConversationMessage
from shared.store.sqlite import SqliteStore
from tests.support.messages_api import MessagesApi
from tests.support.messages_script import Rules
from tests.support.processes import site
from tests.support.wire import Wire

TURNS, ROOMS = 500, 20
_SUMMARY = "You are a helpful assistant that summarizes"
RULES: list[dict[str, Any]] = [
    {"system": _SUMMARY, "steps": [{"text": "They went on talking about the rooms of a house. " * 8}]},
    {"steps": [{"text": LONG}]},
]


@dataclass(frozen=True)
class Asked:
    """A question of the conversation: in which turn, and what its answer holds."""

    turn: int
    value: str
    said: int  # in which turn that was


def script(turns: int) -> tuple[list[str], list[Asked]]:
    """What the person says, the same each time, and the questions among it."""
    chance, words = random.Random(11), vocabulary()
    rooms = chance.sample(words[300:3000], ROOMS)
    early = sorted(chance.sample(range(turns // 2), ROOMS))
    late = chance.sample(range(turns // 2 + turns // 5, turns), ROOMS)
    lines, asked = [], []
    plan = dict(zip(early, rooms, strict=True))
    ends = dict(zip(late, zip(rooms, early, strict=True), strict=True))
    values = {room: chance.choice(words[5000:]) for room in rooms}
    for turn in range(turns):
        talk = f"I walked past the {chance.choice(rooms)} room and thought of {chance.choice(words[:2000])}."
        if turn in plan:
            talk += f" By the way, the key of the {plan[turn]} room hangs behind the {values[plan[turn]]}."
        if turn in ends:
            room, said = ends[turn]
            talk = f"Where did I hang the key of the {room} room?"
            asked.append(Asked(turn, values[room], said))
        lines.append(talk)
    return lines, asked


def talk(home: Path, lines: list[str]) -> tuple[list[dict[str, Any]], list[dict[str, Any]], int]:
    """The requests of the turns, those of the summaries, and how many messages the Store has at the end."""
    import asyncio

    with server(home / "long", "off") as url, MessagesApi(Rules(RULES)) as api:
        model = {"ANTHROPIC_API_KEY": "sk-ant-bench-key-0000", "ANTHROPIC_BASE_URL": api.url}
        model |= {"BUDGET_MEMORY": "0", "BUDGET_TITLES": "0"}
        with site(home / "long-site", url, **model) as place:
            place.up("chatter")
            with Wire(place.url, place.names) as wire:
                for line in lines:
                    wire.ask(line, user="ada")
            kept = asyncio.run(_kept(place.home / "promptdock.db", 2 * len(lines)))
        bodies = list(api.requests)
    turns = [
        body for body in bodies if body.get("tools") and "[from ada]" in json.dumps(body["messages"][-1])
    ]
    return turns, [body for body in bodies if _SUMMARY in json.dumps(body.get("system", ""))], kept


async def _kept(path: Path, most: int) -> int:
    """How many messages are in the Store, as soon as all of them or no more come."""
    import asyncio

    store, found = SqliteStore(path), 0
    await store.open()
    try:
        for _ in range(50):
            if (found := await store.count(ConversationMessage)) >= most:
                break
            await asyncio.sleep(0.2)
        return found
    finally:
        await store.close()


def measure(home: Path, turns: int = TURNS) -> None:
    """Print what a turn is sent, what summaries cost, and what was there when it was asked for."""
    lines, asked = script(turns)
    bodies, summaries, kept = talk(home, lines)
    sizes = [len(json.dumps(body)) for body in bodies]
    fifth = turns // 5
    print(f"\nA conversation of {turns} turns ({kept} messages kept): what a turn is sent, bytes as JSON")
    for at in range(0, turns, fifth):
        part = sizes[at : at + fifth]
        print(f"  turns {at + 1} to {at + len(part)}: mean {statistics.mean(part):,.0f}, most {max(part):,}")
    steps = compare(bodies)
    at_least = sum(step.share >= 0.95 for step in steps)
    print(
        f"  with at least 95 % of the request before begin {at_least} of {len(steps)};"
        f" of all bytes of the requests before, {sum(s.shared for s in steps) / sum(s.before for s in steps):.1%}"
    )
    spent = sum(len(json.dumps(body)) for body in summaries)
    fresh = sum(step.size for step in steps)
    print(
        f"  {len(summaries)} summaries, {spent:,} bytes sent for them: {spent / sum(sizes):.1%} of what the turns are"
        f" sent; with the cache the turns cost {cost(steps) / fresh:.1%} of fresh input, the summaries"
        f" {spent / fresh:.1%} beside"
    )
    there = [one for one in asked if one.value in json.dumps(bodies[one.turn]["messages"])]
    far = statistics.median(one.turn - one.said for one in asked)
    print(
        f"  {len(there)} of {len(asked)} answers are in the request that asks for them, {far:.0f} turns later"
    )
