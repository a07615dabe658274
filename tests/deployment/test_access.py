"""The access list in docs/deployment.md, on a real server: a foreign Planner can do its part and no more."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from redis import Redis
from redis.exceptions import AuthenticationError, NoPermissionError

from shared.bus.embedded import Embedded
from tests.house.tree import read


def _client(port: int, user: str | None = None, password: str | None = None) -> Any:
    return Redis(port=port, username=user, password=password, decode_responses=True, socket_timeout=10)


def _whole(rules: list[str]) -> list[str]:
    """The rules as a file has them: there they begin with nothing."""
    return [rules[0], "reset", *rules[1:]]


@pytest.fixture(scope="module")
def server(valkey: Embedded) -> int:
    """The port of a server on which the documented users were made."""
    rules = re.search(r"^```acl\n(.*?)^```", read("docs/deployment.md"), re.MULTILINE | re.DOTALL)
    assert rules
    with Redis.from_url(valkey.url, decode_responses=True, socket_timeout=10) as admin:
        for line in reversed(rules[1].splitlines()):  # ours last, since from then on we need its password
            admin.execute_command("ACL", "SETUSER", *_whole(line.split()[1:]))
    return valkey.port


@pytest.fixture
def planner(server: int) -> Iterator[Any]:
    """The foreign program's connection."""
    with _client(server, "planner", "OTHER-SECRET") as client:
        yield client


def test_it_hears_its_channel_and_answers_chatter(server: int, planner: Any) -> None:
    with planner.pubsub() as heard, _client(server, password="SECRET") as cluster:
        heard.subscribe("agent:planner")
        assert heard.get_message(timeout=5)["type"] == "subscribe"
        cluster.publish("agent:planner", "a question")
        assert heard.get_message(timeout=5)["data"] == "a question"
        assert planner.publish("agent:chatter", "an answer") == 0  # allowed, and nobody listens here


@pytest.mark.parametrize(
    "command",
    [
        "PUBLISH human-input {}",
        "PUBLISH agent:backend {}",
        "PUBLISH chatter-output {}",
        "GET pd::meta",
        "SET x 1",
        "KEYS *",
        "EVAL return(1) 0",
        "PUBSUB CHANNELS",
        "CONFIG GET *",
        "ACL LIST",
        "FLUSHALL",
    ],
)
def test_it_can_do_nothing_else(planner: Any, command: str) -> None:
    with pytest.raises(NoPermissionError):
        planner.execute_command(*command.split(" "))


@pytest.mark.parametrize("pattern", ["*", "agent:*", "human-input"])
def test_it_cannot_listen_to_others(planner: Any, pattern: str) -> None:
    with planner.pubsub() as heard, pytest.raises(NoPermissionError):
        heard.psubscribe(pattern)
        heard.get_message(timeout=5)


def test_without_a_password_nobody_gets_in(server: int) -> None:
    with _client(server) as stranger, pytest.raises(AuthenticationError):
        stranger.ping()
