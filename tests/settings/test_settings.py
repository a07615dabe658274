"""Settings come from the environment before `.env`; a wrong one is named, and its value is never shown."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from shared import failpoints
from shared.errors import ConfigurationError
from shared.folders import HOME_NAME, data_folder, find_home, trust, unreadable
from shared.settings import Settings, load
from tests.house.tree import variables

SECRET = "s3cr3t-value"


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty working folder, and no variable of ours."""
    for name in [*variables(), "REVIEWER_MODEL"]:
        monkeypatch.delenv(name, raising=False)
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path.with_name(f"{tmp_path.name}-{name}")))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_without_anything_set_it_is_a_demo_on_this_machine(folder: Path) -> None:
    found = load()
    assert (found.env, found.namespace, found.redis_url) == ("development", "", None)
    assert found.home.parent == data_folder() and found.home.name.startswith(folder.name[:40])


def test_a_file_is_read_and_the_environment_comes_before_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / ".env").write_text('TOOL_CALL_TIMEOUT=1000\nLOG_LEVEL="debug"\nSOMETHING_ELSE=1\n')
    assert load().log_level == "info", "nobody trusted this folder"
    trust(folder)
    assert (load().tool_call_timeout_ms, load().log_level) == (1000, "debug")
    monkeypatch.setenv("TOOL_CALL_TIMEOUT", "2000")
    assert load().tool_call_timeout_ms == 2000


def test_a_variable_that_is_set_to_nothing_counts_as_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "")
    monkeypatch.setenv("CONVERSATION_TIMEOUT", "")
    assert load().anthropic_api_key is None
    assert load().conversation_timeout_ms == 3_600_000


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TOOL_CALL_TIMEOUT", SECRET),
        ("TOOL_CALL_TIMEOUT", "0"),
        ("CONVERSATION_TIMEOUT", "-1"),
        ("PROMPTDOCK_LEASE", "10"),
        ("PROMPTDOCK_NAMESPACE", f"{SECRET} with a space"),
        ("PROMPTDOCK_NAMESPACE", "a:b"),
        ("PROMPTDOCK_ENV", SECRET),
        ("LOG_LEVEL", SECRET),
        ("TOOL_MODE", SECRET),
        ("SANDBOX", SECRET),
        ("BUDGET_DAY", "-0.5"),
        ("REDIS_URL", SECRET),
        ("REDIS_URL", f"http://{SECRET}"),
        ("SUPABASE_URL", SECRET),
        ("ANTHROPIC_BASE_URL", f"{SECRET}.example.com"),
        ("PROMPTDOCK_SECRET", SECRET),
    ],
)
def test_a_value_that_cannot_be_used_is_named_without_being_shown(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError) as caught:
        load()
    assert name in caught.value.what
    assert SECRET not in str(caught.value)
    assert caught.value.exit_code == 4


def test_all_that_is_wrong_is_told_at_once_with_the_file_in_which_it_stands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home = find_home()
    home.mkdir(parents=True)
    (home / ".env").touch(0o600)
    (home / ".env").write_text(f"LOG_LEVEL=loud\nPROMPTDOCK_SECRET={SECRET}\n")
    monkeypatch.setenv("REDIS_URL", SECRET)
    with pytest.raises(ConfigurationError) as caught:
        load()
    told = caught.value
    assert all(name in told.what for name in ("LOG_LEVEL", "PROMPTDOCK_SECRET", "REDIS_URL"))
    assert "PROMPTDOCK_SECRET must have at least 32 characters" in told.why
    assert str(home / ".env") in told.fix and "the environment" in told.fix
    assert SECRET not in str(told)


@pytest.mark.parametrize(
    "url",
    [
        "redis://localhost",
        "rediss://default:x@redis.example.com:6380/0?ssl_ca_certs=/etc/ca.pem",
        "unix:///run/valkey.sock?db=1",
        "redis+sentinel://one:26379,two:26379/service/0",
        "redis+cluster://one:7000,two:7001",
    ],
)
def test_every_kind_of_address_of_redis_is_taken(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", url)
    assert load().redis_url is not None


def test_the_model_of_an_agent_of_ones_own_is_read_from_a_file() -> None:
    home = find_home()
    home.mkdir(parents=True)
    (home / ".env").touch(0o600)
    (home / ".env").write_text("CODE_SMITH_MODEL=careful\n")
    assert load().model_for("code-smith") == "careful"
    assert load().model_for("smith") is None


def test_a_line_that_cannot_be_read_is_named_and_the_others_count(capfd: pytest.CaptureFixture[str]) -> None:
    home = find_home()
    home.mkdir(parents=True)
    (home / ".env").touch(0o600)
    (home / ".env").write_text("what is this\nLOG_LEVEL=debug\n")
    assert load().log_level == "debug"
    assert unreadable(home) == [(home / ".env", "line 1 is no NAME=value")]
    (home / ".env").write_bytes("LOG_LEVEL=debug\n".encode("utf-16"))
    assert load().log_level == "info"
    assert unreadable(home) == [(home / ".env", "it is not UTF-8")]
    assert capfd.readouterr().err == ""


def test_secrets_are_not_shown_by_settings_that_are_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "SUPABASE_SERVICE_ROLE_KEY", "PROMPTDOCK_WEB_TOKEN", "DISCORD_TOKEN"):
        monkeypatch.setenv(name, SECRET)
    monkeypatch.setenv("REDIS_URL", f"redis://:{SECRET}@127.0.0.1:6379")
    found = load()
    assert found.anthropic_api_key is not None
    assert SECRET not in repr(found) + str(found)
    assert found.redis_url is not None and SECRET in found.redis_url.get_secret_value()


