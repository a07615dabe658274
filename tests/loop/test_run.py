"""Every way in which an answer of the model goes on or ends a turn."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from shared.loop import Call, Limits, Outcome
from shared.loop.run import CUT_IN_A_ROW
from shared.loop.transcript import CONTINUE
from shared.models.base import Answer, Usage
from shared.turns.records import NoteRecord
from tests.loop.ground import World, calls, text
from tests.support.pictures import picture


async def test_an_answer_of_words_ends_the_turn_with_them() -> None:
    world = World([text("Hello to you")])
    done = await world.turn()
    assert (done.kind, done.text, done.model, done.usage) == (
        "answer",
        "Hello to you",
        "m",
        Usage(10, 5, cost=0.5),
    )
    assert [message["role"] for message in done.messages] == ["assistant"]
    last = world.book.records.answers[-1]
    assert last.ms is not None and last.ms >= 0
    assert world.events == [("chunk", {"content": "piece", "part": 1})]


@pytest.mark.parametrize("stop", ["end_turn", "stop_sequence", "model_context_window_exceeded"])
async def test_every_stop_that_asks_for_nothing_more_is_the_end(stop: Any) -> None:
    world = World([text("Said", stop)])
    assert ((await world.turn()).text, len(world.model.asked)) == ("Said", 1)


async def test_nothing_said_and_nothing_done_is_done() -> None:
    assert (await World([Answer((), "end_turn")]).turn()).text == "Done."


async def test_what_was_done_without_a_word_is_named_once_each() -> None:
    world = World([calls("write"), calls("write"), calls("look"), Answer((), "end_turn")])
    world.limits = Limits(same_in_a_row=9)
    done = await world.turn()
    assert done.text == "Done. Actions taken: write, look"
    said = {"type": "text", "text": done.text}
    assert done.messages[-1] == {"role": "assistant", "content": [said]}
    assert done.messages[-2]["role"] == "user"


async def test_words_for_one_that_only_thought_stand_behind_the_thought() -> None:
    thought = {"type": "thinking", "thinking": "Hm", "signature": "s"}
    done = await World([Answer((thought,), "end_turn")]).turn()
    assert done.text == "Done."
    assert done.messages == ({"role": "assistant", "content": [thought, {"type": "text", "text": "Done."}]},)


async def test_a_turn_that_nothing_could_be_bought_for_keeps_what_it_said() -> None:
    world = World([text("Said")])
    world.limits = Limits(over=lambda: "the day's budget")
    done = await world.turn()
    assert done.text == "Nothing was begun: the day's budget is spent."
    assert done.messages == ({"role": "assistant", "content": [{"type": "text", "text": done.text}]},)


async def test_a_stop_for_tools_without_a_call_is_an_answer_and_no_endless_loop() -> None:
    world = World([text("I would call", "tool_use")])
    assert ((await world.turn()).text, len(world.model.asked)) == ("I would call", 1)


async def test_several_calls_of_one_answer_run_in_order_and_go_back_in_one_message() -> None:
    world = World([calls("a", "b", "c", words="Let me see"), text("Seen")])
    done = await world.turn()
    assert (done.text, [call.tool for call in world.ran]) == ("Seen", ["a", "b", "c"])
    assert [call.key for call in world.ran] == ["t.1.1", "t.1.2", "t.1.3"]
    assert world.sent() == [
        ("user", ["Hello"]),
        ("assistant", ["Let me see", "a", "b", "c"]),
        ("user", ["id-a", "id-b", "id-c"]),
    ]
    assert done.tools == ("a", "b", "c")


class _Meeting(World):
    """Calls that come back only when all of them are under way."""

    async def act(self, call: Call) -> Outcome:
        self.ran.append(call)
        async with asyncio.timeout(10):
            while len(self.ran) < 2:
                await asyncio.sleep(0.001)
        return Outcome({"met": call.tool})


async def test_calls_that_may_run_side_by_side_do_and_their_results_keep_the_order() -> None:
    world = _Meeting([calls("b", "a"), text("Both")], together=frozenset("ab"))
    assert (await world.turn()).text == "Both"
    assert world.sent()[-1] == ("user", ["id-b", "id-a"])


async def test_a_call_between_two_that_may_run_together_is_waited_for() -> None:
    order: list[str] = []

    class Slow(World):
        async def act(self, call: Call) -> Outcome:
            order.append(f"+{call.tool}")
            for _ in range(3):
                await asyncio.sleep(0)
            order.append(f"-{call.tool}")
            return Outcome({})

    await Slow([calls("a", "write", "b"), text("x")], together=frozenset("ab")).turn()
    assert order == ["+a", "-a", "+write", "-write", "+b", "-b"]


async def test_a_denied_call_is_a_result_and_the_others_still_run() -> None:
    world = World([calls("a", "secret", "b"), text("Without it")], denied={"secret": "not for you"})
    assert (await world.turn()).text == "Without it"
    assert [call.tool for call in world.ran] == ["a", "b"]
    (refused,) = [block for block in world.model.asked[-1].messages[-1]["content"] if block.get("is_error")]
    assert (refused["tool_use_id"], "not for you" in refused["content"]) == ("id-secret", True)


async def test_text_that_was_cut_is_gone_on_with_where_it_was_cut() -> None:
    world = World([text("The ans", "max_tokens"), text("wer is ", "max_tokens"), text("42")])
    assert (await world.turn()).text == "The answer is 42"
    assert world.sent()[-1] == ("user", [CONTINUE])


async def test_calls_of_an_answer_that_was_cut_are_discarded_their_arguments_may_be_cut() -> None:
    world = World([calls("write", words="I wri", stop="max_tokens"), text("te nothing")])
    assert ((await world.turn()).text, world.ran) == ("I write nothing", [])
    assert world.sent() == [("user", ["Hello"]), ("assistant", ["I wri"]), ("user", [CONTINUE])]


async def test_an_answer_that_was_cut_before_its_first_word_is_asked_for_again() -> None:
    world = World([calls("write", stop="max_tokens")], limits=Limits(rounds=3))
    done = await world.turn()
    assert (world.ran, done.text) == ([], "Done.")
    assert all(
        [role for role, _ in world.sent(n)] in (["user"], ["user", "assistant", "user"])
        for n in range(len(world.model.asked))
    )


async def test_an_agent_without_a_limit_of_rounds_does_not_go_on_for_ever_with_a_cut_answer() -> None:
    world = World([text("and ", "max_tokens")], limits=Limits(rounds=None))
    await asyncio.wait_for(world.turn(), 10)
    assert len(world.model.asked) == CUT_IN_A_ROW + 1
    assert world.model.asked[-1].tools == ()


async def test_a_pause_of_the_provider_is_gone_on_with() -> None:
    world = World([text("Searching", "pause_turn"), text("Found")])
    assert (await world.turn()).text == "Found"
    assert world.sent()[-1] == ("assistant", ["Searching"])


@pytest.mark.parametrize(
    ("content", "told"), [((), "The model declined to answer this."), (("Not this",), "Not this")]
)
async def test_a_refusal_is_said_as_such(content: tuple[str, ...], told: str) -> None:
    blocks = tuple({"type": "text", "text": words} for words in content)
    done = await World([Answer(blocks, "refusal")]).turn()
    assert (done.kind, done.text) == ("refusal", told)


async def test_a_call_that_asks_the_person_ends_the_turn_with_the_question() -> None:
    question = {"question": "Which?", "options": ["a", "b"]}
    world = World([calls("ask", "look", words="One thing."), text("never")])
    world.results["ask"] = Outcome(question, ends=question)
    done = await world.turn()
    assert (done.kind, done.question, done.text) == ("question", question, "One thing.")
    assert [call.tool for call in world.ran] == ["ask", "look"]
    assert len(world.model.asked) == 1


# -- limits ----------------------------------------------------------------------------------------------


def _changing(rounds: int) -> list[Answer]:
    return [calls("look", n=n) for n in range(rounds)]


async def test_at_the_limit_of_rounds_one_call_without_tools_says_what_is_left() -> None:
    world = World([*_changing(3), text("Three things are done")], limits=Limits(rounds=3))
    done = await world.turn()
    assert done.text == "Three things are done"
    assert "3 rounds" in world.sent()[-1][1][-1]
    assert done.limit == "3 rounds" and not done.spent
    assert world.model.asked[-1].tools == ()


async def test_a_last_call_without_words_falls_back_to_what_was_done() -> None:
    world = World(_changing(20), limits=Limits(rounds=2))
    done = await world.turn()
    assert (done.text, len(world.ran)) == ("Done. Actions taken: look", 2)
    assert all(block["type"] != "tool_use" for block in done.messages[-1]["content"])


async def test_five_errors_in_a_row_end_the_turn_and_a_success_between_them_does_not() -> None:
    world = World(_changing(20), limits=Limits(rounds=None))
    world.results["look"] = Outcome({"error": "no"}, is_error=True)
    await world.turn()
    assert len(world.ran) == 5
    between = World(
        [calls("look", "good", n=n) for n in range(6)] + [text("All right")], limits=Limits(rounds=None)
    )
    between.results["look"] = Outcome({"error": "no"}, is_error=True)
    assert (await between.turn()).text == "All right"


async def test_the_same_call_with_the_same_result_three_times_ends_the_turn() -> None:
    world = World([calls("look", at="x")] * 9, limits=Limits(rounds=None))
    await world.turn()
    assert len(world.ran) == 3


async def test_a_budget_that_is_spent_ends_the_turn() -> None:
    world = World(_changing(20), limits=Limits(rounds=None, cost=1.5))
    done = await world.turn()
    assert (len(world.ran), done.usage.cost) == (3, 2.0)
    assert "$1.50" in world.sent()[-1][1][-1]


# -- words that join ---------------------------------------------------------------------------------------


async def test_words_that_join_between_two_rounds_stand_behind_the_results() -> None:
    world = World([calls("look"), text("Blue then")], notes=[(1, "make it blue")])
    assert (await world.turn()).text == "Blue then"
    assert world.sent()[-1] == ("user", ["id-look", "make it blue"])


async def test_a_picture_that_joins_with_words_stands_behind_them_also_for_who_takes_over() -> None:
    block = picture().block()
    note = NoteRecord(text="this one", images=[block])
    world = World([calls("look"), text("A square")], notes=[(1, note)])
    assert (await world.turn()).text == "A square"
    assert world.model.asked[-1].messages[-1]["content"][1:] == [{"type": "text", "text": "this one"}, block]
    again = World([text("not asked"), text("A square")], book=world.book.reopen())
    assert (await again.turn()).text == "A square"
    assert again.model.asked[-1].messages[-1]["content"][1:] == [{"type": "text", "text": "this one"}, block]


async def test_words_that_join_while_the_answer_is_made_get_an_answer_as_well() -> None:
    world = World([text("Red"), text("Blue")], notes=[(1, "make it blue")])
    assert (await world.turn()).text == "Blue"
    assert world.sent()[-1] == ("user", ["make it blue"])


async def test_words_that_join_before_the_first_answer_are_asked_with_the_rest_and_once() -> None:
    world = World([text("Blue at once")], notes=[(0, "make it blue")])
    done = await world.turn()
    assert ([message["role"] for message in done.messages], done.text) == (
        ["user", "assistant"],
        "Blue at once",
    )
    assert [world.sent(n) for n in range(len(world.model.asked))] == [[("user", ["Hello", "make it blue"])]]
