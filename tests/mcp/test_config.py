"""Where servers are configured: the usual format, what counts, and what is refused in words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shared import folders
from shared.errors import ConfigurationError
from shared.mcp import config
from tests.support.guards import guarded

TIME = {"command": "uvx", "args": ["mcp-server-time"]}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv(folders.FOLDER, str(tmp_path / "project"))
    (tmp_path / "project").mkdir()
    (tmp_path / "home").mkdir(mode=0o700)
    return tmp_path / "home"


def _write(folder: Path, servers: Any, mode: int = 0o600) -> Path:
    file = folder / "mcp.json"
    file.write_text(json.dumps({"mcpServers": servers}))
    file.chmod(mode)
    return file


def _parsed(entry: dict[str, Any], **environment: str) -> config.Server:
    return config.server("x", entry, Path("/f/mcp.json"), environment)


def test_the_format_that_other_clients_have_is_read(home: Path) -> None:
    _write(
        home, {"time": TIME, "docs": {"type": "http", "url": "https://d.example/mcp", "headers": {"A": "b"}}}
    )
    found = config.read(home, {})
    assert not found.problems
    assert found.servers["time"].spec.where == "uvx mcp-server-time"
    assert (found.servers["docs"].spec.type, found.servers["docs"].spec.where) == (
        "http",
        "https://d.example/mcp",
    )


def test_variables_are_filled_in_with_their_defaults() -> None:
    entry = {"url": "https://${HOST:-d.example}/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}
    spec = _parsed(entry, TOKEN="t0ken").spec
    assert (spec.url, spec.headers) == ("https://d.example/mcp", {"Authorization": "Bearer t0ken"})


def test_a_secret_of_the_cluster_is_given_to_no_server() -> None:
    entry = {**TIME, "env": {"KEY": "${ANTHROPIC_API_KEY}"}}
    with pytest.raises(ConfigurationError) as refused:
        config.server("x", entry, Path("/f/mcp.json"), {"ANTHROPIC_API_KEY": "sk-1"}, ["sk-1"])
    assert refused.value.why == "ANTHROPIC_API_KEY holds a secret of the cluster"


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({}, "it needs a command, or a url, not both"),
        ({"command": "a", "url": "https://b"}, "not both"),
        ({"type": "sse", "url": "https://b"}, "'sse' is not spoken here"),
        ({"url": "file:///etc"}, "must begin with https:// or http://"),
        ({"command": "a", "args": "b c"}, "args"),
        ({"command": "a", "network": True}, "network is for a server with sandbox"),
        ({"url": "https://b", "env": {"A": "b"}}, "are for commands"),
        ({"command": "a", "env": {"A": "${NOT_THERE}"}}, "needs the variable NOT_THERE"),
        ({"command": "a", "timeout": 30000}, "timeout"),
    ],
)
def test_what_can_be_no_server_is_refused_with_the_reason(entry: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        _parsed(entry)
    assert why in refused.value.why


@pytest.mark.parametrize("name", ["a b", "a__b", "_a", "../x", "x" * 40, ""])
def test_a_name_that_would_be_no_part_of_a_tools_name_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot be used"):
        config.server(name, TIME, Path("/f/mcp.json"), {})


def test_one_bad_server_keeps_no_other_from_being_used(home: Path) -> None:
    _write(home, {"time": TIME, "bad": {}})
    found = config.read(home, {})
    assert list(found.servers) == ["time"]
    assert [problem.about for problem in found.problems] == ["bad"]


def test_fields_of_other_clients_are_said_to_be_unused() -> None:
    assert _parsed({**TIME, "alwaysAllow": ["a"]}).notes == ("not used here: alwaysAllow",)


def test_a_file_that_others_may_change_does_not_count(home: Path) -> None:
    _write(home, {"time": TIME}, 0o666)
    found = config.read(home, {})
    assert not found.servers and "others may change it" in found.problems[0].why


def test_a_folders_file_counts_as_it_was_when_its_owner_trusted_it(home: Path) -> None:
    folder = folders.here()
    _write(folder, {"time": TIME})
    assert "not trusted" in config.read(home, {}).problems[0].why
    assert folders.untrusted()[folder] == "mcp.json (starts time)"
    folders.trust(folder)
    assert list(config.read(home, {}).servers) == ["time"] and not folders.untrusted()
    before = config.signature(home)
    _write(folder, {"time": {"command": "evil"}})
    found = config.read(home, {})
    assert not found.servers and "has changed since it was" in found.problems[0].why
    assert config.signature(home) != before


@guarded("folder-trust")
def test_what_comes_with_a_folder_starts_nothing(home: Path) -> None:
    _write(folders.here(), {"evil": {"command": "touch", "args": ["pwned"]}})
    assert not config.read(home, {}).servers


def test_a_folder_that_was_trusted_before_it_had_such_a_file_lets_none_count(home: Path) -> None:
    folders.trust(folders.here())
    _write(folders.here(), {"time": TIME})
    assert not config.read(home, {}).servers


def test_the_data_folders_own_file_is_changed_whole_and_kept_private(home: Path) -> None:
    file = _write(home, {"time": TIME})
    config.change(home, lambda servers: servers.update(docs={"url": "https://d.example/mcp"}))
    assert list(config.read(home, {}).servers) == ["time", "docs"]
    assert file.stat().st_mode & 0o777 == 0o600
