"""The commands of the deployment files really start a worker, and SIGTERM ends it cleanly."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shared.bus.embedded import Embedded
from tests.deployment.reading import AGENTS, argument, compose, exec_form, render
from tests.house.tree import ROOT, variables


def _environment(agent: str, url: str, home: Path) -> dict[str, str]:
    """What the deployment files set, and nothing of the machine that runs the test."""
    inherited = {name: value for name, value in os.environ.items() if name not in variables()}
    ours = {"REDIS_URL": url, "PROMPTDOCK_HOME": str(home), "AGENT_NAME": agent}
    return inherited | ours | {"PYTHONPATH": str(ROOT)}


def _until_ready(worker: subprocess.Popen[bytes], log: Path) -> None:
    ends = time.monotonic() + 30
    while b"ready" not in log.read_bytes():
        assert time.monotonic() < ends, log.read_text()
        try:
            pytest.fail(f"it ended with {worker.wait(0.05)}: {log.read_text()}")
        except subprocess.TimeoutExpired:
            continue


def _starts_and_stops(command: list[str], agent: str, url: str, folder: Path) -> None:
    assert command[0] == "python"
    log = folder / "log"
    with log.open("wb") as stream:
        worker = subprocess.Popen(
            [sys.executable, *command[1:]],
            cwd=folder,
            env=_environment(agent, url, folder / "home"),
            stdout=stream,
            stderr=stream,
        )
    try:
        _until_ready(worker, log)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(30) == 0, log.read_text()
    finally:
        worker.kill()
        worker.wait(10)


def test_the_images_command_starts_a_worker_and_ends_on_sigterm(valkey: Embedded, tmp_path: Path) -> None:
    _starts_and_stops(exec_form(argument("CMD")), "chatter", valkey.url, tmp_path)


@pytest.mark.parametrize("agent", AGENTS)
def test_the_commands_of_compose_and_render_start_that_worker(
    agent: str, valkey: Embedded, tmp_path: Path
) -> None:
    command = compose()["services"][agent]["command"]
    assert render()[f"promptdock-{agent}"]["startCommand"].split() == command
    _starts_and_stops(command, agent, valkey.url, tmp_path)


def test_a_worker_in_production_refuses_to_start_without_a_key(valkey: Embedded, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "agents.chatter"],
        cwd=tmp_path,
        env=_environment("chatter", valkey.url, tmp_path / "home") | {"PROMPTDOCK_ENV": "production"},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 4, done.stderr
    assert "ANTHROPIC_API_KEY" in done.stderr


def test_a_worker_in_production_does_not_join_another_one_with_a_database_of_its_own(
    valkey: Embedded, tmp_path: Path
) -> None:
    production = {"PROMPTDOCK_ENV": "production", "ANTHROPIC_API_KEY": "sk-ant-made-up-for-a-test"}
    production["PROMPTDOCK_NAMESPACE"] = "two-disks"
    production["PROMPTDOCK_SECRET"] = "made-up-for-a-test-and-long-enough"
    log = tmp_path / "log"
    with log.open("wb") as stream:
        first = subprocess.Popen(
            [sys.executable, "-m", "agents.chatter"],
            cwd=tmp_path,
            env=_environment("chatter", valkey.url, tmp_path / "one") | production,
            stdout=stream,
            stderr=stream,
        )
    try:
        _until_ready(first, log)
        second = subprocess.run(
            [sys.executable, "-m", "agents.planner"],
            cwd=tmp_path,
            env=_environment("planner", valkey.url, tmp_path / "two") | production,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert second.returncode == 4, second.stderr
        assert "SUPABASE_URL" in second.stderr and "chatter" in second.stderr
    finally:
        first.kill()
        first.wait(10)
