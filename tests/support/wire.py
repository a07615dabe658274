"""The wire as a foreign program sees it: plain redis-py, PUBLISH and SUBSCRIBE, JSON."""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

import redis

from shared.bus.keys import CHATTER_OUTPUT, HUMAN_INPUT, Names
from shared.bus.messages import CLOSING
from tests.support.processes import PATIENCE, until

_numbers = itertools.count(1)
Message = dict[str, Any]


def client(url: str) -> redis.Redis:
    """A client as anybody would make it."""
    return redis.Redis.from_url(url, socket_timeout=PATIENCE)


class Wire:
    """Keeps everything that is published in a namespace, in order, and publishes.

    It listens by pattern: who subscribes to an agent's channel by name counts as an agent that listens.
    """

    def __init__(self, url: str, names: Names) -> None:
        self.url, self.names = url, names
        self.heard: list[tuple[str, Message]] = []
        self.redis = client(url)
        self._listening = client(url)
        self._stop, self._ready = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._listen, name="wire", daemon=True)

    def __enter__(self) -> Wire:
        self._thread.start()
        assert self._ready.wait(PATIENCE), "the subscription is not confirmed"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(PATIENCE)
        self.redis.close()
        self._listening.close()

    def _listen(self) -> None:
        while not self._stop.is_set():
            lost = contextlib.suppress(redis.ConnectionError, redis.TimeoutError)
            with lost, self._listening.pubsub() as listening:  # type: ignore[no-untyped-call]
                listening.psubscribe(self.names.channel("*"))
                while not self._stop.is_set():
                    self._take(listening.get_message(timeout=0.05))

    def _take(self, event: Any) -> None:
        if event is None:
            return
        if event["type"] == "psubscribe":
            self._ready.set()
        elif event["type"] == "pmessage":
            with contextlib.suppress(ValueError, RecursionError):  # others may publish anything
                value = json.loads(event["data"])
                if isinstance(value, dict):
                    self.heard.append((self.names.bare(event["channel"].decode()), value))

    # -- what was heard --------------------------------------------------------------------------------------

    def on(self, channel: str, start: int = 0) -> list[Message]:
        """What was published on a channel, from the `start`th thing heard on."""
        return [message for name, message in self.heard[start:] if name == channel]

    def outputs(self, user: str | None = None) -> list[Message]:
        """What was said to people."""
        return [said for said in self.on(CHATTER_OUTPUT) if user in (None, said["user_id"])]

    def closings(self, user: str | None = None) -> list[Message]:
        """The closing ones of it."""
        return [said for said in self.outputs(user) if said["status"] in CLOSING]

    def wait(
        self, channel: str, fits: Callable[[Message], object], seconds: float = PATIENCE, start: int = 0
    ) -> Message:
        """The first message on a channel that fits."""

        def look() -> Message | None:
            return next((message for message in self.on(channel, start) if fits(message)), None)

        found = until(look, seconds, f"a message on {channel}", lambda: self.heard[-20:])
        assert found is not None
        return found

    def closing(self, message_id: str, seconds: float = PATIENCE) -> Message:
        """The closing output that answers a message."""
        return self.wait(
            CHATTER_OUTPUT,
            lambda said: said["status"] in CLOSING and message_id in said["answers"],
            seconds,
        )

    # -- what is published -----------------------------------------------------------------------------------

    def publish(self, channel: str, data: bytes | str | Message) -> int:
        """Plain PUBLISH; how many heard it."""
        raw = json.dumps(data, ensure_ascii=False) if isinstance(data, dict) else data
        return int(self.redis.publish(self.names.channel(channel), raw))

    def send(self, content: str = "", user: str = "test", **more: Any) -> str:
        """A person's message on human-input; its id."""
        message = {"id": f"m{next(_numbers)}", "user_id": user, **more}
        if message.get("type") not in ("stop", "command", "approval"):
            message["content"] = content
        assert self.publish(HUMAN_INPUT, message) > 0, "nobody hears"
        return str(message["id"])

    def ask(self, content: str, user: str = "test", seconds: float = PATIENCE, **more: Any) -> Message:
        """A person's message, and its closing output."""
        return self.closing(self.send(content, user, **more), seconds)

    def command(self, tool: str, *, user: str = "test", **arguments: Any) -> Message:
        """One tool, called by a person; the closing output."""
        return self.closing(self.send(user=user, type="command", tool=tool, arguments=arguments))

    def dead(self) -> list[dict[str, str]]:
        """Chatter's dead letters, oldest first."""
        rows: Any = self.redis.xrange(f"{self.names.queue('chatter')}dead")
        return [
            {name.decode("utf-8", "replace"): value.decode("utf-8", "replace") for name, value in row.items()}
            for _, row in rows
        ]


@contextlib.contextmanager
def listener(url: str, channel: str) -> Iterator[Callable[[], list[Message]]]:
    """A program that subscribes to a channel by its exact name and only keeps what it hears."""
    heard: list[Message] = []
    stop, ready = threading.Event(), threading.Event()

    def listen() -> None:
        with client(url) as connection, connection.pubsub() as listening:
            listening.subscribe(channel)
            while not stop.is_set():
                event = listening.get_message(timeout=0.05)
                if event and event["type"] == "subscribe":
                    ready.set()
                elif event and event["type"] == "message":
                    heard.append(json.loads(event["data"]))

    thread = threading.Thread(target=listen, name=channel, daemon=True)
    thread.start()
    try:
        assert ready.wait(PATIENCE), "the subscription is not confirmed"
        yield lambda: list(heard)
    finally:
        stop.set()
        thread.join(PATIENCE)
