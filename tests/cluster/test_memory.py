"""Memory on real processes: drawn beside the answers, once, and recalled in another conversation."""

from __future__ import annotations

import json
from typing import Any

from tests.support.messages_api import MessagesApi
from tests.support.messages_script import words
from tests.support.processes import Site, until
from tests.support.wire import Wire

ASKED = "Draw out of the conversation"
FACT = {
    "subject": "Ann",
    "about": "favourite colour",
    "text": "Ann's favourite colour is green.",
    "sure": "explicit",
}
RULES: list[dict[str, Any]] = [
    {"user": ASKED, "steps": [{"text": json.dumps({"facts": [{**FACT, "from": 1}]}), "hold": "draw"}]},
    {"steps": [{"text": "Noted"}]},
]
SETTINGS = {"MEMORY_REST": "2500"}
OTHER = "ann-elsewhere"


def bought(api: MessagesApi) -> list[str]:
    """The calls that drew out memories."""
    asked = [words(body["messages"][0]["content"]) for body in api.requests]
    return [text for text in asked if text.startswith(ASKED)]


def facts(place: Site, user: str = "ann") -> list[dict[str, Any]]:
    return place.query("select * from memories where kind = 'fact' and user_id = ?", user)


def turns(place: Site, user: str) -> list[str]:
    rows = place.query(
        "select body from memories where kind = 'turn' and user_id = ? order by created_at", user
    )
    return [row["body"] for row in rows]


def told(api: MessagesApi) -> str:
    """The newest message of the last request of a conversation."""
    body = [body for body in api.requests if not words(body["messages"][0]["content"]).startswith(ASKED)][-1]
    return str(body["messages"][-1]["content"][-1]["text"])


def test_facts_are_drawn_beside_the_answers_and_bought_once_though_the_worker_dies(
    place: Site, wire: Wire, api: MessagesApi
) -> None:
    (mortal,) = place.up("chatter", PROMPTDOCK_FAULT="answer stored")  # dies of what it bought
    wire.ask("Green is my favourite colour", user="ann")
    wire.ask("And I like the sea", user="ann")
    until(lambda: bought(api), what="the call that draws")
    wire.ask("Blue is a colour too", user="ann")  # it is answered while the call is awaited
    api.released.add("draw")
    mortal.ended()
    assert facts(place) == []
    place.up("chatter")
    (row,) = until(lambda: facts(place), what="the fact")
    assert (row["body"], row["confidence"], row["session_id"]) == (FACT["text"], 0.95, "user:ann")
    until(lambda: len(bought(api)) == 2, what="the call for what was said meanwhile")
    first, second = bought(api)
    assert "Green is my favourite" in first and "like the sea" in first and "Blue is a colour" not in first
    assert (
        "Blue is a colour" in second
        and "K1. Ann · favourite colour" in second
        and "like the sea" not in second
    )
    assert len(facts(place)) == 1


def test_it_is_recalled_in_another_conversation_last_in_the_newest_message(
    wire: Wire, api: MessagesApi
) -> None:
    wire.ask("What is my favourite colour?", user="ann", session_id=OTHER)
    lines = told(api).splitlines()
    assert lines[0].startswith("[Current date and time:")
    assert any(line.startswith("- fact, 0.95 sure") and FACT["text"] in line for line in lines)
    assert any("Green is my favourite colour" in line for line in lines if line.startswith("- ann:"))
    before = api.requests[-1]["messages"]
    wire.ask("And what else?", user="ann", session_id=OTHER)
    assert api.requests[-1]["messages"][: len(before)] == before  # what was sent stays byte for byte


def test_what_was_remembered_for_an_answer_can_be_asked(place: Site) -> None:
    sql = "select detail from turn_steps where kind = 'memory' and session_id = ?"
    (row, *_) = until(lambda: place.query(sql, OTHER), what="the step")
    items = json.loads(row["detail"])["items"]
    assert FACT["text"] in [item["text"] for item in items]


def test_nobody_else_recalls_it(wire: Wire, api: MessagesApi) -> None:
    wire.ask("What is the favourite colour?", user="eve")
    assert "green" not in told(api)
    found = wire.command("memory_search", user="eve", project_id="default", query="favourite colour")[
        "result"
    ]
    assert "green" not in json.dumps(found)


def test_who_wants_no_memory_neither_reads_nor_writes_it(place: Site, wire: Wire, api: MessagesApi) -> None:
    wire.ask("My favourite colour is a secret", user="ann", session_id="ann-apart", use_memory=False)
    assert "What you remember" not in told(api)
    wire.ask("This one is remembered again", user="ann", session_id="ann-apart")
    until(lambda: "This one is remembered again" in turns(place, "ann"), what="the row of the turn after it")
    assert not [text for text in turns(place, "ann") if "secret" in text]
