"""The embedded server: on loopback only, everything on disk before it is acknowledged, joined by who comes."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from shared.bus import embedded
from shared.bus.embedded import Embedded
from shared.bus.redis import RedisBus
from shared.errors import BusUnreachable
from shared.settings import Settings
from tests.support.valkey import free_port

Start = Callable[..., Embedded]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a server in a home below the test's folder."""
    made: list[Embedded] = []

    def start(home: str = "home", port: int | None = None) -> Embedded:
        server = Embedded(tmp_path / home, port or free_port())
        made.append(server)
        server.start()
        return server

    yield start
    for server in made:
        server.stop()


def pid(server: Embedded) -> int:
    return int(json.loads((server.home / "redis.json").read_text())["pid"])


def kill(server: Embedded) -> None:
    process = psutil.Process(pid(server))
    process.send_signal(signal.SIGKILL)
    psutil.wait_procs([process], timeout=5)


async def settings(url: str, *names: str) -> list[str]:
    bus = RedisBus(url)
    try:
        return [(await bus.command("CONFIG", "GET", name))[1].decode() for name in names]
    finally:
        await bus.close()


async def test_it_keeps_an_append_only_file_synced_on_each_write_and_evicts_nothing(start: Start) -> None:
    told = await settings(start().url, "appendonly", "appendfsync", "maxmemory-policy", "maxmemory")
    assert told == ["yes", "always", "noeviction", "0"]


async def test_it_listens_on_loopback_only(start: Start) -> None:
    server = start()
    assert await settings(server.url, "bind", "protected-mode") == ["127.0.0.1", "yes"]
    heard = [
        c.laddr.ip
        for c in psutil.Process(pid(server)).net_connections("inet")
        if c.status == psutil.CONN_LISTEN
    ]
    assert heard == ["127.0.0.1"]


async def test_what_was_acknowledged_survives_a_kill(start: Start) -> None:
    server = start()
    bus = RedisBus(server.url)
    for n in range(200):
        await bus.command("RPUSH", "said", n)
    kill(server)
    await bus.close()
    again = RedisBus(start(port=server.port).url)
    assert await again.command("LRANGE", "said", 0, -1) == [b"%d" % n for n in range(200)]
    await again.close()


async def test_what_it_holds_survives_a_stop_and_a_start_of_the_same_object(start: Start) -> None:
    server = start()
    bus = RedisBus(server.url)
    await bus.command("SET", "kept", "yes")
    await bus.close()
    server.stop()
    assert not server.alive
    server.start()
    again = RedisBus(server.url)
    assert await again.command("GET", "kept") == b"yes"
    await again.close()


def test_a_taken_port_is_left_to_whoever_has_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = int(other.getsockname()[1])
        other_port = embedded.free_port(taken)
        assert other_port != taken
        with socket.create_server(("127.0.0.1", other_port)):
            pass
    assert embedded.free_port(taken) == taken


def test_a_port_of_somebody_who_does_not_answer_is_left_as_well() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # bound, and not listening
        assert embedded.free_port(silent.getsockname()[1]) != silent.getsockname()[1]


def test_a_port_that_was_taken_meanwhile_is_said_and_nobody_elses_server_is_joined(
    start: Start, tmp_path: Path
) -> None:
    first = start("first")
    with pytest.raises(BusUnreachable, match="did not start") as told:
        start("second", port=first.port)
    assert "in use" in told.value.why
    assert "overcommit" not in told.value.why  # a hint that has nothing to do with it
    assert not (tmp_path / "second" / "redis.json").exists()
    assert embedded.running(tmp_path / "second") is None
    assert embedded.running(first.home) == first.url


def test_a_port_that_somebody_takes_before_the_server_has_it_is_left_to_them_until_others_know_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "home_port", lambda _home: free_port())
    server = Embedded(tmp_path)
    with socket.create_server(("127.0.0.1", server.port)) as other:
        assert server.start() == server.url != f"redis://127.0.0.1:{other.getsockname()[1]}"
    assert embedded.running(tmp_path) == server.url
    server.stop()
    with (
        socket.create_server(("127.0.0.1", server.port)),
        pytest.raises(BusUnreachable, match="did not start"),
    ):
        server.start()


def test_a_server_that_ends_leaves_the_note_of_its_successor(start: Start) -> None:
    first = start()
    note = first.home / "redis.json"
    second = start(port=free_port())
    first.stop()
    assert embedded.running(second.home) == second.url
    second.stop()
    assert not note.exists()


def test_a_server_that_nobody_could_find_is_not_left_running(tmp_path: Path) -> None:
    (tmp_path / "redis.json").mkdir()  # so that it cannot be written
    server = Embedded(tmp_path, free_port())
    with pytest.raises(BusUnreachable, match="did not start"):
        server.start()
    assert not server.alive


def test_who_comes_to_this_home_finds_where_it_runs(start: Start) -> None:
    server = start()
    assert embedded.running(server.home) == server.url
    server.stop()
    assert embedded.running(server.home) is None
    assert not (server.home / "redis.json").exists()


def test_the_note_of_a_killed_server_leads_nobody_astray(start: Start) -> None:
    server = start()
    kill(server)
    assert (server.home / "redis.json").exists()
    assert embedded.running(server.home) is None


@pytest.mark.parametrize(
    "note", ["", "[]", "{}", '{"pid": "x"}', '{"pid": 1, "url": "redis://127.0.0.1:1", "port": 1}']
)
def test_a_note_that_says_nothing_is_no_server(tmp_path: Path, note: str) -> None:
    (tmp_path / "redis.json").write_text(note)
    assert embedded.running(tmp_path) is None


def test_a_home_keeps_its_port_while_nobody_else_has_it(start: Start) -> None:
    server = start()
    server.stop()
    assert Embedded(server.home).port == server.port
    with socket.create_server(("127.0.0.1", server.port)):
        assert Embedded(server.home).port != server.port


def test_a_configuration_without_a_port_is_no_memory_of_one(tmp_path: Path) -> None:
    config = tmp_path / "redis" / "valkey.conf"
    assert embedded.last_port(tmp_path) is None
    config.parent.mkdir()
    for text in ("", 'port "0"\n', 'port "70000"\n', "port x\n"):
        config.write_text(text)
        assert embedded.last_port(tmp_path) is None


def test_a_full_disk_is_why_there_is_no_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = Settings(PROMPTDOCK_HOME=tmp_path)
    with pytest.raises(BusUnreachable, match="no cluster runs here"):
        embedded.address(here)
    monkeypatch.setattr(embedded, "_ROOM", 1 << 62)
    with pytest.raises(BusUnreachable) as told:
        embedded.address(here)
    assert told.value.why == f"the disk of {tmp_path} is full"
    assert "make room" in told.value.fix


def test_two_homes_have_two_servers(start: Start) -> None:
    first, second = start("first"), start("second")
    assert first.url != second.url
    assert first.alive
    assert second.alive


def test_its_folder_is_for_its_owner_alone(start: Start) -> None:
    assert stat.S_IMODE((start().home / "redis").stat().st_mode) == 0o700


def test_a_ctrl_c_at_the_terminal_is_not_for_it(start: Start) -> None:
    assert os.getsid(pid(start())) != os.getsid(0)
