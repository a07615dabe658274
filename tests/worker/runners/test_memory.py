"""Memory in a turn: what it is told of, what is kept of it, and that nothing of it is ever in the way."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from shared.bus import messages
from shared.conversation.past import History
from shared.conversation.window import record
from shared.errors import StoreUnavailable
from shared.guard.permissions import marks
from shared.store.base import Store
from shared.store.origin import Origin
from shared.store.sqlite import SqliteStore
from shared.turns.records import RememberedRecord
from shared.turns.turn import Turn
from shared.worker.runners.chat import memory
from shared.worker.runners.inputs import TurnInput
from tests.memory.ground import fact
from tests.worker.ground import connected, turn_of


def given(text: str = "which colour do I like?", **more: Any) -> TurnInput:
    said = messages.human({"user_id": "ann", "content": text, "id": "m1", **more})
    assert isinstance(said, messages.Said)
    return TurnInput(said=[said])


async def turn() -> Turn:
    return await turn_of(connected(), "chatter")


class _Gone:
    """A Store that cannot be asked, or that answers some time."""

    def __init__(self, hangs: bool) -> None:
        self._hangs = hangs

    async def search(self, *_given: Any, **_more: Any) -> Any:
        if self._hangs:
            await asyncio.sleep(60)
        raise StoreUnavailable("the Store cannot be asked", "a test took it away")


@pytest.mark.parametrize("hangs", [False, True])
async def test_with_the_store_down_or_slow_a_turn_goes_on_without(
    hangs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "_PATIENCE", 0.05)
    ours = await turn()
    assert await memory.lines(cast(Store, _Gone(hangs)), ours, given(), "default", History()) == []
    assert ours.records.first(RememberedRecord) is None


async def test_what_is_remembered_is_noted_once_with_the_mark_of_what_others_wrote(
    store: SqliteStore,
) -> None:
    await store.upsert([fact("ann likes the colour green", origin=Origin(foreign="web").kept())])
    ours = await turn()
    told = await memory.lines(store, ours, given(), "default", History())
    assert any("green" in line for line in told)
    noted = ours.records.first(RememberedRecord)
    assert noted is not None
    assert [item["text"] for item in noted.items] == ["ann likes the colour green"]
    assert marks.mark(ours.records) == "web"
    assert (
        await memory.lines(store, ours, given(), "default", History()) == []
    )  # a successor sends what was sent


async def test_both_sides_are_kept_without_what_the_harness_told_and_with_their_mark() -> None:
    ours = await turn()
    said = [
        {"type": "text", "text": text} for text in ("[from ann]: I like green", "[Current date and time: x]")
    ]
    call = [{"type": "tool_use", "id": "c", "name": "n", "input": {}}]
    added = [
        record("user", said, "q1", 1, 5, "web", message_id="m1"),
        record("assistant", call, "q1", 2, 5, "web"),
        record("user", [{"type": "tool_result", "tool_use_id": "c", "content": "x"}], "q1", 3, 5, "web"),
        record("assistant", [{"type": "text", "text": "Noted"}], "q1", 4, 5, "web"),
    ]
    rows = memory.rows(ours, given(), added, "shop", "chatter")
    assert [(row.subject, row.body, row.detail["seq"]) for row in rows] == [
        ("ann", "I like green", 1), ("chatter", "Noted", 4)
    ]  # fmt: skip
    assert all(row.scope == "project" and Origin.of(row.origin).foreign == "web" for row in rows)
    assert rows[0].id == memory.rows(ours, given(), added, "shop", "chatter")[0].id


async def test_who_wants_no_memory_has_none_read_and_none_written(store: SqliteStore) -> None:
    await store.upsert([fact("ann likes the colour green")])
    ours, without = await turn(), given(use_memory=False)
    added = [record("user", [{"type": "text", "text": "[from ann]: I like green"}], "q1", 1, 5)]
    assert await memory.lines(store, ours, without, "default", History()) == []
    assert memory.rows(ours, without, added, "default", "chatter") == []
