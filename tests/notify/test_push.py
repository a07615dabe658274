"""Notifications of people, by the real apprise in a process of its own."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from shared.errors import UsageError
from shared.guard.sandbox.addresses import Reach
from shared.notify import push
from tests.notify.receiver import Receiver, receiving

HERE = Reach(hosts=frozenset({"127.0.0.1"}))
ASKS: dict[str, Any] = {
    "type": "approval.requested",
    "url": "http://dock.example/inbox",
    "data": {"content": "Backend asks for permission:\n  to run make", "approval": {"id": "a1"}},
}
WAITS: dict[str, Any] = {
    "type": "review.ready",
    "url": "http://dock.example/tasks/calm-otter",
    "data": {"task_id": "calm-otter", "title": "Paint"},
}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as made:
        yield made


def test_several_things_are_one_notification_with_a_line_and_a_link_each() -> None:
    title, text = push.words([ASKS, WAITS])
    assert title == "PromptDock: 2 things need you"
    assert "Permission: Backend asks for permission: to run make\nhttp://dock.example/inbox" in text
    assert "Review: calm-otter (Paint)\nhttp://dock.example/tasks/calm-otter" in text
    assert push.words([ASKS])[0] == "PromptDock: 1 thing needs you"
    long = {**ASKS, "data": {"content": "x" * 5000}}
    _, text = push.words([long] * 40)
    assert len(text) < 4000 and text.endswith("and 30 more")


@pytest.mark.parametrize(
    "address",
    [
        "",
        "ntfy",
        "://x",
        "a b://x",
        "ntfy://x\n",
        "json://127.0.0.1/x",
        "json://localhost",
        "syslog://",
        "dbus://x",
    ],
)
def test_what_reaches_no_person_is_refused(address: str) -> None:
    with pytest.raises(UsageError):
        push.check(address, Reach())


def test_lists_show_the_kind_of_service_alone() -> None:
    assert push.check("ntfy://my-topic", Reach()) == "ntfy://…"
    assert push.check("mailto://user:password@example.com", Reach()) == "mailto://…"


async def test_apprise_hands_it_to_the_service(receiver: Receiver) -> None:
    address = f"json://127.0.0.1:{receiver.url.rpartition(':')[2]}/in"
    assert (await push.send(address, [ASKS, WAITS], HERE)).ok
    [one] = receiver.received
    told = json.loads(one.body)
    assert told["title"] == "PromptDock: 2 things need you" and "calm-otter" in told["message"]
    receiver.answer = lambda _number: 500
    refused = await push.send(address, [ASKS], HERE)
    assert not refused.ok and refused.error == "the service did not take it"
    assert (await push.send("nosuch://x", [ASKS], HERE)).error == "apprise knows no service of this address"
    inside = await push.send(address, [ASKS], Reach())
    assert "private network" in inside.error and len(receiver.received) == 2


async def test_a_service_that_holds_it_up_is_left(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(push, "_PATIENCE", 0.5)
    begun = time.monotonic()
    outcome = await push.send(f"json://127.0.0.1:{receiver.url.rpartition(':')[2]}/never", [ASKS], HERE)
    assert not outcome.ok and "0.5 s" in outcome.error
    assert time.monotonic() - begun < 5


async def test_an_address_of_which_apprise_knows_no_service_is_refused() -> None:
    await push.need("ntfy://my-topic")
    with pytest.raises(UsageError, match="no address of a service"):
        await push.need("nonsense://x")
