"""What goes into the archive, and what stays."""

from __future__ import annotations

from datetime import timedelta

from shared.memory.recall import remember
from shared.memory.scope import MemoryScope
from shared.memory.upkeep import Upkept, consolidate
from shared.store.records import Memory
from shared.store.sqlite import SqliteStore
from tests.memory.ground import BEGUN, fact, told

LATER = BEGUN + timedelta(days=1000)
MINE = {"user_id": "ann"}


async def test_what_was_corrected_and_what_says_the_same_is_archived_and_what_was_said_stays(
    store: SqliteStore,
) -> None:
    await told(store, "The launch is in June.")
    rows = [
        fact("the launch is in June"),
        fact("The launch is  in june"),
        fact("it was in May", valid_to=BEGUN),
    ]
    await store.upsert([*rows, fact("the launch is in June", user="eve")])
    assert await consolidate(store, MINE, at=BEGUN) == Upkept(archived=2, kept=1)
    assert await consolidate(store, MINE, at=BEGUN) == Upkept(archived=0, kept=1)
    assert len((await remember(store, "launch", MemoryScope("ann"))).items) == 2
    assert await store.count(Memory) == 5


async def test_what_was_unsure_and_is_not_used_fades_and_what_was_said_plainly_does_not(
    store: SqliteStore,
) -> None:
    await store.upsert(
        [
            fact("perhaps red", confidence=0.5),
            fact("perhaps blue", confidence=0.5, used_at=LATER),
            fact("surely green"),
            fact("ship it", kind="goal"),
        ]
    )
    assert await consolidate(store, MINE, at=LATER) == Upkept(archived=1, kept=3)
    [gone] = await store.select(Memory, {"archived": True})
    assert gone.body == "perhaps red"


async def test_it_ends_where_it_is_not_ours_to_do_any_more(store: SqliteStore) -> None:
    await store.upsert([fact("old", valid_to=BEGUN)])

    async def lost() -> bool:
        return False

    assert await consolidate(store, MINE, lost) == Upkept()
