"""A conversation is cleared, saved, restored and put to rest, each by a turn of its own: once or not at all."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from tests.support.messages_api import MessagesApi
from tests.support.messages_script import words
from tests.support.processes import Site, Worker, until
from tests.support.wire import Message, Wire

ASKED = "Summarize the conversation below"
SETTINGS = {"SESSION_IDLE": "3600000"}
RULES: list[dict[str, Any]] = [
    {"user": ASKED, "steps": [{"text": "They chose a blue fence."}]},
    {
        "user": "save this yourself",
        "steps": [
            {"tools": [{"name": "save_context", "input": {"description": "the fence"}}]},
            {"tools": [{"name": "clear_context", "input": {}}]},
            {"text": "It is saved, and we begin anew."},
        ],
    },
    {"steps": [{"text": "Noted"}]},
]
_people = itertools.count(1)


@pytest.fixture
def user() -> str:
    """Somebody who has said nothing yet."""
    return f"ann{next(_people)}"


def command(wire: Wire, user: str, tool: str, session: str = "", **arguments: Any) -> Message:
    """One tool as a turn of a conversation."""
    return wire.closing(
        wire.send(
            user=user,
            type="command",
            tool=tool,
            arguments=arguments,
            session_id=session or f"user:{user}",
        )
    )


def shown(api: MessagesApi) -> list[str]:
    """What the model was shown last, message by message."""
    return [words(message["content"]) for message in api.requests[-1]["messages"]]


def kept(place: Site, user: str, least: int) -> list[dict[str, Any]]:
    """The messages that the Store has of a conversation, when these are there."""
    sql = "select * from conversation_messages where session_id = ? order by seq"
    return until(lambda: rows if len(rows := place.query(sql, f"user:{user}")) >= least else [], what="them")


def saved(place: Site, user: str) -> list[dict[str, Any]]:
    return place.query("select * from snapshots where kind = 'saved' and session_id = ?", f"user:{user}")


@pytest.fixture
def chatter(place: Site) -> Worker:
    """One that lives."""
    alive = [worker for worker in place.workers if worker.process.poll() is None]
    return alive[0] if alive else place.up("chatter")[0]


@pytest.mark.parametrize("tool", ["clear_context", "save_context", "restore_context"])
def test_a_worker_that_dies_in_the_middle_leaves_it_done_once(
    place: Site, wire: Wire, api: MessagesApi, user: str, tool: str, chatter: Worker
) -> None:
    wire.ask("The fence is to be blue", user=user)
    before = command(wire, user, "save_context", description="fence")["result"]
    bought = sum(ASKED in words(body["messages"][-1]["content"]) for body in api.requests)
    until(lambda: saved(place, user))
    chatter.kill()
    (mortal,) = place.up("chatter", PROMPTDOCK_FAULT="answer stored,window changed")
    arguments = {"id": before["saved"]} if tool == "restore_context" else {}
    id = wire.send(user=user, type="command", tool=tool, arguments=arguments, session_id=f"user:{user}")
    mortal.ended()
    assert len(saved(place, user)) == 1, "nothing was done yet"
    place.up("chatter")
    told = wire.closing(id)
    assert told["status"] == "complete", told
    wire.ask("Which colour?", user=user)
    view = "\n".join(shown(api))
    assert ("The fence is to be blue" in view) == (tool != "clear_context")
    rows = kept(place, user, 4)
    assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1)), "no number twice, none left out"
    assert len(until(lambda: saved(place, user))) == (2 if tool == "save_context" else 1)
    again = sum(ASKED in words(body["messages"][-1]["content"]) for body in api.requests) - bought
    assert again == (1 if tool == "save_context" else 0), "a summary is bought once"


def test_what_is_cleared_stays_in_the_history_and_is_shown_no_more(
    place: Site, wire: Wire, api: MessagesApi, user: str, chatter: Worker
) -> None:
    wire.ask("My cat is called Momo", user=user)
    told = command(wire, user, "clear_context")
    assert told["content"].startswith("Cleared.") and told["result"]["cleared"] == 2
    wire.ask("What is my cat called?", user=user)
    assert not any("Momo" in text for text in shown(api))
    assert not any("earlier messages" in text for text in shown(api))
    rows = kept(place, user, 6)
    assert "Momo" in rows[0]["content"]
    cleared = "select 1 from sessions where key = ? and clear_seq = 2"
    until(lambda: place.query(cleared, f"user:{user}"))
    full = command(wire, user, "get_context")["result"]
    assert (full["shown"], full["before"]) == (4, 2) and "4 of at most 50" in full["told"]


def test_what_is_saved_comes_back_with_summary_messages_and_calls(
    place: Site, wire: Wire, api: MessagesApi, user: str, chatter: Worker
) -> None:
    wire.ask("The fence is to be blue", user=user)
    made = command(wire, user, "save_context", description="fence")
    assert made["result"]["messages"] == 2 and "fence" in made["content"]
    wire.ask("Forget the fence", user=user)
    command(wire, user, "clear_context")
    told = command(wire, user, "restore_context", id=made["result"]["saved"][:8])
    assert told["status"] == "complete", told
    wire.ask("Which colour?", user=user)
    view = shown(api)
    assert "They chose a blue fence." in view[0] and "The fence is to be blue" in view[2]
    assert not any("Forget the fence" in text for text in view)
    (row,) = until(lambda: saved(place, user))
    assert row["summary"] == "They chose a blue fence." and row["description"] == "fence"
    assert [item["role"] for item in json.loads(row["content"])] == ["user", "assistant"]


def test_the_model_may_save_and_clear_and_it_takes_effect_with_its_answer(
    place: Site, wire: Wire, api: MessagesApi, user: str, chatter: Worker
) -> None:
    wire.ask("The fence is to be blue", user=user)
    assert wire.ask("Please save this yourself", user=user)["content"] == "It is saved, and we begin anew."
    wire.ask("And now?", user=user)
    view = shown(api)
    assert "chatter cleared the conversation" in view[0] and len(view) == 3
    (row,) = until(lambda: saved(place, user))
    assert (row["description"], row["tool_calls"]) == ("the fence", 2)
    assert row["message_count"] == 8, "its own turn as well"


def test_nothing_is_saved_or_cleared_where_nothing_was_said(wire: Wire, user: str, chatter: Worker) -> None:
    for tool in ("save_context", "clear_context"):
        told = command(wire, user, tool)
        assert told["status"] == "error" and "nothing to" in told["content"], told


def test_what_somebody_else_saved_is_refused_and_so_is_what_is_gone(
    wire: Wire, user: str, chatter: Worker
) -> None:
    wire.ask("It is a secret", user=user)
    made = command(wire, user, "save_context")["result"]["saved"]
    told = command(wire, f"{user}-eve", "restore_context", id=made)
    assert told["status"] == "error" and "is not" in told["content"], told
    assert "secret" not in json.dumps(told)
    told = command(wire, user, "restore_context", id="00000000")
    assert told["status"] == "error" and "there is nothing saved as" in told["content"]


def test_nobody_clears_the_conversation_of_another(wire: Wire, user: str, chatter: Worker) -> None:
    wire.ask("Mine", user=user, session_id=f"{user}-own")
    told = command(wire, "eve", "clear_context", session=f"{user}-own")
    assert told["status"] == "error" and "somebody else" in told["content"]


def test_a_conversation_that_rests_is_saved_and_cleared_once_and_its_person_told(
    place: Site, wire: Wire, api: MessagesApi, user: str
) -> None:
    for worker in place.workers:
        worker.kill()
    first, second = place.up("chatter", "chatter", SESSION_IDLE="0")
    wire.ask("The fence is to be blue", user=user)
    until(lambda: place.query("select 1 from sessions where key = ? and talked", f"user:{user}"))
    first.kill()
    second.kill()
    (mortal,) = place.up("chatter", SESSION_IDLE="500", PROMPTDOCK_FAULT="window changed")
    mortal.ended()
    assert saved(place, user) == []
    place.up("chatter", "chatter", SESSION_IDLE="500")
    session = f"user:{user}"
    told = wire.wait(
        "chatter-output", lambda said: said["session_id"] == session and "saved as" in said["content"]
    )
    (row,) = until(lambda: saved(place, user))
    assert str(row["id"])[:8] in told["content"] and told["user_id"] == user and told["answers"] == []
    audit = until(lambda: place.query("select * from audit_log where session_id = ?", session))
    assert [(one["action"], one["person"]) for one in audit] == [("tool:clear_context:idle", None)]
    until(lambda: not place.query("select 1 from sessions where key = ? and talked", session))
    assert len(saved(place, user)) == 1 and row["summary"] == "They chose a blue fence."
