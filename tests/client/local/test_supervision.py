"""One cluster a home: what a killed supervisor leaves is found and ended, and none outlives its home."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.bus import embedded
from shared.bus.embedded import Embedded
from shared.client.doctor import machine
from shared.client.local import supervision
from shared.errors import PromptDockError
from shared.guard.processes import running
from shared.guard.processes.pid import birth
from shared.guard.processes.plan import ClusterPlan
from shared.settings import Settings
from shared.worker import supervisor as supervise
from shared.worker.supervisor import AGENTS, Supervisor
from tests.support.processes import until
from tests.support.valkey import free_port


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home in which nothing runs afterwards."""
    place = tmp_path / "home"
    yield place
    if place.exists():
        supervision.stop(place)


@pytest.fixture
def sleepers() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Two processes that do nothing."""
    made = [subprocess.Popen(["sleep", "60"]) for _ in range(2)]
    yield made
    for process in made:
        process.kill()
        process.wait()


def _redis(home: Path) -> int:
    return supervision.redis_pid(home) or 0


NONE = (*AGENTS, "web", "host")  # nothing runs but Redis


def _started(home: Path) -> subprocess.Popen[bytes]:
    """A cluster without agents, once it has written down who it is."""
    process = supervision.start(home, NONE)

    def here() -> bool:
        assert process.poll() is None, supervision.log_file(home).read_text()
        return supervision.running(home) is not None

    until(here, what="a cluster", told=supervision.log_file(home).read_text)
    return process


def _killed(home: Path) -> int:
    """The Redis of a cluster without agents whose supervisor was killed."""
    process = _started(home)
    process.kill()
    process.wait(10)
    return _redis(home)


def test_a_new_cluster_is_what_was_asked_for_of_a_killed_one(home: Path) -> None:
    _killed(home)
    asked = [f"--without {name}" for name in NONE]
    assert supervision.kept(home, supervision.PlanChange()) == asked
    assert supervision.kept(home, supervision.PlanChange(added=["chatter"])) == asked[1:]
    process = supervision.start(home)
    until(lambda: (found := supervision.running(home)) is not None and found.pid == process.pid, what="it")
    assert supervision.running(home).replicas == ()  # type: ignore[union-attr]
    assert supervision.stop(home) == [f"process {process.pid}"]
    assert process.wait(30) == 0
    assert supervision.kept(home, supervision.PlanChange()) == []


def _files(home: Path) -> list[Path]:
    return list(home.iterdir()) if home.exists() else []


def _replace(home: Path) -> None:
    """Another home in its place, with notes of its own."""
    home.rename(home.with_name("moved"))
    home.mkdir()
    (home / "cluster.lock").touch()
    for name in ("cluster.json", "redis.json"):
        (home / name).write_text('{"pid": 0}')


def test_down_ends_what_a_killed_supervisor_left(home: Path) -> None:
    redis = _killed(home)
    assert supervision.running(home) is None
    assert supervision.left(home) == [f"redis ({redis})"]
    found = machine.leftovers(Settings(PROMPTDOCK_HOME=home))
    assert found is not None and "promptdock down" in found.fix
    assert "promptdock down" in supervision.why(home, -9).fix
    assert supervision.stop(home) == [f"what a killed cluster had left: redis {redis}"]
    assert birth(redis) == ""
    assert supervision.stop(home) == []


def test_a_new_cluster_ends_what_a_killed_one_left_in_its_home(home: Path) -> None:
    redis = _killed(home)
    again = _started(home)
    assert birth(redis) == ""
    assert embedded.running(home) is not None
    assert supervision.left(home) == []
    assert supervision.stop(home) == [f"process {again.pid}"]
    assert again.wait(10) == 0
    assert embedded.running(home) is None


async def test_a_cluster_whose_home_is_deleted_ends_with_its_redis(home: Path) -> None:
    supervisor = Supervisor(Settings(PROMPTDOCK_HOME=home), ())
    supervisor.plan = ClusterPlan((), NONE)
    cluster = asyncio.create_task(supervisor.run())
    async with asyncio.timeout(20):
        while supervision.running(home) is None:
            await asyncio.sleep(0.01)
    redis = _redis(home)
    shutil.rmtree(home)
    with pytest.raises(PromptDockError, match="home of this cluster is gone"):
        await asyncio.wait_for(cluster, 20)
    assert birth(redis) == ""
    assert _files(home) == []


async def test_a_cluster_whose_home_was_replaced_leaves_the_successor_alone(home: Path) -> None:
    supervisor = Supervisor(Settings(PROMPTDOCK_HOME=home), ())
    supervisor.plan = ClusterPlan((), NONE)
    cluster = asyncio.create_task(supervisor.run())
    async with asyncio.timeout(20):
        while supervision.running(home) is None:
            await asyncio.sleep(0.01)
    _replace(home)
    with pytest.raises(PromptDockError, match="home of this cluster is gone"):
        await asyncio.wait_for(cluster, 20)
    assert {path.name for path in _files(home)} == {"cluster.lock", "cluster.json", "redis.json"}


def test_a_redis_that_cannot_start_again_is_tried_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervise, "_REDIS_PAUSE", 0.0)
    supervisor = Supervisor(Settings(PROMPTDOCK_HOME=home), ())
    port = free_port()
    supervisor._redis = server = Embedded(home, port)
    with socket.create_server(("127.0.0.1", port)):
        assert not supervisor._tend_redis()
        assert not server.alive
    try:
        assert supervisor._tend_redis()
        assert embedded.running(home) == server.url
    finally:
        server.stop()


def test_workers_are_ended_before_redis_and_those_that_do_not_drain_are_killed(
    tmp_path: Path, sleepers: list[subprocess.Popen[bytes]]
) -> None:
    stubborn = (
        "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); signal.pause()"
    )
    with subprocess.Popen([sys.executable, "-c", stubborn], stdout=subprocess.PIPE) as worker:
        assert worker.stdout is not None
        worker.stdout.readline()
        running.note(tmp_path, {}, {"redis": sleepers[0].pid, "chatter": worker.pid})
        ended = running.end(tmp_path, 0.1)
    assert {process.name for process in ended} == {"redis", "chatter"}
    assert (worker.returncode, sleepers[0].wait(10)) == (-signal.SIGKILL, -signal.SIGTERM)
    assert running.living(tmp_path) == []


def test_a_worker_that_was_started_just_before_its_supervisor_was_killed_is_ended_without_a_note(
    tmp_path: Path,
) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    left, elsewhere = (
        subprocess.Popen(["sleep", "60"], env={**os.environ, running.HOME_MARK: str(place)})
        for place in (home, other)
    )
    home.mkdir()
    try:
        until(lambda: Path(f"/proc/{left.pid}/comm").read_text() == "sleep\n", what="its own environment")
        assert [process.pid for process in running.end(home)] == [left.pid]
        assert left.wait(10) == -signal.SIGTERM
        assert elsewhere.poll() is None
    finally:
        for one in (left, elsewhere):
            one.kill()
            one.wait()


def test_who_was_given_the_id_of_an_ended_worker_is_left_alone(
    tmp_path: Path, sleepers: list[subprocess.Popen[bytes]]
) -> None:
    stranger = sleepers[0]
    note = {"processes": [{"name": "chatter", "pid": stranger.pid, "birth": "another boot:1"}]}
    (tmp_path / "cluster.json").write_text(json.dumps(note))
    assert running.end(tmp_path) == []
    assert birth(stranger.pid)


@pytest.mark.parametrize("note", ["", "[]", "{}", '{"processes": [1]}', '{"processes": [{"pid": 1}]}'])
def test_a_note_that_cannot_be_read_names_nobody(tmp_path: Path, note: str) -> None:
    (tmp_path / "cluster.json").write_text(note)
    assert running.living(tmp_path) == []


def test_the_note_of_a_killed_supervisor_is_not_taken_for_that_of_its_successor(tmp_path: Path) -> None:
    with (tmp_path / "cluster.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        note = {"pid": os.getpid(), "birth": "another boot:1", "agents": []}
        (tmp_path / "cluster.json").write_text(json.dumps(note))
        assert supervision.running(tmp_path) is None
        (tmp_path / "cluster.json").write_text(json.dumps({**note, "birth": birth(os.getpid())}))
        assert supervision.running(tmp_path) is not None


def test_news_are_the_whole_lines_that_warn_from_now_on(tmp_path: Path) -> None:
    file = supervision.log_file(tmp_path)
    file.parent.mkdir()
    file.write_text('{"level": "warning", "event": "before"}\n')
    news = supervision.News(tmp_path)
    with file.open("a") as log:
        log.write('{"level": "info", "event": "quiet"}\nno JSON\n')
        log.write('{"level": "warning", "event": "it ended", "why": "killed", "fix": "look"}\n{"level": "err')
        log.flush()
        (told,) = news.read()
        assert (told.what, told.why, told.fix) == ("it ended", "killed", "look")
        log.write('or", "event": "half"}\n')
    assert [one.what for one in news.read()] == ["half"]
    assert news.read() == []
