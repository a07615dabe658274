"""Looking at the cluster, and what its commands say of it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from shared.worker.supervise import AGENTS
from tests.cli.person import PATIENCE, Person


def test_up_tells_on_what_it_stands_and_what_to_type_next(cluster: Person) -> None:
    told = (cluster.folder / "up.txt").read_text()
    assert re.search(r"ok +redis +embedded Valkey \S+ on 127\.0\.0\.1:\d+", told)
    assert re.search(r"ok +store +SQLite home/promptdock\.db", told)
    assert re.search(r"! +model +DEMO", told)
    assert re.search(rf"ok +agents +{' '.join(AGENTS)} +ready in \d", told)
    assert "Try " in told


def test_a_taken_port_is_left_alone_and_the_matching_command_is_printed(cluster: Person) -> None:
    told = (cluster.folder / "up.txt").read_text()
    port = re.search(r"127\.0\.0\.1:(\d+)", told)
    assert port is not None
    assert port[1] != "6379"
    assert f"redis-cli -p {port[1]} PUBLISH human-input" in told


def test_a_second_up_says_that_it_is_running_already(cluster: Person) -> None:
    told = cluster.is_refused(2, "up")
    assert "running already" in told
    assert "down" in told


def test_status_shows_who_is_here_and_on_what_it_stands(cluster: Person) -> None:
    told = cluster.does("status")
    assert all(re.search(rf"^{agent} +idle", told, re.MULTILINE) for agent in AGENTS)
    assert "DEMO" in told
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
    assert "write it after show" in cluster.is_refused(2, "tasks", "--json", "show", "x")


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
