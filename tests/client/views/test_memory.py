"""Memory as people look through it, with no cluster running."""

from __future__ import annotations

import pytest

from shared.client import Client
from shared.client.views import memory
from shared.errors import Denied, Missing, UsageError
from shared.store.records import ConversationMessage, Session, TurnRow, TurnStep
from shared.store.row import now
from tests.memory.ground import fact


@pytest.fixture
async def known(reader: Client) -> Client:
    store = await reader.store()
    await store.upsert(
        [fact("the shop is red", project="shop"), fact("ann likes green"), fact("eve", user="eve")]
    )
    await store.upsert([fact("the shop was blue", project="shop", valid_to=now())])
    await store.upsert([Session(key="s", user_id="ann"), Session(key="e", user_id="eve")])
    content = [{"type": "text", "text": "[from ann]: The harbour is closed."}]
    said = ConversationMessage(session_id="s", seq=1, role="user", content=content, source_message_id="m1")
    await store.upsert([said])
    return reader


async def test_a_list_is_the_persons_own_and_of_what_is_valid_unless_all_is_asked_for(known: Client) -> None:
    async def texts(project: str | None, everything: bool) -> set[str]:
        return {row["text"] for row in await memory.listed(known, "ann", "fact", project, everything, 20)}

    assert await texts(None, False) == {"the shop is red", "ann likes green"}
    assert await texts("shop", True) == {"the shop is red", "the shop was blue"}


async def test_a_search_looks_through_a_project_or_through_all_or_through_one_conversation(
    known: Client,
) -> None:
    assert [f["text"] for f in await memory.search(known, "red", "ann", None, "shop", 5)] == [
        "the shop is red"
    ]
    assert [f["text"] for f in await memory.search(known, "red", "ann", None, None, 5)] == ["the shop is red"]
    [found] = await memory.search(known, "harbour", "ann", "s", None, 5)
    assert found.keys() >= {"kind", "text", "score", "session_id", "message_id", "at"}
    assert (found["text"], found["message_id"], found["kind"]) == ("The harbour is closed.", "m1", "turn")


async def test_another_persons_conversation_is_not_looked_through(known: Client) -> None:
    with pytest.raises(Denied, match="somebody else's"):
        await memory.search(known, "x", "ann", "e", None, 5)
    with pytest.raises(UsageError, match="no conversation"):
        await memory.search(known, "x", "ann", "nowhere", None, 5)


async def test_one_is_named_by_the_beginning_of_its_id(known: Client) -> None:
    [row] = await memory.listed(known, "eve", None, None, False, 5)
    assert (await memory.one(known, "eve", row["id"][:8]))["text"] == "eve"
    with pytest.raises(Missing, match="no memory"):
        await memory.one(known, "ann", row["id"])


async def test_what_was_remembered_for_an_answer_is_told_of_the_last_turn_or_of_a_named_one(
    known: Client,
) -> None:
    store = await known.store()
    for name, items in (("m1", [{"id": "1", "text": "green"}]), ("m2", [])):
        await store.insert(
            TurnRow(
                turn_id=name,
                agent="chatter",
                session_id="s",
                user_id="ann",
                state="complete",
                started_at=now(),
            )
        )
        if items:
            step = {"turn_id": name, "agent": "chatter", "number": 1, "kind": "memory", "started_at": now()}
            await store.insert(TurnStep(**step, detail={"query": "colour?", "items": items}))
    assert (await memory.why(known, "ann", ""))["remembered"] == []
    told = await memory.why(known, "ann", "m1")
    assert (told["query"], told["remembered"]) == ("colour?", [{"id": "1", "text": "green"}])
    with pytest.raises(UsageError, match=r"there is no turn .* of eve"):
        await memory.why(known, "eve", "m1")
