"""Search by words: what a query takes in a Store with so many rows, in SQLite and in Postgres behind Supabase's API.

Memories of thirty to sixty words, of which a few are frequent and most are rare, as in any text (Zipf); twenty
projects. The queries are made of words of one rarity each, and look through one project or through all of them.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

from shared.store.base import Store
from shared.store.records import Memory, derived
from shared.store.sqlite import SqliteStore
from shared.store.supabase import SupabaseStore
from tests.support.postgres import Missing, Postgres
from tests.support.supabase_lite import SECRET, SupabaseLite

FULL, QUICK = (10_000, 200_000), (2_000,)
SECONDS = 15  # after which no further query of one kind is begun
PROJECTS, WORDS, BATCH = 20, 20_000, 500
_LETTERS = "bdfgklmnprtvz"
# Ranks of the words that a query is made of, from the most frequent on.
_QUERIES = {
    "three rare words": (2000, 20_000, 3),
    "a sentence": (20, 3000, 8),
    "a word in most rows": (0, 3, 1),
}


def vocabulary() -> list[str]:
    """Words that no stemmer shortens and no list leaves out, the most frequent first."""
    parts = ["".join(pair) for pair in itertools.product(_LETTERS, "aou")]
    words = ["".join(three) + "k" for three in itertools.product(parts, repeat=3)]
    random.Random(1).shuffle(words)
    return words[:WORDS]


def rows(count: int) -> Iterator[Memory]:
    """So many memories, the same each time."""
    chance, words = random.Random(2), vocabulary()
    weights = list(itertools.accumulate(1 / rank for rank in range(1, WORDS + 1)))
    for number in range(count):
        body = " ".join(chance.choices(words, cum_weights=weights, k=chance.randint(30, 60)))
        yield Memory(
            id=derived("bench", number),
            kind="fact",
            project_id=_project(number % PROJECTS),
            subject="",
            body=body,
        )


def _project(number: int) -> UUID:
    return derived("bench", "project", number)


async def measure(home: Path, sizes: tuple[int, ...], rounds: int) -> None:
    """Print p50 and p99 for each size, Store, kind of query and scope."""
    print("\nSearch by words, ms:")
    for size in sizes:
        store: Store = SqliteStore(home / f"search-{size}.db")
        await _one("SQLite", store, size, rounds)
        try:
            (folder := home / f"lite-{size}").mkdir()
            await _postgres(folder, size, rounds)
        except Missing as missing:
            print(f"  Postgres is left out: {missing}")


async def _postgres(folder: Path, size: int, rounds: int) -> None:
    server = Postgres()
    try:
        await asyncio.to_thread(server.start)
        lite = SupabaseLite(server, folder)
        await asyncio.to_thread(lite.migrate)
        await asyncio.to_thread(lite.start)
        try:
            await _one("Postgres", SupabaseStore(lite.url, SECRET, limit=60.0), size, rounds, server)
        finally:
            lite.kill()
    finally:
        server.stop()


async def _one(name: str, store: Store, size: int, rounds: int, server: Postgres | None = None) -> None:
    await store.open()
    try:
        batch: list[Memory] = []
        started = time.perf_counter()
        for row in rows(size):
            batch.append(row)
            if len(batch) == BATCH:
                await store.upsert(batch)
                batch = []
        await store.upsert(batch)
        spent = time.perf_counter() - started
        if server is not None:
            server.query("vacuum analyze")
        print(f"  {name}, {size:,} rows (written in batches of {BATCH}: {spent / size * 1000:.2f} ms each)")
        for title, (first, last, words) in _QUERIES.items():
            for where in ({"project_id": _project(7)}, {}):
                times, found = await _times(store, where, (first, last, words), rounds)
                scope = "one project" if where else "all"
                print(
                    f"    {title}, {scope}: p50 {times[len(times) // 2]:.1f}, p99 {times[len(times) * 99 // 100]:.1f}",
                    end="",
                )
                print(f" ({len(times)} times; {found:,} rows fit, the 10 best are given)")
    finally:
        await store.close()


async def _times(
    store: Store, where: dict[str, UUID], of: tuple[int, int, int], rounds: int
) -> tuple[list[float], int]:
    """Milliseconds of each query, sorted, and how many rows fit the middle one."""
    chance, words = random.Random(3), vocabulary()
    times, totals = [], []
    ends = time.perf_counter() + SECONDS
    for number in range(rounds + 3):
        if number > 8 and time.perf_counter() > ends:
            break
        query = " ".join(chance.choices(words[of[0] : of[1]], k=of[2]))
        started = time.perf_counter()
        found = await store.search(Memory, query, where)
        if number >= 3:  # the first ones find nothing in memory
            times.append((time.perf_counter() - started) * 1000)
            totals.append(found.total)
    return sorted(times), sorted(totals)[len(totals) // 2]
