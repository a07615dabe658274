"""Nothing runs, or something is set wrongly: each answer says what, why, and what to do."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from gateways.cli.commands.cluster import up
from shared.bus.embedded import binary
from shared.client.local import supervision
from shared.errors import BusUnreachable
from shared.settings import Settings
from tests.cli.person import PATIENCE, Person
from tests.support.messages_api import MessagesApi
from tests.support.valkey import free_port

KEY = "sk-ant-api03-made-up-for-a-test"


@pytest.mark.parametrize("words", ["status", "ask Hello", "chat", "publish x {}", "tail", "dead list"])
def test_what_needs_a_cluster_says_how_to_start_one(person: Person, words: str) -> None:
    told = person.is_refused(3, *words.split())
    assert "no cluster runs here" in told
    assert "gateways.cli up" in told, "it is the command as it can be typed here"
    assert not person.home.exists(), "looking makes no data folder"


def test_a_value_that_cannot_be_used_stops_only_what_starts_something(person: Person) -> None:
    wrong = {"LOG_LEVEL": "loud"}
    person.is_refused(4, "up", **wrong)
    person.is_refused(4, "restart", **wrong)
    assert "Nothing that `up` started runs" in person.is_refused(0, "down", **wrong)
    found = person.types("doctor", "--json", **wrong)
    assert found.returncode == 1, found
    levels = {one["name"]: one for one in json.loads(found.stdout)["findings"]}
    assert "LOG_LEVEL" in levels["settings"]["told"]
    assert levels["settings"]["fix"] == "correct LOG_LEVEL in the environment"
    assert {"python", "store", "redis"} <= set(levels), "the rest is looked at as well"
    told = person.is_refused(3, "status", **wrong)
    assert "LOG_LEVEL has a value that cannot be used" in told and "no cluster runs here" in told
    assert person.types("config", "home", **wrong).stdout.strip() == str(person.home)
    shown = person.types("config", "show", "--json", **wrong)
    values = {one["name"]: one["value"] for one in json.loads(shown.stdout)["settings"]}
    assert values["LOG_LEVEL"] == "(cannot be used)"


@pytest.mark.parametrize("name", ["REDIS_URL", "PROMPTDOCK_NAMESPACE", "SUPABASE_URL"])
def test_no_other_cluster_is_looked_at_where_the_address_cannot_be_used(person: Person, name: str) -> None:
    done = person.types("doctor", "--json", **{name: "no address!"})
    told = {one["name"]: one["told"] for one in json.loads(done.stdout)["findings"]}
    assert "nobody knows where" in told["store" if name == "SUPABASE_URL" else "redis"]


def test_a_redis_that_does_not_answer_is_named_without_its_password(person: Person) -> None:
    url = f"redis://:hush-hush@127.0.0.1:{free_port()}"
    told = person.is_refused(3, "status", REDIS_URL=url)
    assert "Redis does not answer" in told
    assert "correct REDIS_URL" in told
    assert "hush-hush" not in told


def test_production_without_a_key_does_not_come_up(person: Person) -> None:
    done = person.types("up", PROMPTDOCK_ENV="production")
    assert done.returncode == 4, done.stdout + done.stderr
    assert "ANTHROPIC_API_KEY" in done.stderr
    assert "do:" in done.stderr


@pytest.mark.skipif(
    importlib.util.find_spec("claude_agent_sdk") is not None, reason="Claude Code is installed"
)
def test_an_executor_that_is_not_installed_is_said_before_anything_starts(person: Person) -> None:
    told = person.is_refused(4, "up", PROMPTDOCK_EXECUTOR="claude-code")
    assert "not installed" in told and "[claude-code]" in told
    assert not person.home.exists()


@pytest.mark.parametrize("name", ["secret", "redis/password"])
def test_a_secret_that_is_none_is_said_before_anything_starts(person: Person, name: str) -> None:
    file = person.home / name
    file.parent.mkdir(parents=True, mode=0o700)
    file.touch(0o600)
    file.write_text("short")
    told = person.is_refused(4, "up")
    assert str(file) in told and "too short" in told and "do:" in told
    assert not (person.home / "cluster.lock").exists()
    assert str(file) in person.types("doctor").stdout


def test_a_data_folder_that_is_a_file_is_said_to_be_one(person: Person) -> None:
    person.home.write_text("")
    told = person.types("up")
    assert told.returncode == 4
    assert "is a file" in told.stderr and "PROMPTDOCK_HOME" in told.stderr


def test_a_wrong_setting_is_named(person: Person) -> None:
    assert "correct LOG_LEVEL" in person.is_refused(4, "up", LOG_LEVEL="loud")


@pytest.mark.parametrize(
    "words",
    ["nonsense", "status --nonsense", "ask", "publish human-input", "key", "ask Hello --timeout soon"],
)
def test_what_is_no_command_is_a_usage_error(person: Person, words: str) -> None:
    done = person.types(*words.split())
    assert done.returncode == 2
    assert "Usage: promptdock" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            "budget spent --by foo",
            "--by cannot be 'foo'\n  do:  give one of: agent, model, task, project, day",
        ),
        ("tasks pause x --hours abc", "--hours is not a number"),
        ("tasks list --limit 0", "--limit / -n is out of its bounds\n  why: it must be greater than"),
        ("budget day -3", "-3 cannot be given here\n  why: what begins with - is an option"),
        ("status --nonsense", "no such option: --nonsense\n  do:  "),
        (
            "tools call list_tasks {bad",
            "the arguments are no JSON\n  why: at character 2 a name in double quotes",
        ),
    ],
)
def test_what_was_typed_wrongly_is_told_in_words_for_people(person: Person, words: str, told: str) -> None:
    refused = person.is_refused(2, *words.split())
    assert told in refused
    assert "Value error" not in refused and "Input should" not in refused


def test_an_agent_that_there_is_not_cannot_be_left_out(person: Person) -> None:
    done = person.types("up", "--without", "nobody")
    assert done.returncode == 2, done.stdout + done.stderr
    assert "there are: chatter" in done.stderr
    assert "backend=0" in person.is_refused(2, "up", "--scale", "backend=0")
    assert not person.home.exists(), "it was noticed before anything was started"


def test_what_does_not_run_cannot_be_restarted(person: Person) -> None:
    assert "promptdock up" in person.is_refused(3, "restart").replace("-m gateways.cli", "promptdock")


def test_down_with_nothing_running_says_so(person: Person) -> None:
    done = person.types("down")
    assert done.returncode == 0
    assert "Nothing" in done.stderr


ALONE = [word for name in ("planner", "researcher", "frontend", "backend") for word in ("--without", name)]


def test_a_worker_that_died_is_told_of_with_the_cause_and_its_log(person: Person) -> None:
    up = person.start("up", *ALONE)
    with up:
        try:
            _until_try(up)
            found = supervision.running(person.home)
            assert found is not None
            os.kill(found.workers["chatter"], signal.SIGKILL)
            assert up.stderr is not None
            told = [next(line for line in up.stderr if "chatter ended and is started again" in line)]
            told += [up.stderr.readline(), up.stderr.readline()]
        finally:
            person.types("down")
            up.kill()
    assert "killed by signal 9 (SIGKILL)" in told[1]
    assert str(person.home / "logs" / "chatter.log") in told[2]


def test_ctrl_c_ends_what_up_started_drained(person: Person) -> None:
    up = person.start("up", *ALONE)
    with up:
        try:
            told = _until_try(up)
            assert "chatter  ready in" in told
            up.send_signal(signal.SIGINT)
            _, talk = up.communicate(timeout=PATIENCE)
        finally:
            up.kill()
            person.types("down")
    assert up.returncode == 0, talk
    assert talk.endswith("Ended.\n")
    assert "no cluster runs here" in person.is_refused(3, "status")


def _until_try(up: subprocess.Popen[str]) -> str:
    assert up.stdout is not None
    told = ""
    for line in up.stdout:
        told += line
        if "Try " in line:
            return told
    raise AssertionError(told)


@pytest.fixture
def forgetful(tmp_path: Path) -> Iterator[str]:
    """A Redis that keeps nothing."""
    port = free_port()
    server = subprocess.Popen(
        [str(binary()), "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path)],
        stdout=subprocess.DEVNULL,
    )
    yield f"redis://127.0.0.1:{port}"
    server.kill()
    server.wait(PATIENCE)


def test_doctor_fails_a_redis_that_keeps_nothing(person: Person, forgetful: str) -> None:
    done = person.types("doctor", REDIS_URL=forgetful)
    assert done.returncode == 1, done.stdout
    assert "Redis keeps no append-only file" in done.stdout
    assert "CONFIG SET appendonly yes" in done.stdout


def test_doctor_works_with_nothing_running(person: Person) -> None:
    done = person.types("doctor")
    assert done.returncode == 0, done.stdout
    assert "no cluster runs here" in done.stdout


class _Closed(BaseHTTPRequestHandler):
    """A Supabase that takes no key."""

    def do_GET(self) -> None:
        self.send_response(401)
        self.end_headers()
        self.wfile.write(b'{"message":"Invalid API key"}')

    do_HEAD = do_POST = do_GET

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@pytest.fixture
def closed() -> Iterator[str]:
    """Its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Closed) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_service_key_that_is_wrong_or_missing_is_a_configuration_error(person: Person, closed: str) -> None:
    told = person.is_refused(
        4, "tasks", "list", SUPABASE_URL=closed, SUPABASE_SERVICE_ROLE_KEY="sb_secret_wrong_key"
    )
    assert "SUPABASE_SERVICE_ROLE_KEY" in told
    assert "sb_secret_wrong_key" not in told
    assert "SUPABASE_SERVICE_ROLE_KEY" in person.is_refused(4, "tasks", "list", SUPABASE_URL=closed)


