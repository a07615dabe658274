"""Where a worker must not run it says why, and ends with the exit code that tells which kind of reason."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.support.postgres import free_port
from tests.support.processes import Site, Worker, site
from tests.support.wire import Wire, client

SECRET = "sb_secret_" + "0" * 20


@pytest.fixture
def alone(tmp_path: Path, valkey: str) -> Iterator[Site]:
    """A site without a model provider: the demo model answers."""
    with site(tmp_path, valkey) as made:
        yield made


def refused(worker: Worker, code: int, *told: str) -> None:
    """It ends with this exit code, and its last error says these words."""
    assert worker.ended() == code, worker.tail()
    error = [event for event in worker.events() if event.get("level") == "error"][-1]
    text = " ".join(str(error.get(key, "")) for key in ("event", "why", "fix"))
    for words in told:
        assert words in text
    assert not any(words.endswith(" ready") for words in worker.said())


def test_a_newcomer_of_another_cluster_leaves_and_the_one_that_runs_goes_on(alone: Site, valkey: str) -> None:
    (first,) = alone.up("chatter")
    with Wire(valkey, alone.names) as wire:
        foreign = {"REDIS_URL": f"{valkey}/1", "PROMPTDOCK_HOME": str(alone.folder / "foreign")}
        refused(alone.start("chatter", **foreign), 4, "another cluster", "PROMPTDOCK_NAMESPACE")
        first.says("Another cluster uses the same channels")
        said = wire.ask("Hello")
        assert said["status"] == "complete"
        assert len(wire.closings()) == 1
    assert first.process.poll() is None


def test_the_same_server_serves_two_clusters_with_a_namespace_each(alone: Site, valkey: str) -> None:
    other = alone.names.namespace + "-b"
    alone.up("chatter")
    more = {
        "PROMPTDOCK_NAMESPACE": other,
        "PROMPTDOCK_HOME": str(alone.folder / "b"),
        "REDIS_URL": f"{valkey}/1",
    }
    alone.up("chatter", **more)
    with Wire(valkey, alone.names) as wire:
        wire.ask("Hello")
        assert len(wire.closings()) == 1
        assert not client(valkey).keys(f"pd:{other}:*msg*")


def test_keys_of_a_newer_release_are_left_alone(alone: Site, valkey: str) -> None:
    client(valkey).hset(alone.names.meta, mapping={"schema": 99, "cluster": "c0ffee"})
    refused(alone.start("chatter"), 4, "schema 99", "run the release that wrote it")


def test_production_without_a_key_is_refused(alone: Site) -> None:
    refused(
        alone.start("chatter", PROMPTDOCK_ENV="production"), 4, "no model is configured", "ANTHROPIC_API_KEY"
    )


def test_a_setting_that_cannot_be_used_is_named_without_its_value(alone: Site) -> None:
    worker = alone.start("chatter", TOOL_CALL_TIMEOUT="soon-ish")
    refused(worker, 4, "TOOL_CALL_TIMEOUT")
    assert "soon-ish" not in worker.tail()


def test_a_process_does_not_run_under_another_agents_name(alone: Site) -> None:
    refused(alone.start("chatter", AGENT_NAME="planner"), 4, "AGENT_NAME is planner")


class _Denies(BaseHTTPRequestHandler):
    """Supabase's gateway, to a key that it does not know."""

    def _deny(self) -> None:
        body = b'{"message":"Invalid API key","hint":"Double check your Supabase API key."}'
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.send_response(401)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_HEAD = do_POST = do_PATCH = do_DELETE = _deny

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed."""


@pytest.fixture
def supabase() -> Iterator[str]:
    """The URL of an endpoint that takes no key."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Denies) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join(10)


def test_a_wrong_key_of_the_store_is_said_at_once_and_never_shown(alone: Site, supabase: str) -> None:
    worker = alone.start("chatter", SUPABASE_URL=supabase, SUPABASE_SERVICE_ROLE_KEY=SECRET)
    refused(worker, 4, "SUPABASE_SERVICE_ROLE_KEY")
    assert SECRET not in worker.tail()


def test_a_store_without_a_key_is_refused(alone: Site, supabase: str) -> None:
    refused(alone.start("chatter", SUPABASE_URL=supabase), 4, "SUPABASE_SERVICE_ROLE_KEY")


@pytest.mark.parametrize(
    "url", ["redis://127.0.0.1:{port}", ""], ids=["nobody listens", "none is configured"]
)
def test_without_redis_there_is_no_cluster_to_reach(url: str, alone: Site) -> None:
    refused(alone.start("chatter", REDIS_URL=url.format(port=free_port())), 3, "Redis")


def test_a_redis_url_that_is_none_is_a_wrong_setting(alone: Site) -> None:
    refused(alone.start("chatter", REDIS_URL="localhost:6379"), 4, "REDIS_URL")


def test_an_agent_that_nobody_defined_is_refused(alone: Site) -> None:
    (alone.home / "agents" / "ghost").mkdir(parents=True)
    refused(alone.start("ghost"), 4, "there is no agent called 'ghost'", "profile.toml")
