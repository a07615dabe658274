"""Pictures of a conversation on their way to a model."""

from __future__ import annotations

from typing import Any

from shared.models import sight
from tests.support.pictures import picture


def said(*reds: int) -> dict[str, Any]:
    """Words with so many pictures."""
    return {
        "role": "user",
        "content": [{"type": "text", "text": "look"}, *(picture(r).block() for r in reds)],
    }


def kinds(message: dict[str, Any]) -> list[str]:
    return [block["type"] for block in message["content"]]


def test_the_newest_pictures_are_sent_and_of_older_ones_that_there_were() -> None:
    given = [said(1, 2), {"role": "assistant", "content": "yes"}, said(3, 4)]
    shown = sight.newest(given, keep=3)
    assert [kinds(one) for one in (shown[0], shown[2])] == [
        ["text", "text", "image"],
        ["text", "image", "image"],
    ]
    assert shown[0]["content"][2] == picture(2).block() and "before" in shown[0]["content"][1]["text"]
    assert kinds(given[0]) == ["text", "image", "image"], "what is kept is not changed"
    assert sight.newest(given, keep=4) == given


def test_a_model_that_cannot_see_is_told_that_there_was_something() -> None:
    [one] = sight.unseen([said(1)])
    assert kinds(one) == ["text", "text"] and "cannot see" in one["content"][1]["text"]
    assert sight.pictured([said(1)]) and not sight.pictured([one, {"role": "user", "content": "x"}])