def test_a_key_is_checked_and_kept_for_its_owner_alone(person: Person) -> None:
    with MessagesApi(keys={KEY}) as api:
        done = person.types("key", "set", stdin=f"{KEY}\n", ANTHROPIC_BASE_URL=api.url)
        assert done.returncode == 0, done.stderr
        kept = person.home / ".env"
        assert kept.read_text() == f"ANTHROPIC_API_KEY={KEY}\n"
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
        checked = person.types("key", "check", ANTHROPIC_BASE_URL=api.url)
        assert (checked.returncode, checked.stdout) == (0, "The provider takes the key.\n")
        shown = person.does("config", "show")
    assert KEY not in done.stdout + done.stderr + shown
    assert "ANTHROPIC_API_KEY" in shown


def test_a_key_that_is_refused_is_not_kept(person: Person) -> None:
    with MessagesApi(keys={KEY}) as api:
        told = person.is_refused(4, "key", "set", stdin="sk-ant-another-one\n", ANTHROPIC_BASE_URL=api.url)
    assert "not taken" in told
    assert "sk-ant-another-one" not in told
    assert not (person.home / ".env").exists()
    assert "key set" in person.is_refused(4, "key", "check")


def test_a_key_is_taken_out_again_and_all_else_that_was_set_stays(person: Person) -> None:
    person.home.mkdir()
    file = person.home / ".env"
    file.write_text(
        f"LOG_LEVEL=info\nexport ANTHROPIC_API_KEY={KEY}\nANTHROPIC_API_KEY={KEY}\nBUDGET_DAY=3\n"
    )
    done = person.types("key", "unset")
    assert done.returncode == 0 and "taken out" in done.stderr
    assert file.read_text() == "LOG_LEVEL=info\nBUDGET_DAY=3\n"
    assert "no key is set" in person.is_refused(4, "key", "check")
    assert "There is no ANTHROPIC_API_KEY" in person.types("key", "unset").stderr
    assert "unset it" in person.types("key", "unset", ANTHROPIC_API_KEY=KEY).stderr