@pytest.mark.parametrize("name", ["SUPABASE_SERVICE_ROLE_KEY", "SUPABASE_SECRET_KEY"])
def test_the_stores_key_has_two_names(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, SECRET)
    assert load().supabase_key is not None


def test_an_agents_own_model_comes_before_the_one_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load().model_for("planner") is None
    monkeypatch.setenv("PROMPTDOCK_MODEL", "for-all")
    monkeypatch.setenv("PLANNER_MODEL", "for-planner")
    monkeypatch.setenv("REVIEWER_MODEL", "for-reviewer")
    told = {agent: load().model_for(agent) for agent in ("chatter", "planner", "reviewer")}
    assert told == {"chatter": "for-all", "planner": "for-planner", "reviewer": "for-reviewer"}


def test_roles_are_a_list_with_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APPROVER_ROLES", " boss, lead ,,")
    assert load().approver_roles == frozenset({"boss", "lead"})


def test_the_home_is_the_nearest_one_above(folder: Path) -> None:
    deep = folder / "a" / "b"
    deep.mkdir(parents=True)
    find_home(folder).mkdir(parents=True)
    assert find_home(deep) == find_home(folder) != find_home(folder.parent)
    (folder / HOME_NAME).mkdir()
    assert find_home(deep).parent == data_folder(), "nobody trusted that folder"
    trust(folder)
    assert find_home(deep) == folder / HOME_NAME
    (folder / "a" / HOME_NAME).write_text("a file is no home")
    assert find_home(deep) == folder / HOME_NAME


def test_a_home_that_is_named_is_made_absolute(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROMPTDOCK_HOME", "here/../there")
    assert load().home == folder / "there"


def test_settings_do_not_change_once_they_are_read() -> None:
    found = load()
    with pytest.raises(ValueError, match="frozen"):
        found.namespace = "other"  # type: ignore[misc]
    assert isinstance(found, Settings)


@pytest.mark.parametrize("name", ["PROMPTDOCK_FAULT", "PROMPTDOCK_FAULT_ONCE", "PROMPTDOCK_WITHOUT"])
def test_production_refuses_the_switches_of_tests(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "safe-path")
    load()
    monkeypatch.setenv("PROMPTDOCK_ENV", "production")
    with pytest.raises(ConfigurationError, match=name):
        load()


def test_the_switches_of_tests_do_nothing_in_production(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in a command that only looks, which production does not refuse: it ends by itself, nobody kills it."""
    killed: list[int] = []
    monkeypatch.setattr(os, "kill", lambda _pid, number: killed.append(number))
    monkeypatch.setenv("PROMPTDOCK_WITHOUT", "fencing,seccomp")
    monkeypatch.setenv("PROMPTDOCK_FAULT", "claimed@m-7")
    failpoints.read()
    assert failpoints.without("seccomp")
    failpoints.point("claimed", "m-7")
    assert killed == [signal.SIGKILL]
    monkeypatch.setenv("PROMPTDOCK_ENV", "production")
    failpoints.read()
    assert not failpoints.without("seccomp")
    failpoints.point("claimed", "m-7")
    assert killed == [signal.SIGKILL]


def test_the_switches_of_tests_are_read_once_with_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROMPTDOCK_WITHOUT", "seccomp")
    load()
    monkeypatch.setenv("PROMPTDOCK_WITHOUT", "fencing")
    assert failpoints.without("seccomp") and not failpoints.without("fencing")


def test_bounds_of_age_are_days_by_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETENTION", " logs=7, audit_log=0 ,")
    assert load().retention == {"logs": 7, "audit_log": 0}
    for wrong in ("logs", "logs=soon", "tasks=3", "logs=-1"):
        monkeypatch.setenv("RETENTION", wrong)
        with pytest.raises(ConfigurationError, match="RETENTION has a value that cannot be used"):
            load()


def test_what_starts_nothing_does_without_values_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOG_LEVEL", SECRET)
    monkeypatch.setenv("TOOL_CALL_TIMEOUT", "1000")
    found = load(lenient=True)
    assert (found.log_level, found.tool_call_timeout_ms) == ("info", 1000)
    (wrong,) = found.wrong
    assert (wrong.name, wrong.place) == ("LOG_LEVEL", "the environment")
    assert "'debug'" in wrong.told and "correct LOG_LEVEL" in wrong.fix
    assert SECRET not in f"{wrong.told}{wrong.fix}"


def test_what_is_for_tests_is_told_of_production_also_where_nothing_is_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PROMPTDOCK_ENV", "production")
    monkeypatch.setenv("PROMPTDOCK_FAULT", "x")
    with pytest.raises(ConfigurationError, match="PROMPTDOCK_FAULT"):
        load()
    assert [one.name for one in load(lenient=True).wrong] == ["PROMPTDOCK_FAULT"]
