"""A person's conversations: listed, found, named, put away, forked, exported and imported; nobody else's."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shared.conversation import window
from shared.errors import Missing, ToolError
from shared.memory import recall
from shared.memory.scope import MemoryScope
from shared.store.records import ConversationMessage, Memory, Message, Session, SnapshotRow
from shared.store.row import derived, now
from shared.tools.sessions import category as family
from tests.tools.bench import Bench

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def _message(key: str, seq: int, role: str, *content: Any, **more: Any) -> ConversationMessage:
    blocks = [{"type": "text", "text": one} if isinstance(one, str) else one for one in content]
    fields = {"session_id": key, "seq": seq, "turn_id": f"{key}-{(seq + 1) // 2}", "created_at": AT}
    return ConversationMessage(role=role, content=blocks, **{**fields, **more})


@pytest.fixture
async def talks(bench: Bench) -> Bench:
    """Two conversations of Ada's, one of Eve's."""
    rows = [
        Session(key="fence", user_id="ada", title="The fence", last_active_at=now()),
        Session(key="cake", user_id="ada", title="A cake", last_active_at=now() - timedelta(days=1)),
        Session(key="command:ada", user_id="ada", last_active_at=now()),
        Session(key="evil", user_id="eve", title="Eve's"),
        Session(key="asks:chatter:1", title="What anybody asked"),
        _message(
            "fence",
            1,
            "user",
            "[Current date and time: 2026-01-02 03:04 UTC]",
            "[from Ada]: Paint the fence",
            user_name="Ada",
            source_message_id="m1",
        ),
        _message("fence", 2, "assistant", {"type": "tool_use", "id": "c1", "name": "read_file", "input": {}}),
        _message(
            "fence", 3, "user", {"type": "tool_result", "tool_use_id": "c1", "content": "a purple fence"}
        ),
        _message("fence", 4, "assistant", "In blue?\nOr in purple?"),
        _message("fence", 5, "user", "[from Ada]: Blue", user_name="Ada", source_message_id="m2"),
        _message("fence", 6, "assistant", "It is blue."),
        _message("cake", 1, "user", "[from Ada]: Bake a cake", user_name="Ada"),
        _message("evil", 1, "user", "[from Eve]: a purple secret", user_name="Eve"),
    ]
    await bench.store.upsert(rows)
    return bench


async def test_a_persons_own_conversations_are_listed_the_last_used_first(talks: Bench) -> None:
    found = (await talks.ok("list_sessions"))["sessions"]
    assert [card["session_id"] for card in found] == ["fence", "cake"]
    [second] = (await talks.ok("list_sessions", limit=1, offset=1))["sessions"]
    assert second["title"] == "A cake"


async def test_words_find_the_conversations_in_which_they_were_said(talks: Bench) -> None:
    [found] = (await talks.ok("search_sessions", query="purple"))["sessions"]
    assert (found["session_id"], found["found"]) == ("fence", "Or in purple?")
    [found] = (await talks.ok("search_sessions", query="bake"))["sessions"]
    assert found["session_id"] == "cake"
    assert (await talks.ok("search_sessions", query="secret"))["sessions"] == []


async def test_a_name_that_a_person_gives_stays(talks: Bench) -> None:
    told = await talks.twice("rename_session", session_id="fence", title="  The\nblue fence ")
    assert (told["title"], told["before"]) == ("The blue fence", "The fence")
    [row] = await talks.store.select(Session, {"key": "fence"})
    assert (row.title, row.titled) == ("The blue fence", "person")
    assert "empty" in await talks.no("rename_session", session_id="fence", title=" ")


async def test_what_is_put_away_is_listed_apart_and_comes_back(talks: Bench) -> None:
    await talks.twice("archive_session", session_id="cake")
    assert [card["session_id"] for card in (await talks.ok("list_sessions"))["sessions"]] == ["fence"]
    [card] = (await talks.ok("list_sessions", archived=True))["sessions"]
    assert card["session_id"] == "cake"
    [found] = (await talks.ok("search_sessions", query="cake"))["sessions"]
    assert found["archived"]
    await talks.ok("archive_session", session_id="cake", archived=False)
    assert len((await talks.ok("list_sessions"))["sessions"]) == 2


@pytest.mark.parametrize("key", ["evil", "asks:chatter:1"])
@pytest.mark.parametrize("tool", ["rename_session", "archive_session", "fork_session", "export_session"])
async def test_another_persons_conversation_is_refused(talks: Bench, tool: str, key: str) -> None:
    more = {"title": "mine"} if tool == "rename_session" else {}
    told = await talks.no(tool, session_id=key, here={"session_id": key}, **more)
    assert "is not ada's" in told and "secret" not in told
    assert "there is no conversation" in await talks.no(tool, session_id="nowhere", **more)
    [row] = await talks.store.select(Session, {"key": key})
    assert row.title != "mine" and not row.archived


async def test_a_fork_goes_on_from_the_message_that_is_named(talks: Bench) -> None:
    told = await talks.twice("fork_session", session_id="fence", message_id="m1")
    assert (told["messages"], told["title"]) == (1, "The fence (fork)")
    found, last = await window.recall(talks.store, told["session_id"])
    assert last == 1 and "Paint the fence" in found[0]["content"][1]["text"]
    rows = await talks.store.select(ConversationMessage, {"session_id": told["session_id"]})
    assert [(row.source_message_id, row.said_at) for row in rows] == [("m1", AT)]
    assert len(await talks.store.select(ConversationMessage, {"session_id": "fence"})) == 6
    assert "no message 'm9'" in await talks.no("fork_session", session_id="fence", message_id="m9")


async def test_a_fork_at_a_call_holds_its_result_too(talks: Bench) -> None:
    told = await talks.ok("fork_session", session_id="fence", message_id="#2", title="At the call")
    found, _ = await window.recall(talks.store, told["session_id"])
    assert [item["content"][-1]["type"] for item in found] == ["text", "tool_use", "tool_result"]


async def test_a_fork_is_named_by_an_answer_as_people_read_it(talks: Bench) -> None:
    said = {"from_agent": "user", "to_agent": "chatter", "session_id": "fence"}
    late = Message(message_id="joined", type="amend", created_at=AT + timedelta(seconds=3), **said)
    await talks.store.upsert([late])
    for at, messages in (("fence-2.end", 4), ("fence-1.end", 3), ("joined", 6)):
        told = await talks.ok("fork_session", session_id="fence", message_id=at)
        assert told["messages"] == messages, at
    assert "no message" in await talks.no("fork_session", session_id="fence", message_id="evil.end")


async def test_what_is_imported_is_remembered_unless_that_is_not_wanted(talks: Bench) -> None:
    at = "2025-05-06T07:08:09Z"
    lines = [
        {"role": "user", "content": "The heron is called Ottokar", "id": "h1", "timestamp": at},
        {"role": "assistant", "content": "Noted, Ottokar."},
        {"role": "system", "content": "Be kind to Ottokar."},
    ]
    document = json.dumps({"messages": lines})
    told = await talks.twice("import_session", content=document)
    rows = await talks.store.select(Memory, {"session_id": told["session_id"]}, order=[("created_at", "asc")])
    assert sorted((row.body, row.subject) for row in rows) == [
        ("Noted, Ottokar.", "chatter"),
        ("The heron is called Ottokar", "ada"),
    ]
    assert rows[0].created_at.isoformat().startswith("2025-05-06T07:08:09")
    assert rows[0].detail["message_id"] == "h1"
    assert {row.origin["foreign"] for row in rows} == {"an imported conversation"}
    [found, *_] = await recall.search(talks.store, "heron", MemoryScope("ada"), 5)
    assert found.session_id == told["session_id"]
    assert await recall.search(talks.store, "heron", MemoryScope("eve"), 5) == []
    silent = await talks.ok("import_session", content=document, use_memory=False)
    assert not await talks.store.count(Memory, {"session_id": silent["session_id"]})


async def test_a_fork_has_the_view_the_summary_and_the_mark_of_its_origin(talks: Bench) -> None:
    await talks.store.update(
        Session, {"clear_seq": 2, "origin": {"foreign": "a page of eve's"}}, {"key": "fence"}
    )
    await talks.store.upsert(
        [SnapshotRow(session_id="fence", kind="summary", summary="Blue", first_seq=3, last_seq=4)]
    )
    late = await talks.ok("fork_session", session_id="fence")
    assert "made_after_reading" in late
    found, _ = await window.recall(talks.store, late["session_id"])
    assert [item["seq"] for item in found] == [3, 4, 5, 6]
    assert {item["foreign"] for item in found} == {"a page of eve's"}
    [summary] = await talks.store.select(SnapshotRow, {"session_id": late["session_id"]})
    assert (summary.summary, summary.last_seq) == ("Blue", 4)
    early = await talks.ok("fork_session", session_id="fence", message_id="#1")
    assert [item["seq"] for item in (await window.recall(talks.store, early["session_id"]))[0]] == [1]
    assert not await talks.store.count(SnapshotRow, {"session_id": early["session_id"]})


async def test_what_is_exported_is_imported_again_with_its_ids_and_times(talks: Bench) -> None:
    document = json.loads((await talks.ok("export_session", session_id="fence"))["content"])
    assert document["title"] == "The fence"
    assert [(line["role"], line["content"]) for line in document["messages"]] == [
        ("user", "Paint the fence"),
        ("assistant", "In blue?\nOr in purple?"),
        ("user", "Blue"),
        ("assistant", "It is blue."),
    ]
    assert document["messages"][0]["id"] == "m1" and document["messages"][0]["user_name"] == "Ada"
    told = await talks.twice("import_session", content=json.dumps(document))
    assert told["messages"] == 4
    again = json.loads((await talks.ok("export_session", session_id=told["session_id"]))["content"])
    assert again == document
    found, last = await window.recall(talks.store, told["session_id"])
    assert last == 4 and {item["foreign"] for item in found} == {"an imported conversation"}


async def test_a_conversation_is_exported_for_reading_and_in_parts(talks: Bench) -> None:
    told = await talks.ok("export_session", session_id="fence", format="markdown", limit=2)
    assert told["content"].startswith(
        "# The fence\n\n## Ada · 2026-01-02 03:04 UTC\n\nPaint the fence\n\n## "
    )
    assert (told["messages"], told["next"]) == (4, 2)
    rest = await talks.ok("export_session", session_id="fence", format="markdown", offset=2)
    assert "It is blue." in rest["content"] and "next" not in rest


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("no json", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("[]", "the file holds a list"),
        ('{"messages": []}', "messages: List should have at least 1"),
        (
            '{"messages": [{"role": "user", "content": "x"}, {"role": "boss", "content": "x"}]}',
            "message 2 role",
        ),
        ('{"messages": [{"role": "user", "content": "x", "timestamp": "soon"}]}', "message 1 timestamp"),
        ('{"messages": [{"role": "user", "content": [{"type": "image"}]}]}', "only text can be imported"),
        ('{"messages": [{"role": "user", "content": " "}]}', "all its messages are empty"),
    ],
)
async def test_a_broken_file_is_refused_in_words_and_leaves_nothing(
    talks: Bench, content: str, why: str
) -> None:
    before = await talks.store.count(Session), await talks.store.count(ConversationMessage)
    assert why in await talks.no("import_session", content=content)
    assert (await talks.store.count(Session), await talks.store.count(ConversationMessage)) == before


async def test_a_long_file_comes_in_parts_and_no_part_changes_what_people_said(talks: Bench) -> None:
    def part(*words: str) -> str:
        return json.dumps({"messages": [{"role": "user", "content": word} for word in words]})

    first = await talks.ok("import_session", content=part("one", "two"), title="Long")
    key = first["session_id"]
    told = await talks.twice("import_session", content=part("three"), session_id=key, after=2)
    assert told["messages"] == 3
    found, _ = await window.recall(talks.store, key)
    assert [item["content"][0]["text"] for item in found] == ["one", "two", "three"]
    assert "3 messages are there" in await talks.no(
        "import_session", content=part("x"), session_id=key, after=9
    )
    assert "by itself" in await talks.no("import_session", content=part("x"), session_id="fence", after=1)
    assert "is not ada's" in await talks.no("import_session", content=part("x"), session_id="evil", after=1)


async def test_another_conversation_begins_under_a_title(talks: Bench) -> None:
    told = await talks.twice("new_session", title="The roof")
    [row] = await talks.store.select(Session, {"key": told["session_id"]})
    assert (row.title, row.user_id, row.titled) == ("The roof", "ada", "person")


async def test_what_is_saved_is_meant_by_the_beginning_of_its_id_or_of_its_description_and_only_its_persons(
    talks: Bench,
) -> None:
    here = talks.context(user_id="ada", session_id="fence")
    rows = [
        SnapshotRow(
            id=derived("saved", key),
            session_id=key,
            agent="chatter",
            kind="saved",
            user_id=user,
            description=about,
            content=[],
        )
        for key, user, about in (
            ("fence", "ada", "Blue fence"),
            ("cake", None, "Rested"),
            ("evil", "eve", "Evil"),
        )
    ]
    await talks.store.upsert(rows)
    for row in rows[:2]:
        for typed in (str(row.id), str(row.id)[:12].upper(), row.description[:4]):
            assert (await family.saved(here, typed)).id == row.id
    with pytest.raises(ToolError, match="not ada's"):
        await family.saved(here, str(rows[2].id)[:8])
    for typed in ("Evil", "zzzz", "0000", ""):
        with pytest.raises(Missing):
            await family._saved(here, typed)
