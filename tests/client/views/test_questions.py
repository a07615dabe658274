"""What Chatter asked a person: found until it is answered, in that conversation or from anywhere."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

from shared.bus.messages import Output
from shared.client import Client
from shared.client.views import inbox, questions
from shared.store.base import Store
from shared.store.factory import store_file
from shared.store.records import ConversationMessage, Session, Setting, TurnRow
from shared.store.sqlite import SqliteStore

CALL = {
    "type": "tool_use", "id": "c", "name": "escalate_to_human",
    "input": {"question": "Which database?", "context": "Both would do.", "options": ["SQLite", "Postgres"]},
}  # fmt: skip


async def stored(client: Client) -> Store:
    file = SqliteStore(store_file(client.settings))
    await file.open()
    await file.close()
    return await client.store()


async def turn(
    store: Store, id: str, seq: int, *answer: dict[str, Any], state: str = "awaiting_input", user: str | None = "ada",
    session: str = "user:ada",
) -> None:  # fmt: skip
    """A turn that a person's words opened, or for no `user` the news of a task, and how it ended."""
    rows = [("user", [{"type": "text", "text": "Hi"}], user), ("assistant", [*answer], None)]
    for number, (role, content, who) in enumerate(rows, seq):
        made = {"session_id": session, "seq": number, "turn_id": id, "role": role, "content": content}
        await store.insert(ConversationMessage.model_validate({**made, "user_id": who}))
    ended = {"created_at": datetime.now(UTC) - timedelta(minutes=10) + timedelta(seconds=seq)}
    await store.insert(
        TurnRow.model_validate(
            {
                "turn_id": id,
                "agent": "chatter",
                "session_id": session,
                "user_id": "ada",
                "state": state,
                **ended,
            }
        )
    )


async def found(client: Client, session: str = "") -> list[str]:
    return [one.turn for one in await questions.questions(client, "ada", session)]


async def test_a_question_is_open_until_its_person_says_something_there(client: Client) -> None:
    store = await stored(client)
    await turn(store, "t-1", 1, CALL)
    await turn(store, "t-2", 3, {"type": "text", "text": "Noted."}, state="complete", user=None)
    [one] = await questions.questions(client, "ada")
    assert (one.turn, one.asked, one.options) == ("t-1", "Which database?", ("SQLite", "Postgres"))
    output = one.output("ada")
    assert (output.status, output.id, output.options) == ("awaiting_input", "t-1.end", ["SQLite", "Postgres"])
    assert await questions.questions(client, "bob") == [] == await found(client, "another")
    await turn(store, "t-3", 5, {"type": "text", "text": "SQLite it is."}, state="complete")
    assert await found(client) == []


async def test_a_question_that_is_being_answered_is_not_open(client: Client) -> None:
    await turn(await stored(client), "t-1", 1, CALL)
    assert await found(client) == ["t-1"]
    await client.reach()
    await client.say("SQLite", "ada")
    assert await found(client) == []


async def test_a_question_of_a_conversation_that_was_cleared_is_gone(client: Client) -> None:
    store = await stored(client)
    await turn(store, "t-1", 1, CALL)
    await store.upsert([Session(key="user:ada", clear_at=datetime.now(UTC))])
    assert await found(client) == []


async def test_money_that_a_turn_asks_for_is_a_question_until_it_is_answered(client: Client) -> None:
    store = await stored(client)
    await turn(store, "t-1", 1, {"type": "text", "text": "I got half way."})
    kept = Setting(
        scope="session:user:ada", key="budget", value={"scope": "turn", "dollars": 2, "user_id": "ada"}
    )
    await store.upsert([kept])
    [one] = await questions.questions(client, "ada")
    assert "The budget of one turn" in one.asked and one.options == ("raise", "split", "stop")
    await store.update(Setting, {"value": {**kept.value, "answer": "m"}}, {"id": kept.id})
    assert await found(client) == []


async def test_the_inbox_lists_it_with_the_command_that_answers_it(client: Client) -> None:
    store = await stored(client)
    await turn(store, "t-1", 1, CALL)
    await turn(store, "t-2", 1, CALL, session="my shop")
    items = {item.id: item for item in await inbox.inbox(client, "ada")}
    assert (items["t-1.end"].kind, items["t-1.end"].what) == ("question", "Chatter asks: Which database?")
    assert items["t-1.end"].answer == 'promptdock ask "…"'
    assert items["t-2.end"].answer == "promptdock ask \"…\" --session 'my shop'"
    assert items["t-2.end"].options == ("SQLite", "Postgres")


async def test_the_list_is_said_to_change_when_somebody_decides_or_rows_do(client: Client) -> None:
    await client.reach()
    heard: asyncio.Queue[None] = asyncio.Queue()
    listening = asyncio.create_task(inbox.changes(client, lambda: heard.put_nowait(None)))
    async with asyncio.timeout(20):
        await heard.get()
        await client.say("Hello", "ada")
        await heard.get()
        await client.bus.publish(client.names.board, b"tasks")
        await heard.get()
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)


def test_a_question_is_shown_once_though_the_text_may_hold_it() -> None:
    fields: dict[str, Any] = {"id": "o", "session_id": "s", "question": "Which port?"}
    asks = Output(user_id="ada", content="I can go on.", status="awaiting_input", **fields)
    assert questions.unsaid(asks) == "Which port?"
    assert questions.unsaid(asks.model_copy(update={"content": "Now: Which port?"})) == ""
    assert questions.unsaid(asks.model_copy(update={"status": "complete"})) == ""


def test_options_have_numbers_and_are_cut_where_a_width_is_given() -> None:
    assert questions.numbered(["80", "8080"]) == ["  1. 80", "  2. 8080"]
    assert questions.numbered(["a\nlong one"], 4, 6) == ["    1. a lon…"]
