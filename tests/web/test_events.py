"""Event streams: what a reader is told, where it goes on after a cut, and what becomes of one that does not read."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import redis
import uvicorn

from gateways.web.app import create_app
from shared.client import fanout
from shared.settings import Settings
from tests.support.processes import PATIENCE, Site, site, until
from tests.support.valkey import free_port
from tests.web.support import SseEvent, events, serve

RULES: list[dict[str, Any]] = [{"steps": [{"text": "You said: {{user}}"}]}]


class Page:
    """A reader of one stream, beside the test."""

    def __init__(self, url: str, path: str, last: str = "") -> None:
        self.told: list[SseEvent] = []
        self._client = httpx.Client(base_url=url, timeout=PATIENCE, trust_env=False)
        headers = {"Last-Event-ID": last} if last else {}
        self._thread = threading.Thread(target=self._read, args=(path, headers), daemon=True)
        self._thread.start()
        until(lambda: self.told, what="the first event")

    def _read(self, path: str, headers: dict[str, str]) -> None:
        try:
            with self._client.stream("GET", path, headers=headers) as response:
                for event in events(response):
                    self.told.append(event)
        except (httpx.HTTPError, OSError):
            pass
        finally:
            self._client.close()

    def of(self, kind: str) -> list[SseEvent]:
        """The events of a kind until now."""
        return [event for event in self.told if event.kind == kind]

    def ended(self) -> bool:
        """Whether the other side ended it."""
        return not self._thread.is_alive()

    def last(self) -> str:
        """The newest cursor."""
        return next(event.id for event in reversed(self.told) if event.id)


def say(place: Site, session: str, *words: str) -> None:
    """Live events, as a worker publishes them: kept, then told."""
    server = redis.Redis.from_url(place.url)
    for word in words:
        data = json.dumps({"event": "chunk", "content": word})
        server.xadd(place.names.stream(session), {"data": data})
        server.publish(place.names.channel(f"events:{session}"), data)
    server.close()


def contents(page: Page) -> list[str]:
    """The words that it was told."""
    return [event.data["content"] for event in page.of("chunk")]


@pytest.mark.usefixtures("chatter")
def test_a_page_hears_what_is_said_in_its_session_and_the_output_that_closes_it(
    url: str, web: httpx.Client
) -> None:
    page = Page(url, "/api/events?session=heard")
    web.post("/api/agent/chat", json={"message": "Hello", "session_id": "heard"})
    until(lambda: page.of("output") and page.of("done"), what="the answer")
    assert page.of("start") and page.of("chunk")
    assert page.of("output")[-1].data["status"] == "complete"


def test_a_reader_who_comes_back_misses_nothing_and_hears_nothing_twice(url: str, place: Site) -> None:
    page = Page(url, "/api/sessions/cut/events")
    say(place, "cut", "one", "two")
    until(lambda: contents(page) == ["one", "two"], what="two words")
    say(place, "cut", "three", "four")
    again = Page(url, "/api/sessions/cut/events", page.of("chunk")[1].id)
    say(place, "cut", "five")
    until(lambda: "five" in contents(again), what="the last word")
    assert contents(again) == ["three", "four", "five"]


def test_two_streams_go_on_by_one_id(url: str, place: Site) -> None:
    page = Page(url, "/api/events?session=left&session=right")
    say(place, "left", "l1")
    say(place, "right", "r1")
    until(lambda: sorted(contents(page)) == ["l1", "r1"], what="both")
    last = page.last()
    say(place, "left", "l2")
    again = Page(url, "/api/events?session=left&session=right", last)
    until(lambda: "l2" in contents(again), what="what was missed")
    assert "l1" not in contents(again) and "r1" not in contents(again)


def test_what_is_not_kept_any_more_is_told_as_a_gap(url: str, place: Site) -> None:
    say(place, "old", "one")
    page = Page(url, "/api/sessions/old/events", "1-0")
    until(lambda: page.of("gap"), what="the gap")
    assert page.told[1].kind == "gap"


def test_a_cursor_that_is_none_begins_now(url: str, place: Site) -> None:
    say(place, "odd", "before")
    page = Page(url, "/api/sessions/odd/events", "no,cursor")
    say(place, "odd", "after")
    until(lambda: contents(page), what="a word")
    assert contents(page) == ["after"]


@contextmanager
def inside(place: Site) -> Iterator[str]:
    """The page's application in this process, on a socket that takes little at once; its address."""
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        listening.bind(("127.0.0.1", 0))
        app = create_app(Settings.model_validate(place.environment))
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=1))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            until(lambda: server.started, what="the application")
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(PATIENCE)


def test_a_reader_that_does_not_read_is_let_go_and_holds_nobody_back(
    place: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fanout, "_BYTES", 200_000)  # as little as a test fills in a moment
    with inside(place) as url, redis.Redis.from_url(place.url) as server, socket.socket() as slow:
        where = urlsplit(url)
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect((where.hostname or "", where.port or 0))
        slow.sendall(f"GET /api/sessions/flood/events HTTP/1.1\r\nHost: {where.netloc}\r\n\r\n".encode())
        assert slow.recv(100)
        quick = Page(url, "/api/sessions/flood/events")
        data = json.dumps({"event": "chunk", "content": "x" * 4000})
        for number in range(1, 11):
            with server.pipeline(transaction=False) as pipe:
                for _ in range(20):
                    pipe.xadd(place.names.stream("flood"), {"data": data}, maxlen=2000)
                pipe.publish(place.names.channel("events:flood"), data)
                pipe.execute()
            until(lambda many=20 * number: len(quick.of("chunk")) == many, what="the quick reader")  # type: ignore[misc]
        slow.settimeout(PATIENCE)
        taken = b""
        while part := slow.recv(1 << 20):
            taken = (taken + part)[-200:]
            if taken.endswith(b"0\r\n\r\n"):
                break
        assert b"event: again" in taken
        assert len(quick.of("chunk")) == 200 and not quick.ended()


@pytest.fixture
def own(tmp_path: Any) -> Iterator[tuple[Site, Any]]:
    """A server that can be killed."""
    from tests.client.conftest import Server

    server = Server(tmp_path / "server")
    server.start()
    with site(tmp_path / "site", server.url) as made:
        yield made, server
    server.kill()


def test_a_page_is_told_that_redis_is_away_and_goes_on_when_it_is_back(own: tuple[Site, Any]) -> None:
    place, server = own
    _, url = serve(place)
    page = Page(url, "/api/sessions/cut/events")
    say(place, "cut", "one")
    until(lambda: contents(page) == ["one"], what="a word")
    server.kill()
    until(lambda: [event.data["redis"] for event in page.of("link")] == ["away"], what="that it is away")
    server.start()
    until(
        lambda: [event.data["redis"] for event in page.of("link")] == ["away", "here"], what="that it is back"
    )
    say(place, "cut", "two")
    until(lambda: contents(page) == ["one", "two"], what="the next word")


def test_the_process_ends_while_pages_are_open_and_they_go_on_at_the_next_one(place: Site) -> None:
    port = str(free_port())
    worker, url = serve(place, PROMPTDOCK_WEB_PORT=port)
    page = Page(url, "/api/sessions/moved/events")
    say(place, "moved", "one")
    until(lambda: contents(page) == ["one"], what="a word")
    assert worker.drain(20) == 0
    until(page.ended, what="the end of the stream")
    say(place, "moved", "two")
    _, url = serve(place, PROMPTDOCK_WEB_PORT=port)
    again = Page(url, "/api/sessions/moved/events", page.last())
    until(lambda: contents(again) == ["two"], what="what was missed")
