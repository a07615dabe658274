"""What tests of the page share: its process, and a reader of event streams."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx

from tests.support.processes import PATIENCE, Site, Worker, until
from tests.support.valkey import free_port


@dataclass(frozen=True)
class SseEvent:
    """One event of a stream."""

    kind: str
    data: dict[str, Any]
    id: str = ""


def serve(place: Site, *arguments: str, cold: bool = False, **environment: str) -> tuple[Worker, str]:
    """Start the page's process and wait until it listens; the process and its address."""
    given = {"PROMPTDOCK_WEB_PORT": str(free_port()), **environment}
    settings = {**place.environment, **given}
    worker = Worker("web", ["gateways.web", *arguments], place.folder, settings, cold=cold)
    place.workers.append(worker)
    return worker, str(worker.says("Web ready")["url"])


def events(response: httpx.Response) -> Iterator[SseEvent]:
    """The events of an answer, as they come."""
    kind, data, id = "message", "", ""
    for line in response.iter_lines():
        name, _, value = line.partition(": ")
        if name == "event":
            kind = value
        elif name == "data":
            data += value
        elif name == "id":
            id = value
        elif not line and data:
            yield SseEvent(kind, json.loads(data), id)
            kind, data, id = "message", "", ""


def asks(web: httpx.Client, message: str, **more: Any) -> list[SseEvent]:
    """All that a message's stream tells, until it ends."""
    with web.stream("POST", "/api/agent/chat/stream", json={"message": message, **more}) as response:
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        return list(events(response))


class Following:
    """A stream that is read beside the test; `told` is what came of it until now."""

    def __init__(self, web: httpx.Client, message: str, **more: Any) -> None:
        self.told: list[SseEvent] = []
        self._thread = threading.Thread(
            target=self._read, args=(web, {"message": message, **more}), daemon=True
        )
        self._thread.start()

    def _read(self, web: httpx.Client, body: dict[str, Any]) -> None:
        with web.stream("POST", "/api/agent/chat/stream", json=body) as response:
            for event in events(response):
                self.told.append(event)

    def until(self, kind: str) -> None:
        """Wait for an event."""
        until(lambda: kind in [event.kind for event in self.told], what=f"an event {kind}")

    def ended(self) -> list[SseEvent]:
        """All of it, once it ended."""
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), self.told[-3:]
        return self.told


def joined(told: list[SseEvent]) -> str:
    """The chunks as a client puts them together."""
    return "".join(event.data["content"] for event in told if event.kind == "chunk")