def test_without_a_cluster_a_chat_is_refused_in_the_lines_of_every_command(person: Person) -> None:
    told = person.is_refused(3, "chat")
    assert "\n  why: " in told and "\n  do:  " in told


def test_a_project_without_a_name_is_refused_with_what_to_give(person: Person) -> None:
    told = person.is_refused(2, "project", "create", " ")
    assert "a project needs a name" in told and "do:  give one" in told


def test_what_is_not_utf8_is_said_to_be_so(person: Person) -> None:
    for words in (("ask",), ("publish", "human-input")):
        told = person.is_refused(2, *words, "caf\udce9")
        assert "not UTF-8" in told and "byte 3 is 0xe9" in told


def test_who_interrupts_while_the_command_is_still_loaded_gets_no_traceback(person: Person) -> None:
    interrupted = """
import sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "gateways.cli.app":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupt())
from gateways.cli.__main__ import main
sys.exit(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", interrupted], env=person.environment(), capture_output=True, timeout=PATIENCE
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


def test_what_did_not_come_up_blocks_no_later_try(
    person: Person, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(up, "_REDIS", 1.0)
    monkeypatch.setattr(up, "_PATIENT", 0.1)
    monkeypatch.setenv("PROMPTDOCK_FOLDER", str(person.folder))
    settings = Settings(REDIS_URL=f"redis://127.0.0.1:{free_port()}", PROMPTDOCK_HOME=person.home)
    monkeypatch.setenv("REDIS_URL", str(settings.redis_url and settings.redis_url.get_secret_value()))
    with pytest.raises(BusUnreachable) as told:
        asyncio.run(up.up(settings, supervision.PlanChange(), detach=True))
    assert "REDIS_URL" in told.value.fix
    assert "waiting for Redis" in capsys.readouterr().err
    supervision.refuse_second(person.home)
    assert supervision.left(person.home) == []
