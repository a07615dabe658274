"""Where the answer to what cannot be used goes."""

from __future__ import annotations

import json

import pytest

from shared.bus.keys import HUMAN_INPUT, Names
from shared.errors import BadMessage, Refused
from shared.turns import route


@pytest.mark.parametrize(("error", "session"), [(Refused, "plain:ada"), (BadMessage, "user:ada")])
def test_a_refusal_fills_no_conversation_that_the_sender_only_names(
    error: type[BadMessage], session: str
) -> None:
    names = Names("here")
    data = json.dumps({"user_id": "ada", "content": "spam", "session_id": "user:ada", "id": "m"}).encode()
    mail = route.dead(names, names.channel(HUMAN_INPUT), data, error("it must be signed"))
    assert json.loads(mail.refusal)["session_id"] == session
