"""What of an answer is said to the person, and what of it was only thought."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.loop.final import Sieve, split
from shared.models.base import Block


def said(*texts: str) -> list[Block]:
    return [{"type": "text", "text": text} for text in texts]


def test_text_blocks_are_joined_and_other_blocks_are_left_out() -> None:
    blocks: list[Block] = [
        {"type": "thinking", "thinking": "hm"},
        *said("One", "Two"),
        {"type": "tool_use", "id": "1", "name": "x", "input": {}},
    ]
    assert split(blocks) == ("One\nTwo", "hm")


@pytest.mark.parametrize("tag", ["think", "thinking", "reasoning", "reflection", "THINK"])
def test_tagged_thinking_is_no_text(tag: str) -> None:
    assert split(said(f"<{tag}>let me\nsee</{tag}>Yes")) == ("Yes", "let me\nsee")


@pytest.mark.parametrize("open", ["<think>", "[think]", "<reasoning>"])
def test_thinking_that_begins_an_answer_and_is_not_closed_goes_to_the_end(open: str) -> None:
    assert split(said(f" {open}Yes. Or no")) == ("", "Yes. Or no")
    assert split(said(f"<think>a</think>{open}Yes. Or no")) == ("", "a\nYes. Or no")


@pytest.mark.parametrize("open", ["<think>", "[think]", "<reasoning>"])
@pytest.mark.parametrize("mark", ["", "`", "```", "``"])
def test_a_tag_that_is_only_mentioned_swallows_nothing(open: str, mark: str) -> None:
    text = f"In HTML the {mark}{open}{mark} tag is unknown. Use div."
    assert split(said(text)) == (text, "")


def test_a_pair_of_tags_in_code_is_code() -> None:
    text = "See:\n```html\n<think>x</think>\n\nand\n```\nor `<think>x</think>`."
    assert split(said(text)) == (text, "")
    assert split(said(text + "<think>Fine?</think> Bye")) == (text + " Bye", "Fine?")


def test_a_lonely_backtick_reaches_no_further_than_its_paragraph() -> None:
    assert split(said("Press ` now.\n\n<think>x</think>Done")) == ("Press ` now.\n\nDone", "x")


@given(
    st.lists(
        st.sampled_from(
            ["<think>", "</think>", "[think]", "[/think]", "<reflection>", "`", "```", "\n\n", "a ", "<", "b"]
        ),
        max_size=14,
    ),
    st.data(),
)
def test_an_answer_is_parted_alike_however_it_comes(parts: list[str], data: st.DataObject) -> None:
    text, sieve, pieces = "".join(parts), Sieve(), []
    while text:
        size = data.draw(st.integers(1, len(text)))
        pieces += sieve.add(text[:size])
        text = text[size:]
    pieces += sieve.end()
    whole = Sieve()
    wanted = [*whole.add("".join(parts)), *whole.end()]
    for kind in ("text", "thinking"):
        assert "".join(w for k, w in pieces if k == kind) == "".join(w for k, w in wanted if k == kind)


def test_what_is_said_is_not_held_back_without_need() -> None:
    sieve = Sieve()
    assert sieve.add("One <b>two") == [("text", "One <b>two")]
    assert sieve.add(" <thi") == [("text", " ")]
    assert sieve.add("s is it") == [("text", "<this is it")]
    assert sieve.add(" `code") == [("text", " "), ("text", "`"), ("text", "code")]


def test_square_brackets_are_thinking_only_for_that_word() -> None:
    assert split(said("[think]a[/think]see [thing] and <b>this</b>")) == ("see [thing] and <b>this</b>", "a")


def test_what_was_cut_is_put_together_without_a_break() -> None:
    assert split(said("lo"), before="Hel") == ("Hello", "")
    assert split(said("ing</think>Yes"), before="<think>think") == ("Yes", "thinking")


@pytest.mark.parametrize(
    "text",
    [
        "Models put it between <think> and </think> tags.",
        "- the tags [think]…[/think] part it",
        "They write <reasoning>...</reasoning>, as you see",
    ],
)
def test_a_pair_of_tags_that_is_spoken_of_swallows_nothing(text: str) -> None:
    assert split(said(text)) == (text, "")
    sieve = Sieve()
    pieces = [piece for letter in text for piece in sieve.add(letter)] + sieve.end()
    assert "".join(words for _, words in pieces) == text


@pytest.mark.parametrize("text", ["Yes.\n<think> hm </think>\nNo.", "Yes. <think>hm</think> No."])
def test_a_thought_in_the_middle_of_an_answer_is_still_parted(text: str) -> None:
    assert split(said(text))[1] == "hm"
