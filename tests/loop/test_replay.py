"""A turn whose worker dies at any point comes to the same end, pays no stored answer twice, repeats no result."""

from __future__ import annotations

import itertools

import pytest

from shared.loop import Outcome
from shared.loop.transcript import Transcript
from tests.loop.ground import Book, Crash, World, calls, text

ANSWERS = [
    calls("a", "b", words="First"),
    text("cut ", "max_tokens"),
    calls("c"),
    text("paused", "pause_turn"),
    text("The end"),
]


async def _whole() -> World:
    world = World(ANSWERS)
    await world.turn()
    return world


async def test_the_list_of_crash_points_is_complete() -> None:
    world, passed = World(ANSWERS), list[str]()

    def note(place: str) -> bool:
        passed.append(place)
        return False

    world.book.crash_at = note
    await world.turn()
    acted = [place for place in passed if "act" in place]
    assert (len(acted), len(passed)) == (6, 20)


@pytest.mark.parametrize("number", range(20))
async def test_after_a_crash_at_any_point_the_turn_comes_to_the_same_end(number: int) -> None:
    whole = await _whole()
    count = itertools.count()
    died = World(ANSWERS, Book(crash_at=lambda _place: next(count) == number))
    with pytest.raises(Crash):
        await died.turn()
    before = died.book.reopen().records
    again = World(ANSWERS, died.book.reopen())
    done = await again.turn()
    assert (done.text, done.kind) == ("The end", "answer")
    assert again.sent() == whole.sent()
    assert len(again.model.asked) == len(ANSWERS) - len(before.answers)
    kept = {result.id for result in before.results()}
    assert not kept & {call.id for call in again.ran}
    assert {call.key for call in [*died.ran, *again.ran]} == {call.key for call in whole.ran}


async def test_a_call_that_may_have_run_is_marked_and_has_the_same_key() -> None:
    died = World(ANSWERS, Book(crash_at=lambda place: place == "after act"))
    with pytest.raises(Crash):
        await died.turn()
    again = World(ANSWERS, died.book.reopen())
    await again.turn()
    assert [(call.key, call.again) for call in again.ran] == [
        ("t.1.1", True),
        ("t.1.2", True),
        ("t.3.1", False),
    ]
    assert died.ran[0].key == again.ran[0].key


async def test_only_the_call_without_a_result_is_run_again() -> None:
    results = itertools.count()
    died = World(
        [calls("a", "b"), text("x")], Book(crash_at=lambda place: place == "after" and next(results) == 1)
    )
    with pytest.raises(Crash):
        await died.turn()
    again = World([calls("a", "b"), text("x")], died.book.reopen())
    await again.turn()
    assert [call.tool for call in again.ran] == ["b"]
    assert again.sent()[-1] == ("user", ["id-a", "id-b"])


async def test_a_question_that_was_stored_ends_the_turn_without_a_call_of_the_model() -> None:
    question = {"question": "Which?"}
    died = World([calls("ask"), text("never")])
    died.results["ask"] = Outcome(question, ends=question)
    await died.turn()
    again = World([calls("ask"), text("never")], died.book.reopen())
    done = await again.turn()
    assert (done.kind, done.question, again.model.asked, again.ran) == ("question", question, [], [])


async def test_words_that_joined_are_in_the_journal_and_keep_their_place() -> None:
    first = World([calls("look"), text("Blue"), text("Still blue")], notes=[(1, "make it blue")])
    first.book.crash_at = lambda place: place == "before" and len(first.model.asked) == 3
    await first.turn()
    again = World(first.answers, first.book.reopen())
    await again.turn()
    assert again.sent()[-1] == ("user", ["id-look", "make it blue"])


async def test_the_fold_of_a_journal_is_the_same_however_it_is_cut() -> None:
    records = (await _whole()).book.records
    for cut in range(len(records) + 1):
        parts = Transcript("t", records[:cut])
        for record in records[cut:]:
            parts.add(record)
        assert parts.messages == Transcript("t", records).messages
        assert (parts.rounds, parts.tools) == (5, ["a", "b", "c"])
