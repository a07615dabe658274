"""What is remembered of a person, looked at, corrected and forgotten by tools."""

from __future__ import annotations

from typing import Any

from shared.memory import scope
from shared.memory.recall import remember
from shared.memory.scope import MemoryScope
from shared.store.origin import Origin
from shared.store.records import Memory
from tests.memory.ground import fact
from tests.tools.bench import Bench

ADA = MemoryScope("ada")


async def kept(bench: Bench, body: str = "Ada likes green", user: str = "ada", **more: Any) -> str:
    row = fact(body, user=user, **more)
    await bench.store.upsert([row])
    return str(row.id)


async def test_a_person_sees_their_own_memories_and_nobody_elses(bench: Bench) -> None:
    mine, theirs = await kept(bench), await kept(bench, "Eve likes red", "eve")
    [row] = (await bench.ok("list_memories"))["memories"]
    assert (row["id"], row["text"], row["confidence"], row["state"]) == (
        mine,
        "Ada likes green",
        0.95,
        "valid",
    )
    assert (await bench.ok("show_memory", memory_id=mine[:8]))["id"] == mine
    for tool, more in (("show_memory", {}), ("forget_memory", {}), ("correct_memory", {"text": "x"})):
        assert "none of yours" in await bench.no(tool, memory_id=theirs, **more)
    assert await bench.store.count(Memory, {"id": theirs}) == 1


async def test_a_correction_ends_the_old_one_once_though_the_call_is_repeated(bench: Bench) -> None:
    old = await kept(bench)
    done = await bench.twice("correct_memory", memory_id=old, text="Ada likes blue")
    assert [item.text for item in (await remember(bench.store, "likes", ADA)).facts] == ["Ada likes blue"]
    assert (await bench.ok("show_memory", memory_id=old))["superseded_by"] == done["memory_id"]
    assert "corrected before" in await bench.no("correct_memory", memory_id=old, text="Ada likes red")
    assert await bench.store.count(Memory) == 2


async def test_a_correction_after_reading_what_others_wrote_bears_their_mark(bench: Bench) -> None:
    old = await kept(bench)
    await bench.ok("correct_memory", memory_id=old, text="blue", here={"foreign": lambda: "web"})
    assert (await remember(bench.store, "blue", ADA)).foreign == "web"


async def test_what_is_forgotten_is_gone_and_what_was_said_cannot_be_put_otherwise(bench: Bench) -> None:
    turn = await kept(bench, "I like green", kind="turn")
    assert "what was said" in await bench.no("correct_memory", memory_id=turn, text="I like blue")
    assert (await bench.twice("forget_memory", memory_id=turn))["forgotten"] == turn
    assert await bench.store.count(Memory) == 0


async def test_only_a_person_shares_the_memory_of_a_project_and_never_that_of_the_default_one(
    bench: Bench,
) -> None:
    await bench.ok("create_project", name="Shop")
    person = {"agent": "person"}
    assert "only a person" in await bench.no("share_memory", project_id="shop")
    assert "cannot be shared" in await bench.no("share_memory", project_id="default", here=person)
    assert (await bench.ok("share_memory", project_id="shop", here=person))["shared"] is True
    assert await scope.shared(bench.store, "shop")


async def test_a_mark_on_what_is_listed_is_told_with_it(bench: Bench) -> None:
    await kept(bench, origin=Origin(foreign="web").kept())
    assert (await bench.ok("list_memories"))["made_after_reading"] == "web"
