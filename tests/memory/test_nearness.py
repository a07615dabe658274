"""Which messages of a conversation a question is about."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from shared.memory import nearness
from shared.memory.nearness import Speech
from shared.memory.stemming import stem, stems

BEGUN = datetime(2026, 11, 1, tzinfo=UTC)


def best(query: str, *said: tuple[str, str], apart: dict[int, timedelta] | None = None) -> list[int]:
    """The numbers of the messages, the nearest first; `apart` says how long it was quiet before one."""
    at, heard = BEGUN, {}
    for number, (speaker, text) in enumerate(said, 1):
        at += (apart or {}).get(number, timedelta(minutes=1))
        heard["s", number] = Speech(speaker, text, at)
    worth = nearness.weigh(query, heard, 500)
    return [number for (_, number), _ in sorted(worth.items(), key=lambda item: -item[1])]


def test_what_is_said_where_all_of_the_question_is_spoken_of_comes_before_what_shares_one_word() -> None:
    talk = [("ann", "Fine."), ("bob", "Sure.")] * 8
    harbour = [
        ("ann", "The harbour was full of boats."),
        ("bob", "And the festival?"),
        ("ann", "It was loud."),
    ]
    found = best("Was the festival at the harbour loud?", ("ann", "A loud car."), *talk, *harbour, *talk)
    assert set(found[:3]) == {18, 19, 20}


def test_an_answer_is_worth_more_than_the_question_that_it_answers() -> None:
    assert (
        best("painting class", ("ann", "How was the painting class?"), ("bob", "Great, I was glad."))[0] == 2
    )


def test_what_was_said_after_a_long_pause_has_nothing_of_what_was_said_before() -> None:
    said = [("ann", "How was the painting class?"), ("bob", "Great, I was glad.")]
    assert best("painting class", *said, apart={2: timedelta(hours=4)}) == [1]


def test_who_is_named_in_a_question_is_meant_and_nobody_where_two_are() -> None:
    said = [("Ann", "I went to the museum."), ("Bob", "I went to the museum.")]
    apart = {2: timedelta(days=1)}
    assert best("When was Bob in the museum?", *said, apart=apart)[0] == 2
    assert best("When was Ann in the museum?", *said, apart=apart)[0] == 1
    worth = nearness.weigh(
        "Were Ann and Bob in the museum?", {("s", n): Speech(*one) for n, one in enumerate(said, 1)}, 500
    )
    assert worth["s", 1] == pytest.approx(worth["s", 2], rel=0.2)


def test_two_words_in_the_order_of_the_question_count_more_than_apart() -> None:
    said = [("a", "the boat was blue and new"), ("a", "the new blue boat was there")]
    assert best("blue boat", *said, apart={2: timedelta(days=1)})[0] == 2


def test_a_question_without_a_word_that_tells_something_is_near_to_nothing() -> None:
    assert best("who was it?", ("ann", "It was me.")) == []
    assert nearness.weigh("boat", {}, 0) == {}


@pytest.mark.parametrize(
    ("words", "stemmed"),
    [
        ("deploy deploys deployed deploying", "deploi"),
        ("pony ponies", "poni"),
        ("relation relational relate related", "relat"),
        ("hopping hops hop", "hop"),
        ("agreed agree agrees", "agre"),
        ("psychology", "psycholog"),
        ("generalization generalizations generalize", "gener"),
        ("controlling controls", "control"),
    ],
)
def test_forms_of_a_word_have_one_stem(words: str, stemmed: str) -> None:
    assert {stem(word) for word in words.split()} == {stemmed}


def test_words_of_other_letters_numbers_and_short_ones_are_left_as_they_are() -> None:
    assert stems("Größe 1984s an µs ox") == ["grösse", "1984s", "µs".casefold(), "ox"]
