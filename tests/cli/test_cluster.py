"""Looking at the cluster, and what its commands say of it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from shared.worker.supervisor import AGENTS
from tests.cli.person import PATIENCE, Person


def test_up_tells_on_what_it_stands_and_what_to_type_next(cluster: Person) -> None:
    told = (cluster.folder / "up.txt").read_text()
    assert re.search(r"ok +redis +embedded Valkey \S+ on 127\.0\.0\.1:\d+", told)
    assert re.search(r"ok +store +SQLite home/promptdock\.db", told)
    assert re.search(r"! +model +DEMO", told)
    assert re.search(rf"ok +agents +{' '.join(AGENTS)} +ready in \d", told)
    assert re.search(r"ok +web +http://127\.0\.0\.1:\d+", told)
    assert "Try " in told


def test_the_page_that_up_tells_of_is_there_and_status_tells_of_it_too(cluster: Person) -> None:
    address = cluster.reads("status")["web"]
    assert address in (cluster.folder / "up.txt").read_text()
    with urllib.request.urlopen(f"{address}/api/health", timeout=PATIENCE) as answer:
        assert answer.status == 200
    assert f"  web      {address}\n" in cluster.does("status")


def test_a_taken_port_is_left_alone_and_the_matching_command_is_printed(cluster: Person) -> None:
    told = (cluster.folder / "up.txt").read_text()
    port = re.search(r"127\.0\.0\.1:(\d+)", told)
    assert port is not None
    assert port[1] != "6379"
    assert "port 6379 is taken" in told
    direct = f"redis-cli -p {port[1]} PUBLISH human-input"
    assert (direct if shutil.which("redis-cli") else "gateways.cli publish human-input") in told


def test_a_second_up_says_that_it_is_running_already(cluster: Person) -> None:
    told = cluster.is_refused(2, "up")
    assert "running already" in told
    assert "down" in told
    again = cluster.does("up", "-d")
    assert re.search(rf"ok +agents +{' '.join(AGENTS)}$", again, re.MULTILINE)


def test_up_says_who_else_can_read_the_data_folder(cluster: Person) -> None:
    home = cluster.folder / "home"
    assert "can be read by others" not in cluster.does("up", "-d")
    home.chmod(0o755)
    try:
        told = cluster.does("up", "-d")
    finally:
        home.chmod(0o700)
    assert "can be read by others (mode 755)" in told
    assert f"chmod 700 {home}" in told


def test_status_shows_what_it_can_where_a_setting_is_wrong(cluster: Person) -> None:
    done = cluster.types("status", "--json", LOG_LEVEL="loud", REDIS_URL="nonsense")
    assert done.returncode == 0, done
    found = json.loads(done.stdout)
    assert {card["agent"] for card in found["agents"]} == set(AGENTS)
    assert [one["name"] for one in found["settings_wrong"]] == ["REDIS_URL", "LOG_LEVEL"]
    assert "correct REDIS_URL in the environment" in done.stderr


def _pids(cluster: Person, agent: str) -> set[int]:
    return {card["pid"] for card in cluster.reads("status")["agents"] if card["agent"] == agent}


def test_one_agent_is_restarted_and_the_others_stay(cluster: Person) -> None:
    before = {agent: _pids(cluster, agent) for agent in AGENTS}
    assert "planner  here again" in cluster.does("restart", "planner")
    after = {agent: _pids(cluster, agent) for agent in AGENTS}
    assert {agent for agent in AGENTS if before[agent] != after[agent]} == {"planner"}
    assert len(after["planner"]) == 1
    assert "there are: chatter" in cluster.is_refused(2, "restart", "nobody")


def test_more_and_fewer_workers_of_an_agent_run_as_asked(cluster: Person) -> None:
    assert "backend#2" in cluster.does("up", "-d", "--scale", "backend=2")
    assert len(_pids(cluster, "backend")) == 2
    assert "backend#2" not in cluster.does("up", "-d", "--scale", "backend=1", "--without", "researcher")
    assert len(_pids(cluster, "backend")) == 1
    assert "researcher" in cluster.does("up", "-d", "--with", "researcher")
    assert len(_pids(cluster, "researcher")) == 1


def test_an_agent_of_ones_own_is_started_by_itself_and_one_that_is_wrong_is_told_of(cluster: Person) -> None:
    folder = cluster.home / "agents" / "reviewer"
    folder.mkdir(parents=True)
    (folder / "prompt.md").write_text("You are Reviewer.")
    (folder / "profile.toml").write_text('kind = "nonsense"\nnothing = 1\n')
    try:
        _until(lambda: "reviewer cannot start" in cluster.does("up", "-d"))
        told = cluster.does("up", "-d")
        assert "kind: must be 'chat'" in told and "nothing: is no field" in told
        assert "pydantic" not in told
        assert re.search(r"^reviewer +cannot start: the agent in", cluster.does("status"), re.MULTILINE)
        found = {finding["name"]: finding for finding in cluster.reads("doctor")["findings"]}
        assert "reviewer cannot start" in found["presence"]["told"]
        (folder / "profile.toml").write_text('kind = "consult"\n')
        _until(lambda: bool(_pids(cluster, "reviewer")))
        assert "cannot start" not in cluster.does("up", "-d")
        (first,) = _pids(cluster, "reviewer")
        os.kill(first, signal.SIGKILL)
        _until(lambda: first not in _pids(cluster, "reviewer"), 10.0)  # a heartbeat counts for 15 s
        _until(lambda: bool(_pids(cluster, "reviewer")))
    finally:
        shutil.rmtree(folder)
    _until(lambda: "reviewer" not in cluster.does("agents", "list"))


def _until(condition: Callable[[], bool], seconds: float = PATIENCE) -> None:
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.05)


def test_status_shows_who_is_here_and_on_what_it_stands(cluster: Person) -> None:
    told = cluster.does("status")
    assert all(re.search(rf"^{agent} +idle", told, re.MULTILINE) for agent in AGENTS)
    assert "DEMO" in told
    assert re.search(r"^chatter +idle +\d+ \w+ +\d+ MB", told, re.MULTILINE)
    state = cluster.reads("status")
    assert state["schema"] == "promptdock.status.v1"
    assert (state["demo"], state["offline"]) == (True, [])


def test_status_of_one_agent_answers_with_its_exit_code(cluster: Person) -> None:
    assert "chatter" in cluster.does("status", "chatter")
    told = cluster.is_refused(1, "status", "nobody")
    assert "there is no agent nobody" in told
    assert "chatter" in told


def test_logs_are_those_of_the_agent_that_is_named(cluster: Person) -> None:
    lines = [json.loads(line) for line in cluster.does("logs", "planner", "--json").splitlines()]
    assert {line["agent"] for line in lines} == {"planner"}
    assert any("ready" in line["event"] for line in lines)
    assert "there are: " in cluster.is_refused(2, "logs", "nobody")


def test_what_the_cluster_writes_down_can_be_read_by_its_owner_alone(cluster: Person) -> None:
    places = (cluster.home.glob("*"), *(cluster.home.joinpath(name).rglob("*") for name in ("logs", "redis")))
    files = [path for place in places for path in place if path.is_file()]
    assert {"cluster.log", "planner.log", "promptdock.db", "valkey.conf"} <= {path.name for path in files}
    assert [str(path) for path in files if path.stat().st_mode & 0o077] == []


def test_doctor_is_content_with_a_cluster_that_runs(cluster: Person) -> None:
    found = {finding["name"]: finding for finding in cluster.reads("doctor")["findings"]}
    assert found["persistence"]["level"] == "ok"
    assert found["presence"]["level"] == "ok"
    assert found["model"]["level"] == "warn"
    assert "key set" in found["model"]["fix"]


def test_tail_prints_what_is_published(cluster: Person) -> None:
    with cluster.start("tail", "mine.*") as tail:
        assert tail.stderr is not None and tail.stdout is not None
        assert "listening on mine.*" in tail.stderr.readline()
        ends = time.monotonic() + PATIENCE  # it may subscribe a moment after it says so
        while not cluster.reads("publish", "mine.one", '{"n":1}')["heard"]:
            assert time.monotonic() < ends, "tail does not listen"
        line = json.loads(tail.stdout.readline())
        tail.send_signal(signal.SIGINT)
        assert tail.wait(PATIENCE) == 130
    assert (line["channel"], line["message"]["n"]) == ("mine.one", 1)


@pytest.mark.parametrize(
    ("channel", "message", "why"),
    [
        ("human-input", "{nonsense", "JSON"),
        ("human-input", "[]", "object"),
        ("human-input", '{"content":"Hello"}', "user_id"),
        ("agent:planner", '{"from":"x","to":"researcher","type":"task","payload":{}}', "planner"),
    ],
)
def test_what_nobody_could_read_is_not_published(
    cluster: Person, channel: str, message: str, why: str
) -> None:
    assert why in cluster.is_refused(2, "publish", channel, message)


def test_a_plain_publish_has_no_id_to_print(cluster: Person) -> None:
    done = cluster.types("publish", "foo", "{}")
    assert (done.returncode, done.stdout) == (0, "")
    assert "0 heard it" in done.stderr


def test_who_writes_to_an_agent_that_is_not_there_is_told_so(cluster: Person) -> None:
    asked = '{"from":"x","to":"%s","type":"question","payload":{"question":"Who?"}}'
    told = cluster.types("publish", "agent:nobody", asked % "nobody").stderr
    assert "accepted" in told and "nobody is here as nobody" in told
    assert "nobody is here" not in cluster.types("publish", "agent:planner", asked % "planner").stderr


def test_no_lines_of_the_log_are_none(cluster: Person) -> None:
    assert cluster.does("logs", "-n", "0") == ""


def test_tasks_without_a_command_are_listed_with_the_options_of_the_list(cluster: Person) -> None:
    assert cluster.reads("tasks") == cluster.reads("tasks", "list")
    assert cluster.reads("tasks", "--all") == cluster.reads("tasks", "list", "--all")


@pytest.mark.parametrize(
    "noun", ["repo", "dead", "tools", "approvals", "permissions", "hooks", "notes", "budget", "config"]
)
def test_a_noun_without_a_command_lists_what_there_is(cluster: Person, noun: str) -> None:
    usual = "show" if noun in ("budget", "config") else "list"
    assert cluster.reads(noun) == cluster.reads(noun, usual)


@pytest.mark.parametrize("words", ["tasks show nope", "status --nonsense", "nonsense", "publish human-input"])
def test_with_json_an_error_is_a_document_on_stdout(cluster: Person, words: str) -> None:
    done = cluster.types(*words.split(), "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["schema"], found["error"]["code"]) == (2, "promptdock.error.v1", 2)
    assert set(found["error"]) == {"what", "why", "do", "code"} and found["error"]["what"]
    assert done.stderr == ""


@pytest.mark.parametrize("words", ["review", "merge", "discard", "restart", "changes {} x", "answer {} x"])
def test_a_task_that_there_is_not_is_a_wrong_argument(cluster: Person, words: str) -> None:
    command, *rest = words.split()
    told = cluster.is_refused(2, "tasks", command, "nope", *rest[1:])
    assert "there is no task 'nope'" in told
    assert "tasks list shows them" in told


@pytest.mark.parametrize("name", ["system", "operator", "human", "person", "status"])
def test_a_bridge_takes_no_reserved_name(cluster: Person, name: str) -> None:
    assert "reserved" in cluster.is_refused(2, "bridge", "--name", name, "--exec", "cat")


def test_a_repository_is_registered_and_listed(cluster: Person) -> None:
    shop = cluster.folder / "shop"
    subprocess.run(["git", "init", "-q", "-b", "main", str(shop)], check=True, timeout=PATIENCE)
    (shop / "app.py").write_text("PRICE = 3\n")
    who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]
    subprocess.run(["git", "-C", str(shop), "add", "."], check=True, timeout=PATIENCE)
    subprocess.run(["git", "-C", str(shop), *who, "commit", "-qm", "x"], check=True, timeout=PATIENCE)
    assert "shop" in cluster.does("repo", "add", "shop", "--kind", "backend")
    listed = {repo["name"]: repo for repo in cluster.reads("repo", "list")["repos"]}
    assert listed["shop"]["kind"] == "backend"
    assert Path(listed["shop"]["path"]) == shop.resolve()
    cluster.does("repo", "remove", "shop")  # the demo builds where there are repositories


def test_what_has_a_name_of_its_own_is_a_document_too(cluster: Person) -> None:
    assert cluster.reads("tools", "show", "bash")["name"] == "bash"
    assert cluster.reads("permissions", "show", "standard")["name"] == "standard"


def test_what_is_no_repository_is_refused_with_what_to_do(cluster: Person) -> None:
    assert "there is no folder" in cluster.is_refused(2, "repo", "add", "nowhere")
    assert "frontend, backend, both" in cluster.is_refused(2, "repo", "add", ".", "--kind", "toy")
    (cluster.folder / "plain").mkdir(exist_ok=True)
    assert "plain" in cluster.is_refused(1, "repo", "add", "plain")


def test_a_dead_letter_is_listed_shown_and_not_posted_again_if_nobody_could_read_it(cluster: Person) -> None:
    import redis

    address = cluster.reads("status")["redis"]["address"]
    with redis.Redis(host="127.0.0.1", port=int(address.rpartition(":")[2])) as line:
        line.publish("human-input", "{broken")
    ends = time.monotonic() + PATIENCE
    while not (found := cluster.reads("dead", "list")["dead"]):
        assert time.monotonic() < ends, "it is in no dead letters"
    key = found[0]["key"]
    assert "not JSON that can be used (" in found[0]["reason"]
    assert "{broken" in cluster.does("dead", "show", key)
    assert "cannot be posted again" in cluster.is_refused(2, "dead", "replay", key)
    assert "dead list" in cluster.is_refused(2, "dead", "show", "nothing")
    lines = cluster.does("dead", "list").splitlines()
    assert re.fullmatch(rf"{key}  \d+ s ago", lines[0])
    assert "not JSON" in lines[1] and lines[2] == "  {broken"
    assert "dead letters: chatter 1, the newest" in cluster.types("status").stderr
    assert "--all" in cluster.is_refused(2, "dead", "drop")
    assert cluster.does("dead", "drop", key) == "1 dead letter dropped\n"
    assert cluster.reads("dead", "list")["dead"] == []
    assert cluster.reads("dead", "drop", "--all")["dropped"] == 0
    assert "dead letters" not in cluster.types("status").stderr


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("/nonexistent/cmd --now", "no such file"),
        ("nobody-has-this", "PATH"),
        ("cat 'x", "quotes"),
        (" ", ""),
    ],
)
def test_a_bridge_to_a_program_that_there_is_not_is_refused(cluster: Person, command: str, why: str) -> None:
    assert why in cluster.is_refused(2, "bridge", "--name", "upper", "--exec", command)
    assert "upper" not in cluster.does("agents", "list")


def test_a_bridge_that_ended_is_on_no_roster(cluster: Person) -> None:
    with cluster.start("bridge", "--name", "upper", "--exec", "tr a-z A-Z") as bridge:
        _until(lambda: _kind(cluster, "upper") == "bridge")
        assert "upper is here" in cluster.is_refused(2, "agents", "forget", "upper")
        bridge.send_signal(signal.SIGTERM)
        assert bridge.wait(PATIENCE) == 0
    assert _kind(cluster, "upper") == ""
    assert "there is no agent 'upper'" in cluster.is_refused(2, "agents", "forget", "upper")


def test_an_agent_that_died_is_forgotten_with_what_waits_for_it_when_that_is_said(cluster: Person) -> None:
    with cluster.start("bridge", "--name", "upper", "--exec", "sleep 60 && cat") as bridge:
        _until(lambda: _kind(cluster, "upper") == "bridge")
        bridge.kill()
    asked = '{"from":"x","to":"upper","type":"question","payload":{"question":"Who?"}}'
    cluster.does("publish", "agent:upper", asked)
    _until(lambda: "upper" not in {card["agent"] for card in cluster.reads("status")["agents"]})
    doctor = {finding["name"]: finding for finding in cluster.reads("doctor")["findings"]}
    assert "messages wait for upper" in doctor["presence"]["told"]
    assert "1 messages wait" in cluster.is_refused(2, "agents", "forget", "upper")
    assert "and 1 entries" in cluster.does("agents", "forget", "upper", "--force")
    assert _kind(cluster, "upper") == ""
    assert cluster.reads("pending")["pending"] == []
    assert "--without chatter" in cluster.is_refused(2, "agents", "forget", "chatter")


def _kind(cluster: Person, name: str) -> str:
    return next((one["kind"] for one in cluster.reads("agents", "list")["agents"] if one["name"] == name), "")
