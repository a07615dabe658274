"""What the documents say is true of the tree."""

from __future__ import annotations

import re

import pytest

from shared import errors
from shared.bus import messages, reading
from shared.bus.keys import BROADCAST, CHATTER_OUTPUT, HUMAN_INPUT, STATUS
from shared.store.retention import DAYS
from tests.house.tree import ROOT, code, commands, documents, files, project, read, targets, unknown


@pytest.mark.parametrize("name", documents())
def test_every_command_that_a_document_names_exists(name: str) -> None:
    assert [missing for line in code(read(name)) for missing in unknown(line)] == []


def test_an_invented_command_would_be_noticed() -> None:
    assert unknown("make coffee") == ["make coffee"]
    assert unknown("python -m agents.nobody") == ["python -m agents.nobody"]
    assert unknown(".venv/bin/promptdock nonsense now") == ["promptdock nonsense"]


@pytest.mark.parametrize("name", documents())
def test_every_link_of_a_document_leads_somewhere(name: str) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", read(name))
    here = (ROOT / name).parent
    assert [link for link in links if not (here / link).exists()] == []


@pytest.mark.parametrize("name", documents())
def test_every_path_that_a_document_names_exists(name: str) -> None:
    named = re.compile(
        r"(?:agents|gateways|shared|supabase|tests|docs|\.ci)/[\w./-]*|[\w.-]+\.(?:ya?ml|toml|txt)"
    )
    paths = [line for line in code(read(name)) if named.fullmatch(line)]
    made_by_the_reader = {"docker-compose.override.yml", "promptdock.toml"}
    called = {file.rpartition("/")[2] for file in files()}  # `profile.toml` is one in each agent's folder
    known = made_by_the_reader | called
    assert [path for path in paths if not (ROOT / path).exists() and path not in known] == []


def test_the_working_page_lists_every_make_target() -> None:
    listed = set(re.findall(r"`make ([a-z]+)", read("AGENTS.md")))
    assert listed == targets() - {"help"}


def test_the_contract_lists_every_command() -> None:
    listed = set(re.findall(r"^\| `promptdock ([a-z]+)", read("docs/wire.md"), re.MULTILINE))
    assert [name for name in commands() if name not in {*listed, "help"}] == []


def test_the_readme_leads_to_every_page() -> None:
    pages = [name for name in documents() if name.startswith("docs/")]
    assert [page for page in pages if f"]({page})" not in read("README.md")] == []


def test_the_page_of_the_store_says_how_long_each_table_is_kept() -> None:
    told = read("docs/store.md").partition("## What goes by itself")[2].partition("\n## ")[0]
    lines = [line for line in told.splitlines() if line.startswith("| `")]
    found = {name: int(line.split("|")[2]) for line in lines for name in re.findall(r"`([a-z_]+)`", line)}
    assert found == DAYS


def test_the_rooms_that_the_architecture_draws_are_the_rooms_that_exist() -> None:
    tree = read("docs/architecture.md").partition("shared/ ")[2].partition("supabase/")[0]
    drawn = set(re.findall(r"^  ([a-z]+)", tree, re.MULTILINE)) | {
        "settings",
        "folders",
        "log",
        "redaction",
        "shapes",
        "plain",
        "people",
        "secret",
        "errors",
        "failpoints",
    }
    there = {name.split("/")[1].removesuffix(".py") for name in files() if name.startswith("shared/")}
    assert drawn == there - {"__init__"}


def test_the_walks_through_the_architecture_pass_files_that_exist() -> None:
    walked = [line for line in code(read("docs/architecture.md")) if line.endswith(".py")]
    assert walked
    assert [file for file in walked if not any(f"/{name}".endswith(f"/{file}") for name in files())] == []


def _fields(*models: type[messages.Envelope]) -> set[str]:
    return {field.alias or name for model in models for name, field in model.model_fields.items()}


def test_the_contract_names_every_field_that_a_sender_may_use() -> None:
    page = read("docs/wire.md")
    sent = _fields(
        messages.Said,
        messages.ApprovalMessage,
        messages.Amend,
        messages.Stop,
        messages.CommandMessage,
        messages.AgentMessage,
    ) | _fields(messages.Output)
    assert {field for field in sent if not re.search(rf'[`"]{field}[`":]', page)} == set()


@pytest.mark.parametrize("kind", ["Status", "AgentType"])
def test_the_contract_names_every_status_and_type(kind: str) -> None:
    page = read("docs/wire.md")
    assert [value for value in getattr(messages, kind).__args__ if f"`{value}`" not in page] == []


def test_the_contract_names_the_channels_and_bounds_of_the_code() -> None:
    page = read("docs/wire.md")
    assert all(f"`{channel}`" in page for channel in (HUMAN_INPUT, CHATTER_OUTPUT, STATUS, BROADCAST))
    assert f"{reading.MAX_BYTES // 1024} KiB, {reading.MAX_DEPTH} levels" in page


def test_the_contract_names_every_kind_of_live_event_that_is_sent() -> None:
    modules = [read(name) for name in files() if name.startswith("shared/") and name.endswith(".py")]
    sent = {kind for text in modules for kind in re.findall(r'\blive\(\s*"([a-z_]+)"', text)}
    told = read("docs/wire.md").partition("## Live events")[2].partition("\n## ")[0]
    assert "tool_call" in sent
    assert {kind for kind in sent if f"`{kind}`" not in told} == set()


def test_the_contract_lists_the_exit_codes_of_the_errors() -> None:
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", read("docs/wire.md"), re.MULTILINE)}
    raised = {
        value.exit_code
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, errors.PromptDockError)
    }
    assert listed == raised | {0, 130}


def test_the_changelog_has_the_version_of_the_project() -> None:
    assert f"## [{project()['project']['version']}]" in read("CHANGELOG.md")
