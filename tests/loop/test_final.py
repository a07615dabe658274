"""What of an answer is said to the person, and what of it was only thought."""

from __future__ import annotations

import pytest

from shared.loop.final import split
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
def test_thinking_that_is_not_closed_goes_to_the_end(open: str) -> None:
    assert split(said(f"Yes. {open}or no")) == ("Yes.", "or no")


def test_square_brackets_are_thinking_only_for_that_word() -> None:
    assert split(said("[think]a[/think]see [thing] and <b>this</b>")) == ("see [thing] and <b>this</b>", "a")


def test_what_was_cut_is_put_together_without_a_break() -> None:
    assert split(said("lo"), before="Hel") == ("Hello", "")
    assert split(said("ing</think>Yes"), before="<think>think") == ("Yes", "thinking")
