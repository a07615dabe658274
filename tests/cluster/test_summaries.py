"""A long conversation on real processes: its summary is bought beside the answers, once, and shown."""

from __future__ import annotations

from typing import Any

from tests.support.messages_api import MessagesApi
from tests.support.messages_script import words
from tests.support.processes import Site, until
from tests.support.wire import Wire

ASKED = "Summarize the conversation below"
RULES: list[dict[str, Any]] = [
    {"user": ASKED, "steps": [{"text": "They talk about cats.", "hold": "summary"}]},
    {"steps": [{"text": "Noted"}]},
]
MESSAGES = 19  # of a person, each with its answer: over thirty-six, where no rest is waited for


def bought(api: MessagesApi) -> list[str]:
    """The calls that asked for a summary."""
    asked = [words(body["messages"][0]["content"]) for body in api.requests]
    return [text for text in asked if text.startswith(ASKED)]


def summaries(place: Site) -> list[dict[str, Any]]:
    return place.query("select * from snapshots where session_id = 'user:ann'")


def test_a_summary_is_made_beside_the_answers_bought_once_and_shown_from_then_on(
    place: Site, wire: Wire, api: MessagesApi
) -> None:
    (mortal,) = place.up("chatter", PROMPTDOCK_FAULT="answer stored")  # dies of the summary that it bought
    for number in range(1, MESSAGES + 1):
        wire.ask(f"ann says {number}", user="ann")
    until(lambda: bought(api), what="the call for a summary")
    wire.ask(f"ann says {MESSAGES + 1}", user="ann")  # it is answered while the summary is awaited
    assert len(api.requests[-1]["messages"]) == 2 * MESSAGES + 1
    api.released.add("summary")
    mortal.ended()
    assert summaries(place) == []
    place.up("chatter")
    (row,) = until(lambda: summaries(place), what="the summary")
    assert (row["summary"], row["first_seq"], row["last_seq"]) == ("They talk about cats.", 1, 24)
    wire.ask(f"ann says {MESSAGES + 2}", user="ann")
    shown = api.requests[-1]["messages"]
    assert words(shown[0]["content"]).endswith("They talk about cats.")
    assert words(shown[2]["content"]) == "[from ann]: ann says 13"
    (told,) = bought(api)
    assert "ann says 12" in told and "ann says 13" not in told
    usage = "select count(*) as n from token_usage where session_id = 'user:ann'"
    until(lambda: place.query(usage)[0]["n"] == MESSAGES + 3, what="the price of all calls")


def test_what_was_summarised_is_found_again(wire: Wire, place: Site) -> None:
    kept = "select 1 from conversation_messages where session_id = 'user:ann' and content like '%says 2%'"
    until(lambda: place.query(kept), what="the messages in the Store")
    found = wire.command("memory_search", user="ann", project_id="default", query="ann says 2")["result"]
    assert any("ann says 2" in hit["text"] for hit in found["results"] if hit["kind"] == "conversation")


def test_nobody_else_finds_it(wire: Wire) -> None:
    found = wire.command("memory_search", user="eve", project_id="default", query="ann says 2")["result"]
    assert found["results"] == []
