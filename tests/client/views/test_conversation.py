"""A conversation as people read it, and which there are."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.client import Client
from shared.client.views.conversation import listed, own
from shared.client.views.conversation.transcript import entries_of, permission_of, transcript
from shared.errors import UsageError
from shared.store.records import ConversationMessage, Message, Session, TurnRow, TurnStep
from shared.store.row import new_id

START = datetime(2026, 11, 1, 12, tzinfo=UTC)


def message(number: int, type: str = "message", id: str = "", seconds: int = 0, **payload: Any) -> Message:
    """The message of that number in the conversation `talk`."""
    person = type in ("message", "approval", "command")
    return Message(
        id=new_id(),
        created_at=START + timedelta(seconds=seconds or number),
        message_id=id or f"m{number}",
        from_agent="user" if person else "chatter",
        to_agent="chatter" if person else "user",
        type=type,
        payload={"content": f"text {number}", **payload},
        session_id="talk",
        user_id="ann",
    )


async def kept(client: Client, *rows: Any) -> None:
    await (await client.store()).upsert(rows)


async def test_words_of_all_surfaces_stand_in_one_conversation_with_where_they_came_from(
    reader: Client,
) -> None:
    await kept(
        reader,
        message(1, source="discord"),
        message(2, "complete", "m1.end", usage={"input": 10, "output": 2, "cost": 0.5}, model="claude"),
        message(3),
        message(4, "progress", "m3.p1"),
        message(5, "command"),
        message(6, "task_update", "t.end", task={"task_id": "calm-otter", "status": "completed"}),
        message(7, "task_update", "x.away.1-0.end"),
    )
    found = (await transcript(reader, "talk")).entries
    assert [(one.kind, one.source) for one in found] == [
        ("said", "discord"), ("answer", ""), ("said", "redis-cli"), ("update", ""),
    ]  # fmt: skip
    assert (found[1].tokens_in, found[1].tokens_out, found[1].cost, found[1].turn) == (10, 2, 0.5, "m1")
    assert found[3].task == "calm-otter"


async def test_an_answer_has_what_its_turn_asked_of_others_and_how_long_it_took(reader: Client) -> None:
    step = {"tool": "consult_planner", "arguments": {"question": "How?"}, "content": {"answer": "So."}}
    more = {"started_at": START, "ended_at": START + timedelta(seconds=3)}
    await kept(
        reader,
        message(1),
        message(2, "complete", "m1.end"),
        TurnRow(turn_id="m1", agent="chatter", session_id="talk", state="complete", **more),
        TurnStep(turn_id="m1", agent="chatter", number=1, kind="result", detail=step, ms=900),
        TurnStep(turn_id="m1", agent="planner", number=1, kind="result", detail=step, ms=900),
    )
    answer = (await entries_of(reader, "talk", "m1"))[-1]
    assert answer.seconds == 3
    [call] = answer.calls
    assert (call.agent, call.asked, call.answered, call.ms) == ("planner", "How?", "So.", 900)


async def test_a_long_conversation_is_read_page_by_page_and_nothing_is_lost_between(reader: Client) -> None:
    await kept(reader, *(message(number, seconds=1 + number // 3) for number in range(100)))
    texts: list[str] = []
    before = ""
    for _page in range(20):
        page = await transcript(reader, "talk", before, 10)
        texts = [one.text for one in page.entries] + texts
        if not (before := page.before):
            break
    assert sorted(texts) == sorted(f"text {number}" for number in range(100))
    assert len(texts) == len({*texts})


def _kept(seq: int, text: str, turn: str = "", **more: Any) -> ConversationMessage:
    """A message as the model reads it."""
    fields = {
        "session_id": "talk",
        "seq": seq,
        "role": "user",
        "turn_id": turn or f"t{seq}",
        "user_id": "ann",
    }
    fields["created_at"] = START + timedelta(microseconds=seq)
    return ConversationMessage(content=[{"type": "text", "text": text}], **{**fields, **more})


async def test_what_came_from_elsewhere_stands_above_what_was_said_here_with_its_own_times(
    reader: Client,
) -> None:
    long_ago = START - timedelta(days=400)
    await kept(
        reader,
        _kept(1, "[from Bob]: Blue?", "talk/x", user_name="Bob", said_at=long_ago, source_message_id="b1"),
        _kept(2, "Blue.", "talk/x", role="assistant", user_id=None, said_at=long_ago),
        message(3),
        _kept(3, "[from ann]: text 3", "m3"),
        message(4, "complete", "m3.end"),
        _kept(4, "text 4", "m3", role="assistant"),
    )
    found = (await transcript(reader, "talk")).entries
    assert [(one.kind, one.text) for one in found] == [
        ("said", "Blue?"), ("answer", "Blue."), ("said", "text 3"), ("answer", "text 4"),
    ]  # fmt: skip
    assert (found[0].id, found[0].who, found[0].at) == ("b1", "Bob", long_ago)


async def test_what_the_store_keeps_of_old_messages_is_read_where_they_are_deleted(reader: Client) -> None:
    await kept(reader, _kept(1, "[from ann]: old", "m1"), _kept(2, "Answer", "m1", role="assistant"))
    await kept(reader, message(5), _kept(5, "[from ann]: text 5", "m5"))
    found = (await transcript(reader, "talk")).entries
    assert [one.text for one in found] == ["old", "Answer", "text 5"]


async def test_where_it_was_cleared_is_a_line_and_what_stands_above_stays(reader: Client) -> None:
    step = {"tool": "clear_context", "arguments": {}, "content": {"clears": "when this turn ends"}}
    await kept(
        reader,
        message(1),
        message(2, "complete", "m1.end"),
        message(3, "command"),
        message(4, "complete", "m3.end", result={"cleared": 2}, content="Cleared."),
        _kept(3, "[ann cleared the conversation]", "m3", source="noted"),
        message(5),
        message(6, "complete", "m5.end"),
        TurnStep(turn_id="m5", agent="chatter", number=1, kind="result", detail=step),
        _kept(8, "[from ann]: loaded again", "m7/m1", source="restored", said_at=START),
    )
    found = (await transcript(reader, "talk")).entries
    assert [one.kind for one in found] == ["said", "answer", "mark", "said", "answer", "mark"]
    assert (found[2].text, found[5].text) == ("Cleared.", "Cleared here.")


async def test_an_imported_conversation_of_ten_thousand_messages_is_read_page_by_page(reader: Client) -> None:
    texts = [f"line {number}" for number in range(10_000)]
    await kept(reader, *(_kept(number, text, source="imported") for number, text in enumerate(texts, 1)))
    begun = time.process_time()
    page = await transcript(reader, "talk")
    took = time.process_time() - begun
    assert [one.text for one in page.entries][-1] == texts[-1] and took < 1, took
    read = [one.text for one in page.entries]
    while page.before:
        page = await transcript(reader, "talk", page.before, 500)
        assert len(page.entries) <= 500
        read = [one.text for one in page.entries] + read
    assert read == texts


async def test_what_was_copied_in_one_moment_is_not_parted_between_pages(reader: Client) -> None:
    many = [
        _kept(seq, f"copy {seq}", created_at=START + timedelta(seconds=seq // 25)) for seq in range(1, 100)
    ]
    await kept(reader, *many)
    read: list[str] = []
    before = ""
    for _page in range(20):
        page = await transcript(reader, "talk", before, 10)
        read = [one.text for one in page.entries] + read
        if not (before := page.before):
            break
    assert read == [f"copy {seq}" for seq in range(1, 100)]


async def test_the_agent_that_answers_stands_beside_its_answer(reader: Client) -> None:
    run = TurnRow(turn_id="m1", agent="poet", session_id="talk", state="complete", started_at=START)
    await kept(reader, message(1), message(2, "complete", "m1.end", agent="poet"), run)
    answer = (await transcript(reader, "talk")).entries[-1]
    assert answer.who == "poet"


async def test_a_question_is_open_until_somebody_says_something(reader: Client) -> None:
    await kept(
        reader, message(1), message(2, "awaiting_input", "m1.end", question="Which?", options=["a", "b"])
    )
    assert (await transcript(reader, "talk")).entries[-1].open
    assert (await entries_of(reader, "talk", "m1"))[-1].open
    await kept(
        reader, message(3, "command", seconds=2), message(4, "complete", "m3.end", 2, result={"saved": "x"})
    )
    assert (await transcript(reader, "talk")).entries[1].open, "a save is no answer"
    await kept(reader, message(3))
    assert not (await transcript(reader, "talk")).entries[1].open
    assert not (await entries_of(reader, "talk", "m1"))[-1].open


def test_a_card_that_somebody_made_up_is_read_without_harm() -> None:
    made = permission_of({"id": 7, "about": "nothing", "agent": None, "facts": 3})
    assert (made.id, made.does, made.facts, made.open) == ("7", "use a tool", (), True)


async def test_conversations_are_listed_and_found_by_what_was_said(reader: Client) -> None:
    now = datetime.now(UTC)
    await kept(
        reader,
        Session(key="user:ann", user_id="ann", title="Guest books", last_active_at=now),
        Session(key="command:ann", user_id="ann", title="no words", last_active_at=now),
        Session(key="web-1", user_id="bob", title="Ships", last_active_at=now - timedelta(days=1)),
        ConversationMessage(
            session_id="web-1", seq=1, role="user",
            content=[{"type": "text", "text": "[from bob]: hello\\nThe harbour is full of boats"}], user_id="bob",
        ),
    )  # fmt: skip
    assert [one.key for one in await listed.recent(reader)] == ["user:ann", "web-1"]
    assert [one.key for one in await listed.recent(reader, "ann")] == ["user:ann"]
    [found] = await listed.search(reader, "boat in the harbour")
    assert found.key == "web-1" and "harbour" in found.found
    assert await listed.search(reader, "harbour", "ann") == []


async def test_a_conversation_is_found_by_its_title_or_a_part_of_one(reader: Client) -> None:
    await kept(
        reader,
        Session(key="talk-1", user_id="sue", title="Red tower"),
        Session(key="talk-2", user_id="sue", title="Tower of the harbour"),
        Session(key="tower", user_id="sue", title="Stones"),
        Session(key="talk-3", user_id="eve", title="Ships of Eve"),
    )
    for typed, key in (
        ("red tower", "talk-1"),
        ("Harbour", "talk-2"),
        ("towe", "tower"),
        ("stones", "tower"),
    ):
        assert (await own.meant(reader, "sue", typed)).key == key
    with pytest.raises(UsageError, match="several"):
        await own.meant(reader, "sue", "talk")
    with pytest.raises(UsageError, match="there is no conversation"):
        await own.meant(reader, "sue", "ships of eve")


async def test_where_a_wrong_guess_would_spoil_it_a_conversation_is_named_whole(reader: Client) -> None:
    await kept(
        reader,
        Session(key="sue-boat", user_id="sue", title="The green boat"),
        Session(key="talk-1", user_id="sue", title="Twice"),
        Session(key="talk-2", user_id="sue", title="Twice"),
        Session(key="talk-3", user_id="eve", title="Of Eve"),
    )
    assert (await own.meant(reader, "sue", "boat")).key == "sue-boat"
    for named in ("sue-boat", "the green boat"):
        assert (await own.meant(reader, "sue", named, exact=True)).key == "sue-boat"
    for part in ("boat", "sue-b", "The green", "Of Eve"):
        with pytest.raises(UsageError, match="there is no conversation"):
            await own.meant(reader, "sue", part, exact=True)
    with pytest.raises(UsageError, match=r"several conversations are called 'Twice'.*talk-1, talk-2"):
        await own.meant(reader, "sue", "Twice", exact=True)
