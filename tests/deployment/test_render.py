"""render.yaml describes five workers, a host of other agents, and a Key Value instance that keeps what it was given."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest

from tests.deployment.reading import AGENTS, broken, groups, render, unknown_variables
from tests.house.tree import ROOT, project


def _worker(agent: str) -> dict[str, Any]:
    return render()[f"promptdock-{agent}"]


def _variables(agent: str) -> dict[str, dict[str, Any]]:
    return {entry["key"]: entry for entry in _worker(agent)["envVars"] if "key" in entry}


def test_there_is_one_key_value_instance_and_a_worker_for_each_agent() -> None:
    assert {name: service["type"] for name, service in render().items()} == {
        "promptdock-redis": "keyvalue",
        **{f"promptdock-{agent}": "worker" for agent in (*AGENTS, "host")},
        "promptdock-web": "web",
    }


def test_the_page_has_a_health_check_and_a_token_that_nobody_has_to_make_up() -> None:
    web = render()["promptdock-web"]
    variables = {entry["key"]: entry for entry in web["envVars"] if "key" in entry}
    assert web["healthCheckPath"] == "/api/health"
    assert variables["PROMPTDOCK_WEB_TOKEN"] == {"key": "PROMPTDOCK_WEB_TOKEN", "generateValue": True}
    assert unknown_variables(variables) == set()


def test_all_agents_that_are_rows_have_a_host() -> None:
    host, backend = _worker("host"), _worker("backend")
    assert host["startCommand"] == "python -m agents.host" and broken(host["startCommand"]) == []
    same = ("runtime", "plan", "buildCommand", "maxShutdownDelaySeconds")
    assert {name: host[name] for name in same} == {name: backend[name] for name in same}
    assert [one for one in backend["envVars"] if one.get("key") != "AGENT_NAME"] == host["envVars"]


def test_the_key_value_instance_evicts_nothing_persists_and_is_private() -> None:
    instance = render()["promptdock-redis"]
    assert instance["maxmemoryPolicy"] == "noeviction"
    assert instance["plan"] != "free"
    assert instance["ipAllowList"] == []


@pytest.mark.parametrize("agent", AGENTS)
def test_a_worker_runs_its_agent(agent: str) -> None:
    assert _worker(agent)["startCommand"] == f"python -m agents.{agent}"
    assert broken(_worker(agent)["startCommand"]) == []
    assert _variables(agent)["AGENT_NAME"]["value"] == agent


@pytest.mark.parametrize("agent", AGENTS)
def test_a_worker_is_built_from_files_and_extras_that_exist(agent: str) -> None:
    words = shlex.split(_worker(agent)["buildCommand"])
    assert words[:3] == ["pip", "install", "--constraint"]
    assert (ROOT / words[3]).is_file()
    extras = re.fullmatch(r"\.\[(.*)\]", words[4])
    assert extras
    assert set(extras[1].split(",")) <= set(project()["project"]["optional-dependencies"])


@pytest.mark.parametrize("agent", AGENTS)
def test_a_worker_sets_only_variables_that_exist(agent: str) -> None:
    shared = [entry["key"] for group in groups() for entry in group["envVars"]]
    assert unknown_variables([*_variables(agent), *shared]) == set()


@pytest.mark.parametrize("agent", AGENTS)
def test_redis_comes_from_the_instance_of_this_blueprint(agent: str) -> None:
    source = _variables(agent)["REDIS_URL"]["fromService"]
    assert source["property"] == "connectionString"
    assert render()[source["name"]]["type"] == source["type"] == "keyvalue"


def test_all_workers_sign_with_one_secret_that_nobody_has_to_make_up() -> None:
    (group,) = groups()
    assert {"key": "PROMPTDOCK_SECRET", "generateValue": True} in group["envVars"]
    assert unknown_variables(["PROMPTDOCK_SECRET"]) == set()
    for agent in AGENTS:
        assert {"fromGroup": group["name"]} in _worker(agent)["envVars"]


SECRETS = ("ANTHROPIC_API_KEY", "SUPABASE_URL", "SUPABASE_SERVICE_ROLE_KEY")


def test_three_secrets_are_asked_for_once_and_never_written_down() -> None:
    asked = [
        (agent, name) for agent in AGENTS for name, entry in _variables(agent).items() if "sync" in entry
    ]
    assert asked == [("chatter", name) for name in SECRETS]
    assert all(_variables("chatter")[name] == {"key": name, "sync": False} for name in SECRETS)
    assert not any("sync" in entry for group in groups() for entry in group["envVars"]), "Render ignores them"


@pytest.mark.parametrize("agent", [agent for agent in AGENTS if agent != "chatter"])
def test_the_other_workers_have_the_secrets_of_chatter(agent: str) -> None:
    for name in SECRETS:
        source = {"type": "worker", "name": "promptdock-chatter", "envVarKey": name}
        assert _variables(agent)[name] == {"key": name, "fromService": source}


@pytest.mark.parametrize("agent", AGENTS)
def test_a_worker_refuses_the_demo_model_and_has_time_to_hand_over(agent: str) -> None:
    (group,) = groups()
    assert {"key": "PROMPTDOCK_ENV", "value": "production"} in group["envVars"]
    assert 30 <= _worker(agent)["maxShutdownDelaySeconds"] <= 300


@pytest.mark.parametrize("agent", AGENTS)
def test_every_value_is_text_as_the_blueprint_wants_it(agent: str) -> None:
    shared = [entry for group in groups() for entry in group["envVars"]]
    values = [entry["value"] for entry in [*_variables(agent).values(), *shared] if "value" in entry]
    assert all(isinstance(value, str) for value in values)
