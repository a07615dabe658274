"""Files of conversations: what is wrong with a broken one is said, and in which form it is wanted."""

from __future__ import annotations

import pytest

from shared.conversation import exchange
from shared.errors import UsageError


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[1,2]", "the file holds a list, and no object with `messages`"),
        ('"hello"', "the file holds a text"),
        ("3", "the file holds a number"),
        ("null", "the file holds nothing"),
        ("{}", "messages: Field required"),
        ('{"messages": [{"role": "king", "content": "x"}]}', "message 1 role"),
        ('{"messages": [{"role": "user", "content": " "}]}', "all its messages are empty"),
        ("{", "Expecting property name"),
        ("[" * 100_000, "recursion"),
    ],
)
def test_a_file_that_holds_no_conversation_is_refused_with_why_and_what_is_wanted(
    text: str, why: str
) -> None:
    with pytest.raises(UsageError) as caught:
        exchange.parse(text)
    assert why in caught.value.why and "messages: [{role, content" in caught.value.fix
