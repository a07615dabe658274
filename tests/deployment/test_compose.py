"""docker-compose.yml brings up five workers, the host of other agents, and a Redis that keeps what it was given."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.deployment.reading import AGENTS, broken, compose, unknown_variables
from tests.house.tree import ROOT, read


@pytest.fixture
def services() -> dict[str, Any]:
    """All services by name."""
    found: dict[str, Any] = compose()["services"]
    return found


def test_there_is_one_redis_and_a_worker_for_each_agent(services: dict[str, Any]) -> None:
    assert set(services) == {"redis", "host", "web", *AGENTS}


def test_all_agents_that_are_rows_have_a_host(services: dict[str, Any]) -> None:
    host, backend = services["host"], services["backend"]
    assert host["command"] == ["python", "-m", "agents.host"] and broken(host["command"]) == []
    same = ("image", "volumes", "depends_on", "stop_grace_period", "restart", "init", "pull_policy")
    assert {name: host[name] for name in same} == {name: backend[name] for name in same}
    assert {**backend["environment"], **host["environment"]} == backend["environment"]
    assert "AGENT_NAME" not in host["environment"]
    assert host["healthcheck"] == {"disable": True}, "it has no presence of its own"


def test_the_image_is_built_once_and_taken_by_all_workers(services: dict[str, Any]) -> None:
    assert [name for name, service in services.items() if "build" in service] == ["chatter"]
    assert {services[agent]["image"] for agent in AGENTS} == {"promptdock"}
    assert {agent for agent in AGENTS if services[agent]["pull_policy"] == "never"} == {*AGENTS} - {"chatter"}


@pytest.mark.parametrize("agent", AGENTS)
def test_a_worker_runs_its_agent(services: dict[str, Any], agent: str) -> None:
    assert services[agent]["command"] == ["python", "-m", f"agents.{agent}"]
    assert services[agent]["environment"]["AGENT_NAME"] == agent
    assert broken(services[agent]["command"]) == []


@pytest.mark.parametrize("agent", AGENTS)
def test_a_worker_sets_only_variables_that_exist(services: dict[str, Any], agent: str) -> None:
    assert unknown_variables(services[agent]["environment"]) == set()


@pytest.mark.parametrize("agent", AGENTS)
def test_a_worker_is_handed_the_keys_of_the_shell(services: dict[str, Any], agent: str) -> None:
    given = services[agent]["environment"]
    for name in ("ANTHROPIC_API_KEY", "SUPABASE_URL", "SUPABASE_SERVICE_ROLE_KEY"):
        assert given[name] == f"${{{name}:-}}", "set where the shell or .env has it, empty (unset) where not"


@pytest.mark.parametrize("agent", AGENTS)
def test_a_worker_is_healthy_by_its_presence(services: dict[str, Any], agent: str) -> None:
    kind, command = services[agent]["healthcheck"]["test"]
    assert kind == "CMD-SHELL"
    assert command == 'promptdock status "$$AGENT_NAME"'
    assert broken(f"promptdock status {agent}") == []


@pytest.mark.parametrize("agent", AGENTS)
def test_a_worker_has_time_to_hand_over_and_comes_back(services: dict[str, Any], agent: str) -> None:
    assert int(re.fullmatch(r"(\d+)s", services[agent]["stop_grace_period"])[1]) >= 30  # type: ignore[index]
    assert services[agent]["restart"] == "unless-stopped"


def test_all_workers_share_one_home(services: dict[str, Any]) -> None:
    assert {services[agent]["environment"]["PROMPTDOCK_HOME"] for agent in AGENTS} == {"/data"}
    assert all(services[agent]["volumes"] == ["data:/data"] for agent in AGENTS)


def test_whatever_a_service_refers_to_is_there(services: dict[str, Any]) -> None:
    volumes = set(compose()["volumes"])
    for service in services.values():
        assert set(service.get("depends_on", {})) <= set(services)
        assert {volume.partition(":")[0] for volume in service["volumes"]} <= volumes
        assert (ROOT / service.get("build", ".") / "Dockerfile").is_file()


def test_a_worker_waits_for_a_redis_that_answers(services: dict[str, Any]) -> None:
    assert all(services[agent]["depends_on"]["redis"]["condition"] == "service_healthy" for agent in AGENTS)
    assert services["redis"]["healthcheck"]["test"] == ["CMD", "valkey-cli", "-e", "ping"]
    assert {services[agent]["environment"]["REDIS_URL"] for agent in AGENTS} == {"redis://redis:6379/0"}


def test_redis_keeps_what_it_acknowledged(services: dict[str, Any]) -> None:
    command = services["redis"]["command"]
    flags = dict(zip(command[1::2], command[2::2], strict=True))
    assert flags["--appendonly"] == "yes"
    assert flags["--appendfsync"] == "always"
    assert flags["--maxmemory-policy"] == "noeviction"
    assert services["redis"]["volumes"] == ["redis:/data"]


def test_redis_is_reached_from_inside_only(services: dict[str, Any]) -> None:
    assert [name for name, service in services.items() if "ports" in service] == ["web"]


def test_the_page_is_published_on_loopback_and_asks_who_comes_in(services: dict[str, Any]) -> None:
    web = services["web"]
    assert all(port.startswith("127.0.0.1:") for port in web["ports"])
    assert web["environment"]["PROMPTDOCK_WEB_TOKEN"] == "${PROMPTDOCK_WEB_TOKEN:-}"
    assert broken(web["command"]) == [] and unknown_variables(web["environment"]) == set()
    assert web["volumes"] == ["data:/data"]


def test_every_name_that_is_filled_in_from_outside_is_a_setting() -> None:
    filled = re.findall(r"(?<!\$)\$\{(\w+)", read("docker-compose.yml"))
    assert filled
    assert unknown_variables(filled) == set()
