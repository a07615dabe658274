"""Chunks that are joined are the answer once, whoever tells them again."""

from __future__ import annotations

from shared.client.turn import Joined, TurnEvent


def text(*told: list[TurnEvent]) -> str:
    """What somebody has who joins the chunks."""
    return "".join(event.payload["content"] for events in told for event in events if event.kind == "chunk")


def test_pieces_that_are_told_again_in_smaller_ones_are_not_heard_twice() -> None:
    joined = Joined()
    first = joined.add(1, "One two three")
    joined.again(0)
    again = [joined.add(1, piece) for piece in ("One", " two", " three", " four")]
    assert text(first, *again, joined.end("One two three four")) == "One two three four"


def test_another_text_is_announced_and_comes_whole() -> None:
    joined = Joined()
    first = joined.add(1, "One two")
    joined.again(0)
    second = joined.add(1, "Uno dos")
    assert [event.kind for event in second] == ["restart", "chunk"]
    assert text(first, second, joined.end("Uno dos")) == "One two\n\nUno dos"


def test_answers_around_calls_of_tools_are_paragraphs() -> None:
    joined = Joined()
    assert text(joined.add(1, "Let me look."), joined.add(2, "Found it.")) == "Let me look.\n\nFound it."
    assert joined.end("Found it.") == []


def test_an_answer_that_begins_anew_leaves_those_before_it() -> None:
    joined = Joined()
    told = [joined.add(1, "Let me look."), joined.add(2, "Fou")]
    joined.again(2)
    told.append(joined.add(2, "Found it."))
    assert text(*told) == "Let me look.\n\nFound it."


def test_what_was_never_told_comes_at_the_end() -> None:
    joined = Joined()
    assert text(joined.end("All of it.")) == "All of it."
    half = Joined()
    assert text(half.add(1, "All of"), half.end("All of it.")) == "All of it."
