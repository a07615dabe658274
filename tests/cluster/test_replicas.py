"""Several Chatters share the work: plain PUBLISH is heard by all and answered once, in order, whoever dies."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from shared.bus.keys import HUMAN_INPUT
from tests.support.messages_api import MessagesApi
from tests.support.messages_script import Rules
from tests.support.processes import site, until
from tests.support.wire import Message, Wire

MESSAGES, SAME, USERS = 200, 40, 8


def burst(wire: Wire, start: int = 0, stop: int = MESSAGES) -> list[str]:
    """Publish in one go; a fifth of it the identical text, without ids. The ids of the others."""
    pipe, ids = wire.redis.pipeline(transaction=False), []
    for n in range(start, stop):
        message: dict[str, Any] = {"user_id": "same", "content": "Hello again"}
        if n % (MESSAGES // SAME):
            message = {"user_id": f"u{n % USERS}", "content": f"Message {n}", "id": f"n{n:04d}"}
            ids.append(message["id"])
        pipe.publish(wire.names.channel(HUMAN_INPUT), json.dumps(message))
    pipe.execute()
    return ids


def _place(said: Message) -> tuple[int, ...]:
    """A message's place in its order: by our own number, else by the ear's."""
    name = str(said["in_reply_to"])
    return tuple(int(part) for part in name.removeprefix("n").removeprefix("p:").split(":"))


def check(wire: Wire, ids: list[str]) -> None:
    """All are answered, none twice, and each person's answers come in the order of the messages."""
    until(lambda: len(wire.closings()) >= MESSAGES, 40, "all answers", lambda: len(wire.closings()))
    until(lambda: not wire.redis.xlen(f"{wire.names.queue('chatter')}inbox"), what="the end of all turns")
    said = wire.closings()
    counts = Counter(str(output["in_reply_to"]) for output in said)
    assert [name for name, count in counts.items() if count > 1] == []
    assert set(ids) <= counts.keys()
    assert len(said) == MESSAGES
    assert len(wire.closings("same")) == SAME
    for user in {str(output["user_id"]) for output in said}:
        places = [_place(output) for output in wire.closings(user)]
        assert places == sorted(places), user


@pytest.mark.parametrize("replicas", [2, 3])
def test_two_hundred_messages_are_answered_once_and_in_order(
    replicas: int, tmp_path: Path, valkey: str
) -> None:
    with site(tmp_path, valkey) as place, Wire(valkey, place.names) as wire:
        workers = place.up(*["chatter"] * replicas)
        check(wire, burst(wire))
        shares = [sum(words.startswith("Received message") for words in worker.said()) for worker in workers]
        assert all(shares), f"one did nothing: {shares}"


@pytest.mark.parametrize("replicas", [2, 3])
def test_all_are_answered_once_when_one_replica_is_killed_in_the_middle(
    replicas: int, tmp_path: Path, valkey: str
) -> None:
    with site(tmp_path, valkey) as place, Wire(valkey, place.names) as wire:
        workers = place.up(*["chatter"] * replicas)
        ids = burst(wire)
        until(lambda: len(wire.closings()) >= MESSAGES // 8, what="some answers")
        workers[0].kill()
        assert len(wire.closings()) < MESSAGES, "it was killed too late to prove anything"
        check(wire, ids)


def test_a_stop_by_plain_publish_ends_the_turn_whichever_replica_holds_it(
    tmp_path: Path, valkey: str
) -> None:
    with MessagesApi(Rules([{"steps": [{"text": "At last", "delay": 60.0}]}])) as api:
        model = {"ANTHROPIC_API_KEY": "sk-ant-test-key-0000", "ANTHROPIC_BASE_URL": api.url}
        with site(tmp_path, valkey, **model) as place, Wire(valkey, place.names) as wire:
            place.up("chatter", "chatter")
            first = [wire.send("think", user=f"u{n}") for n in range(USERS)]
            until(lambda: len(api.requests) == USERS, what="the model being asked")
            stops = [wire.send(user=f"u{n}", type="stop") for n in range(USERS)]
            for words, stop in zip(first, stops, strict=True):
                said = wire.closing(stop)
                assert said["content"].startswith("Stopped") and set(said["answers"]) == {words, stop}


def test_a_replica_that_joins_while_messages_flow_changes_nothing(tmp_path: Path, valkey: str) -> None:
    with site(tmp_path, valkey) as place, Wire(valkey, place.names) as wire:
        place.up("chatter")
        joining, ids, sent = place.start("chatter"), list[str](), 0
        while not any(words.startswith("Subscribed") for words in joining.said()) and sent < MESSAGES - 10:
            ids += burst(wire, sent, sent + 1)
            sent += 1
            until(lambda n=sent: len(wire.closings()) > n - 5, what="an answer")  # type: ignore[misc]
        joining.ready()
        check(wire, ids + burst(wire, sent, MESSAGES))
