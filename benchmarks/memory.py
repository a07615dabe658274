"""Memory on a long history: how much of what is asked for is recalled, how often wrongly, and how quickly.

The history is made, the same each time: a person and Chatter talk about everything and nothing; now and then one of
some hundred things is given a property, which is corrected later for a third of them. The same things come up in small
talk, and other things have the same properties. What a model would draw out of it is kept as it would be, without one.
Then each property is asked for, in other words than it was said in.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.search import vocabulary
from shared.memory import episodes, keeping, recall
from shared.memory.episodes import TurnSide
from shared.memory.keeping import Draw
from shared.memory.scope import MemoryScope
from shared.store.base import Store
from shared.store.origin import Origin
from shared.store.records import Memory
from shared.store.sqlite import SqliteStore
from shared.store.supabase import SupabaseStore
from tests.support.postgres import Missing, Postgres
from tests.support.supabase_lite import SECRET, SupabaseLite

FULL, QUICK = (10_000, 20_000, 200_000), (2_000,)  # rows: two of them are a turn
THINGS, BATCH, TOP = 100, 500, 10
_BEGUN = datetime(2026, 1, 1, tzinfo=UTC)
_ORIGIN = Origin(by="chatter", user="ann").kept()
_WHO = MemoryScope("ann")

# How a property is said, how it is corrected, how it is asked for; {x} is the thing, {v} its value.
_PROPERTIES: dict[str, tuple[str, str, str]] = {
    "deadline": ("By the way, {x} has to be finished on {v}.", "{x} got more time, it is finished on {v} now.",
                 "When does {x} have to be finished?"),
    "colour": ("We painted {x} {v} yesterday.", "I painted {x} again, it is {v} now.", "What colour did we paint {x}?"),
    "owner": ("{v} takes care of {x} from today on.", "It is {v} who takes care of {x} from now on.",
              "Who takes care of {x}?"),
    "place": ("I put {x} into {v}.", "I moved {x}, it is in {v} now.", "Where did I put {x}?"),
    "price": ("For {x} they want {v} dollars.", "They changed their mind: {v} dollars for {x}.",
              "How many dollars do they want for {x}?"),
}  # fmt: skip
_TALK = (
    "Nothing new about {x}, I think of {w} all day.", "Did you hear of {w}? {x} reminds me of it.",
    "Let us talk of {w} another time.", "The {w} and the {w} again.", "I read about {w} this morning.",
)  # fmt: skip
_ANSWERS = ("Noted.", "I see, tell me more about {w}.", "Good. What about {w}?", "That is {w} for you.")


@dataclass(frozen=True)
class Planted:
    """A property of a thing that is asked for: where what holds was said, and how often it was corrected."""

    question: str
    value: str
    seq: int
    earlier: tuple[str, ...]


@dataclass(frozen=True)
class Past:
    """A whole history."""

    said: list[TurnSide]
    draws: list[Draw]
    planted: list[Planted]


def history(rows: int) -> Past:
    """One of so many rows, the same each time."""
    chance, words = random.Random(5), vocabulary()
    weights = list(itertools.accumulate(1 / rank for rank in range(1, len(words) + 1)))
    things = [
        f"the {chance.choice(words[200:4000])} {kind}"
        for kind in _KINDS
        for _ in range(THINGS // len(_KINDS))
    ]
    turns = rows // 2
    plan = sorted(chance.sample(range(turns), min(turns, THINGS * len(_PROPERTIES) * 4 // 3)))
    facts = _statements(chance, words, things, len(plan))
    at = dict(zip(plan, facts, strict=False))
    past = Past([], [], [])
    told: dict[tuple[str, str], Planted] = {}
    for turn in range(turns):

        def word() -> str:
            return chance.choices(words, cum_weights=weights)[0]

        fill = {"x": chance.choice(things), "w": word()}
        text = " ".join(
            chance.choice(_TALK).format(**{**fill, "w": word()}) for _ in range(chance.randint(1, 4))
        )
        if (fact := at.get(turn)) is not None:
            thing, name, value, corrected = fact
            statement = _PROPERTIES[name][corrected].format(x=thing, v=value)
            text = f"{text} {statement}"
            earlier = (*told[thing, name].earlier, told[thing, name].value) if corrected else ()
            question = _PROPERTIES[name][2].format(x=thing)
            told[thing, name] = Planted(question, value, 2 * turn + 1, earlier)
            past.draws.append(_draw(turn, thing, name, statement))
        answer = chance.choice(_ANSWERS).format(**fill)
        for by, (role, line) in enumerate((("user", text), ("assistant", answer))):
            seq = 2 * turn + 1 + by
            speaker = "ann" if role == "user" else "chatter"
            past.said.append(
                TurnSide(seq, speaker, line, _BEGUN + timedelta(minutes=seq), role, f"m{seq}", _ORIGIN)
            )
    past.planted.extend(told.values())
    return past


_KINDS = ("shed", "boat", "bridge", "report", "garden", "engine", "poster", "violin", "bakery", "server")


def _statements(
    chance: random.Random, words: list[str], things: list[str], count: int
) -> list[tuple[str, str, str, bool]]:
    """What is said of things, in order; a third of it is corrected later."""
    pairs = [(thing, name) for thing in dict.fromkeys(things) for name in _PROPERTIES]
    chance.shuffle(pairs)
    first = [(thing, name, _value(chance, words, name), False) for thing, name in pairs]
    again = [(thing, name, _value(chance, words, name), True) for thing, name in pairs[: len(pairs) // 3]]
    return (first + again)[:count]


def _value(chance: random.Random, words: list[str], name: str) -> str:
    if name == "price":
        return str(chance.randint(100, 99_999))
    if name == "deadline":
        return f"the {chance.randint(1, 28)}th of {chance.choice(('March', 'June', 'October'))}"
    return chance.choice(words[4000:])


def _draw(turn: int, thing: str, name: str, text: str) -> Draw:
    fact = {"subject": thing, "about": name, "text": text, "sure": "explicit", "from": 1}
    at = (_BEGUN + timedelta(minutes=2 * turn + 1)).isoformat(timespec="microseconds")
    turns = [{"id": str(episodes.key("long", 2 * turn + 1)), "source": f"m{2 * turn + 1}"}]
    return Draw(f"d{turn}", "ann", "default", "long", at, "made", turns, [], {"facts": [fact]}, _ORIGIN)


async def measure(home: Path, sizes: tuple[int, ...], questions: int, postgres: bool = True) -> None:
    """Print what is recalled and how quickly, for each size and Store."""
    print("\nMemory on a long history:")
    for size in sizes:
        past = history(size)
        await _one("SQLite", SqliteStore(home / f"memory-{size}.db"), past, questions)
        if not postgres:
            continue
        try:
            (folder := home / f"memory-lite-{size}").mkdir()
            await _postgres(folder, past, questions)
        except Missing as missing:
            print(f"  Postgres is left out: {missing}")


async def _postgres(folder: Path, past: Past, questions: int) -> None:
    server = Postgres()
    try:
        await asyncio.to_thread(server.start)
        lite = SupabaseLite(server, folder)
        await asyncio.to_thread(lite.migrate)
        await asyncio.to_thread(lite.start)
        try:
            await _one("Postgres", SupabaseStore(lite.url, SECRET, limit=60.0), past, questions, server)
        finally:
            lite.kill()
    finally:
        server.stop()


async def _one(name: str, store: Store, past: Past, questions: int, server: Postgres | None = None) -> None:
    await store.open()
    try:
        started = time.perf_counter()
        if server is not None:
            await asyncio.to_thread(_copied, server, past)
        else:
            for batch in _batches(past):
                await store.upsert(batch)
        for draw in past.draws:
            await keeping.apply(store, [draw.values()])
        if server is not None:
            server.query("vacuum analyze")
        took = time.perf_counter() - started
        print(
            f"  {name}, {len(past.said):,} rows of what was said, {len(past.draws)} facts (kept in {took:.0f} s)"
        )
        await _ask(store, past, questions)
    finally:
        await store.close()


def _copied(server: Postgres, past: Past) -> None:
    """What was said, by COPY: row by row through the endpoint 200,000 would take longer than all that is measured.

    The index of the words is made when they are there, as it is where a database is filled from another one.
    """
    made = server.query("select indexdef from pg_indexes where indexname = 'search_words_words_idx'")[0][0]
    server.query("drop index search_words_words_idx; create table loaded (data jsonb)")
    told = server.folder / "loaded"
    for batch in _batches(past, 40 * BATCH):
        lines = (json.dumps(row.model_dump(mode="json")) for row in batch)
        told.write_text("".join(f"{line}\n" for line in lines))
        told.chmod(0o644)
        server.query(f"copy loaded from '{told}' (format csv, quote e'\\x01', delimiter e'\\x02')")
        server.query(
            "insert into memories select row.* from loaded, jsonb_populate_record(null::memories, data) as row;"
            " truncate loaded"
        )
    server.query(f"drop table loaded; {made}")
    server.query("vacuum analyze")


def _batches(past: Past, size: int = BATCH) -> Iterator[list[Memory]]:
    for at in range(0, len(past.said), size):
        yield episodes.rows(
            past.said[at : at + size],
            session="long",
            user_id="ann",
            project="default",
            turn_id="t",
            agent="chatter",
        )


async def _ask(store: Store, past: Past, questions: int) -> None:
    asked = random.Random(7).sample(past.planted, min(questions, len(past.planted)))
    searched, remembered, spent, hits, facts, stale, other = [], [], [], 0, 0, 0, 0
    for number, one in enumerate([*asked[:5], *asked]):  # the first ones find nothing in memory
        started, busy = time.perf_counter(), time.process_time()
        found = await recall.search(store, one.question, _WHO, TOP)
        between, worked = time.perf_counter(), time.process_time()
        bundle = await recall.remember(store, one.question, _WHO)
        ended = time.perf_counter()
        if number < 5:
            continue
        searched.append((between - started) * 1000)
        remembered.append((ended - between) * 1000)
        spent.append((worked - busy) * 1000)
        message = f"m{one.seq}"
        hits += any(item.message_id == message for item in found)
        best = bundle.facts[0].text if bundle.facts else ""
        facts += one.value in best
        stale += any(value in item.text for item in bundle.facts for value in one.earlier)
        other += bool(best) and one.value not in best
    count = len(asked)
    print(f"    recall@{TOP} {hits / count:.3f}; the best fact is the right one {facts / count:.3f}, another one"
          f" {other / count:.3f}; a corrected one is told {stale / count:.3f} ({count} questions)")  # fmt: skip
    # Unlike the clock it hardly depends on what else runs here; what a database of its own does is not in it.
    for title, times in (
        ("search", searched), ("remember", remembered), ("processor time of a search", spent)
    ):  # fmt: skip
        _print(title, sorted(times))


def _print(title: str, times: list[float]) -> None:
    p50, p99 = times[len(times) // 2], times[len(times) * 99 // 100]
    print(f"    {title}: p50 {p50:.1f} ms, p99 {p99:.1f} ms")
