"""For whom an agent works: what the request says of the person, and nothing that only looks like it."""

from __future__ import annotations

from typing import Any

import pytest

from shared.bus import messages
from shared.worker.permissions.approver import asked_by


def request(**more: Any) -> messages.AgentMessage:
    fields = {"id": "r1", "from": "chatter", "to": "backend", "type": "task", "payload": {}}
    return messages.agent({**fields, **more})


def test_the_person_their_conversation_and_their_roles_come_with_the_request() -> None:
    who = {"user_id": "ada", "session_id": "talk", "roles": ["lead"]}
    asked = asked_by(request(on_behalf_of=who))
    assert asked.who == ("ada", "talk") and asked.roles == {"lead"}


@pytest.mark.parametrize("roles", [None, "lead", {"lead": True}, 7])
def test_roles_that_are_no_list_are_none(roles: Any) -> None:
    assert asked_by(request(on_behalf_of={"user_id": "ada", "roles": roles})).roles == frozenset()


@pytest.mark.parametrize("who", [None, "ada", ["ada"], {}])
def test_a_request_that_names_nobody_has_nobody_s_roles(who: Any) -> None:
    asked = asked_by(request(on_behalf_of=who, roles=["lead"], payload={"roles": ["lead"]}))
    assert (asked.user_id, asked.roles) == ("", frozenset())
