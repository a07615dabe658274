"""What a client answers to a request for permission, before it is sent."""

from __future__ import annotations

import time
from typing import Any

import pytest

from shared import people
from shared.bus.messages import Output
from shared.client import Client
from shared.client.views.conversation.transcript import permission_of
from shared.client.views.permissions import approvals
from shared.errors import UsageError
from shared.guard.permissions.requests import ApprovalRequest, Approvals
from shared.turns.queue import Queue


async def test_an_always_whose_pattern_does_not_match_is_a_wrong_argument_and_is_not_sent(
    client: Client,
) -> None:
    await client.reach()
    at = int(time.time() * 1000)
    asked = ApprovalRequest(
        id="a-1", call="c", agent="backend", session="s", user_id="ada", turn="t", home="s", tool="bash",
        action="tool:bash:make test", arguments={}, arguments_hash="0", why="", pattern="tool:bash:make test",
        project="default", at=at, expires_at=at + 60_000,
    )  # fmt: skip
    await Approvals(client.bus, client.names).open(asked)
    for pattern in ("tool:git_push:.*", "tool:bash:make", "("):
        with pytest.raises(UsageError) as told:
            await approvals.answer(client, "a-1", "always", "ada", pattern=pattern)
        assert "promptdock approvals allow a-1" in told.value.fix
    claims, _ = await Queue(client.bus, client.names, "chatter", lease_ms=1000).claims("test", 1)
    assert claims == []


async def test_a_clear_word_answers_a_request_that_waits_here_for_who_says_it(client: Client) -> None:
    await client.reach()
    at = int(time.time() * 1000)
    asked = ApprovalRequest(
        id="a-1", call="c", agent="chatter", session="s", user_id="ada", turn="t", home="s", tool="merge_task",
        action="tool:merge_task:otter", arguments={}, arguments_hash="0", why="", pattern="tool:merge_task:otter",
        project="default", at=at, expires_at=at + 60_000,
    )  # fmt: skip
    await Approvals(client.bus, client.names).open(asked)
    await client.bus.command("HSET", Approvals(client.bus, client.names).open_in("s"), "a-1", at + 60_000)
    assert [await approvals.answered(client, "s", "ada", text) for text in ("yes", "1", "no, not now")] == [
        True
    ] * 3
    assert not await approvals.answered(client, "s", "ada", "yes, but paint it blue first")
    assert not await approvals.answered(client, "s", "bob", "yes")
    assert not await approvals.answered(client, "elsewhere", "ada", "yes")


@pytest.mark.parametrize(
    ("asker", "lasts"),
    [("ada", True), (people.CLAIM + "ada", False), ("", False)],
    ids=["signs", "says", "none"],
)
def test_always_is_offered_only_where_it_is_known_whose_it_would_be(asker: str, lasts: bool) -> None:
    asked = ApprovalRequest(
        id="a-1", call="c", agent="backend", session="s", user_id=asker, turn="t", home="s", tool="bash",
        action="tool:bash:make test", arguments={}, arguments_hash="0", why="", pattern="tool:bash:make test",
        project="default", at=0, expires_at=60_000,
    )  # fmt: skip
    assert ("always" in asked.shown()["options"]) == approvals.lasts(asked.shown()) == lasts
    assert bool(permission_of(asked.shown()).pattern) == lasts, (
        "the page shows no button and no pattern for it"
    )
    assert approvals.lasts({}) and approvals.lasts(None)


def put(**approval: Any) -> Output:
    fields: dict[str, Any] = {"id": "o-1", "session_id": "s", "approval": approval or None}
    return Output(user_id="ada", content="?", status="awaiting_approval", **fields)


def test_a_request_is_named_by_its_own_id_else_by_that_of_its_output() -> None:
    assert approvals.request_id(put(id="a-1")) == "a-1"
    assert approvals.request_id(put()) == "o-1"


def test_what_a_request_asks_for_is_one_line_in_the_words_that_came_with_it() -> None:
    asked = put(tool="bash", about={"does": "push main\nto the server"})
    assert approvals.does(asked, 60) == "push main to the server"
    assert approvals.does(asked, 10) == "push main…"
    assert approvals.does(put(tool="bash", about="?"), 60) == "use bash"
    assert approvals.does(put(), 60) == "use a tool"
