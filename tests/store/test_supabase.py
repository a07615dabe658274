"""What is special to Supabase: keys, missing tables, a service that dies, stalls and comes back."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
import time
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from shared.errors import ConfigurationError, Conflict, PromptDockError, StoreUnavailable
from shared.store import schema
from shared.store import supabase as module
from shared.store.records import Log, Setting, Task
from shared.store.supabase import SupabaseStore
from tests.support.postgres import Postgres, free_port
from tests.support.supabase_lite import PUBLISHABLE, SECRET, SupabaseLite

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJyb2xlIjoic2VydmljZV9yb2xlIn0.c2lnbmF0dXJl"


@pytest.fixture
async def store(endpoint: SupabaseLite) -> AsyncIterator[SupabaseStore]:
    store = SupabaseStore(endpoint.url, SECRET, limit=60.0)
    await store.open()
    yield store
    await store.close()


class Stub(ThreadingHTTPServer):
    """An HTTP server that gives every request the same answer, and remembers the requests."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status, self.body, self.kind = 200, b"[]", "application/json"
        self.seen: list[tuple[str, str, dict[str, str]]] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Stub
    protocol_version = "HTTP/1.1"
    timeout: ClassVar[float] = 30

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        names = {name.lower(): value for name, value in self.headers.items()}
        self.server.seen.append((self.command, self.path, names))
        self.send_response(self.server.status)
        self.send_header("content-type", self.server.kind)
        self.send_header("content-range", "*/0")
        self.send_header("content-length", str(len(self.server.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(self.server.body)

    do_GET = do_HEAD = do_POST = do_PATCH = do_DELETE = _answer

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def stub() -> Iterator[Stub]:
    server = Stub()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join(10)


def _version() -> bytes:
    setting = Setting(scope="@schema", key="version", value={"version": schema.VERSION})
    return json.dumps([setting.model_dump(mode="json")]).encode()


async def _opened(stub: Stub, limit: float = 30.0) -> SupabaseStore:
    stub.body = _version()
    store = SupabaseStore(stub.url, SECRET, limit)
    await store.open()
    stub.body = b"[]"
    stub.seen.clear()
    return store


@pytest.mark.parametrize("key", ["junk", "sb_secret_x", PUBLISHABLE, JWT, "two words", "käse", "a\nb"])
async def test_a_key_that_may_not_write_is_refused(endpoint: SupabaseLite, key: str) -> None:
    store = SupabaseStore(endpoint.url, key, limit=60.0)
    with pytest.raises(ConfigurationError, match="SUPABASE_SERVICE_ROLE_KEY is not accepted") as caught:
        await store.open()
    assert caught.value.exit_code == 4
    assert key not in str(caught.value)
    with pytest.raises(StoreUnavailable, match="not open"):
        await store.count(Log)


@pytest.mark.parametrize("key", [JWT, SECRET, f"  {SECRET}\n"])
async def test_both_kinds_of_keys_are_sent_as_the_gateway_wants_them(stub: Stub, key: str) -> None:
    stub.body = _version()
    store = SupabaseStore(stub.url + "/", key)
    await store.open()
    await store.close()
    assert {headers["apikey"] for _, _, headers in stub.seen} == {key.strip()}
    assert {method for method, _, _ in stub.seen} == {"POST", "DELETE", "GET"}
    assert all(path.startswith("/rest/v1/settings?") for _, path, _ in stub.seen)


async def test_opening_leaves_nothing_behind(store: SupabaseStore) -> None:
    assert [setting.scope for setting in await store.select(Setting)] == ["@schema"]


async def test_a_project_without_tables_is_told_to_run_the_migrations(
    postgres: Postgres, running: SupabaseLite, tmp_path: Path
) -> None:
    postgres.query("create database bare")
    bare = SupabaseLite(postgres, tmp_path, database="bare")
    bare.start()
    try:
        with pytest.raises(ConfigurationError, match="run the migrations"):
            await SupabaseStore(bare.url, SECRET, limit=60.0).open()
    finally:
        bare.kill()


@pytest.mark.parametrize(("version", "told"), [(0, "run the migrations"), (99, "newer PromptDock")])
async def test_a_project_of_another_version_is_refused(
    endpoint: SupabaseLite, postgres: Postgres, version: int, told: str
) -> None:
    change = "update settings set value = '{{\"version\": {}}}' where scope = '@schema'"
    postgres.query(change.format(version))
    try:
        with pytest.raises(ConfigurationError, match=told):
            await SupabaseStore(endpoint.url, SECRET, limit=60.0).open()
    finally:
        postgres.query(change.format(schema.VERSION))


@pytest.mark.parametrize("status", [404, 301, 400])
async def test_an_address_that_is_no_project_is_named(stub: Stub, status: int) -> None:
    stub.status, stub.body, stub.kind = status, b"nothing here", "text/plain"
    with pytest.raises(ConfigurationError, match="SUPABASE_URL"):
        await SupabaseStore(stub.url, SECRET).open()


async def test_a_write_that_is_answered_with_a_web_page_is_not_taken_for_done(stub: Stub) -> None:
    store = await _opened(stub)
    stub.body, stub.kind = b"<html>log in first</html>", "text/html; charset=utf-8"
    with pytest.raises(StoreUnavailable, match="a web page"):
        await store.insert(Log(agent="a", message="x"))
    await store.close()


@pytest.mark.parametrize("url", ["", "ftp://x", "localhost", "http://[", "http://"])
async def test_an_address_that_cannot_be_is_named(url: str) -> None:
    with pytest.raises(ConfigurationError, match="SUPABASE_URL"):
        await SupabaseStore(url, SECRET, limit=5.0).open()


async def test_a_service_that_is_not_there_is_unavailable_within_the_limit() -> None:
    store = SupabaseStore(f"http://127.0.0.1:{free_port()}", SECRET, limit=3.0)
    began = time.monotonic()
    with pytest.raises(StoreUnavailable, match="cannot be asked"):
        await store.open()
    assert time.monotonic() - began < 6


async def test_a_service_that_was_killed_is_unavailable_and_comes_back_by_itself(
    store: SupabaseStore, endpoint: SupabaseLite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TRIES", 3)
    store.limit = 3.0
    await store.insert(Log(agent="a", message="before"))
    endpoint.kill()
    began = time.monotonic()
    try:
        for call in (
            store.select(Log), store.upsert([Log(agent="a", message="lost")]), store.count(Log),
            store.insert(Log(agent="a", message="lost")), store.update(Task, {"title": "x"}, {"slug": "x"}),
        ):  # fmt: skip
            with pytest.raises(StoreUnavailable):
                await call
        assert time.monotonic() - began < 5 * 3.5
    finally:
        endpoint.start()
    store.limit = 60.0
    await store.upsert([Log(agent="a", message="after")])
    assert {row.message for row in await store.select(Log)} == {"before", "after"}


async def test_a_write_that_meets_a_restart_arrives_once(
    store: SupabaseStore, endpoint: SupabaseLite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TRIES", 30)  # a busy machine starts the endpoint slowly
    endpoint.kill()
    writing = asyncio.create_task(store.upsert([Log(agent="a", message=str(n)) for n in range(700)]))
    await asyncio.to_thread(endpoint.start)
    await asyncio.wait_for(writing, 60)
    assert await store.count(Log) == 700


async def test_a_service_that_stalls_is_unavailable_within_the_limit(
    store: SupabaseStore, endpoint: SupabaseLite
) -> None:
    store.limit = 1.0
    endpoint.signal(signal.SIGSTOP)
    began = time.monotonic()
    try:
        with pytest.raises(StoreUnavailable, match="no answer in 1 s"):
            await store.select(Log)
        assert time.monotonic() - began < 4
    finally:
        endpoint.signal(signal.SIGCONT)
    store.limit = 60.0
    assert await store.select(Log) == []


@pytest.mark.parametrize("status", [429, 500, 503, 540])
async def test_only_what_may_arrive_twice_is_sent_again(
    stub: Stub, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TRIES", 2)
    store = await _opened(stub)
    stub.status, stub.body = status, b"upstream is gone"
    row = Log(agent="a", message="x")
    with pytest.raises(StoreUnavailable, match=str(status)):
        await store.insert(row)
    with pytest.raises(StoreUnavailable):
        await store.update(Log, {"message": "y"}, {"id": row.id})
    assert [method for method, _, _ in stub.seen] == ["POST", "PATCH"]
    stub.seen.clear()
    with pytest.raises(StoreUnavailable):
        await store.upsert([row])
    assert [method for method, _, _ in stub.seen] == ["POST", "POST"]
    await store.close()


async def test_a_key_that_is_revoked_later_is_named(stub: Stub) -> None:
    store = await _opened(stub)
    stub.status, stub.body = 401, b'{"message": "Invalid API key"}'
    with pytest.raises(ConfigurationError, match="Invalid API key"):
        await store.select(Log)
    assert len(stub.seen) == 1
    await store.close()


async def test_a_row_that_the_server_refuses_is_not_taken_for_an_outage(stub: Stub) -> None:
    store = await _opened(stub)
    stub.status, stub.body = 400, b'{"code": "22P02", "message": "invalid input"}'
    with pytest.raises(PromptDockError, match="invalid input") as caught:
        await store.upsert([Log(agent="a", message="x")])
    assert type(caught.value) is PromptDockError
    await store.close()


async def test_rows_travel_in_batches_that_a_server_takes(stub: Stub) -> None:
    store = await _opened(stub)
    await store.upsert([Log(agent="a", message="x") for _ in range(1100)])
    assert len(stub.seen) == 3
    stub.seen.clear()
    await store.upsert([Log(agent="a", message="x" * 2**20) for _ in range(8)])
    assert [int(headers["content-length"]) < 5 * 2**20 for _, _, headers in stub.seen] == [True] * 3
    await store.close()


async def test_a_conflict_in_a_batch_is_told_as_one(store: SupabaseStore) -> None:
    setting = Setting(scope="a", key="b")
    await store.insert(setting)
    with pytest.raises(Conflict):
        await store.upsert([Setting(scope="a", key="b")])
    assert await store.select(Setting, {"scope": "a"}) == [setting]
