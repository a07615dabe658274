"""Keys and models of several providers on the command line; nothing runs but the providers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.cli.person import Person
from tests.support.chat_api import ChatApi
from tests.support.messages_api import MessagesApi
from tests.support.ollama_api import OllamaApi

CLAUDE, GPT = "sk-ant-test-key-0000", "sk-openai-test-key-0000"


@dataclass
class Three:
    """Their servers, and the environment that names them."""

    claude: MessagesApi
    gpt: ChatApi
    local: OllamaApi

    @property
    def all(self) -> dict[str, str]:
        """With the keys that they take."""
        keys = {"ANTHROPIC_API_KEY": CLAUDE, "OPENAI_API_KEY": GPT, "OLLAMA_BASE_URL": self.local.url}
        return self.addresses | keys

    @property
    def addresses(self) -> dict[str, str]:
        """Without any key."""
        return {"ANTHROPIC_BASE_URL": self.claude.url}


@pytest.fixture
def three() -> Iterator[Three]:
    """Three providers; OpenAI's is at an address that is put into the environment where it is to answer."""
    with MessagesApi(keys={CLAUDE}) as claude, ChatApi(keys={GPT}) as gpt, OllamaApi() as local:
        yield Three(claude, gpt, local)


def test_the_key_of_another_provider_is_asked_for_checked_and_kept(person: Person, three: Three) -> None:
    at = {"OPENAI_BASE_URL": f"{three.gpt.url}/v1"}
    refused = person.is_refused(4, "key", "set", "openai", stdin="sk-openai-wrong-0000\n", **at)
    assert "not taken" in refused and "key set openai" in refused
    done = person.types("key", "set", "openai", stdin=f"{GPT}\n", **at)
    assert done.returncode == 0, done.stderr
    assert (person.home / ".env").read_text() == f"OPENAI_API_KEY={GPT}\n"
    assert person.types("key", "unset", "openai").returncode == 0
    assert (person.home / ".env").read_text() == ""


def test_a_key_that_cannot_be_checked_is_kept_only_where_that_is_wanted_and_told_wherever_it_counts(
    person: Person,
) -> None:
    away = {"ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}
    told = person.is_refused(1, "key", "set", stdin=f"{CLAUDE}\n", **away)
    assert "is not kept" in told and "key set --unchecked" in told
    assert not (person.home / ".env").exists()
    done = person.types("key", "set", "--unchecked", stdin=f"{CLAUDE}\n", **away)
    assert done.returncode == 0 and "UNCHECKED" in done.stderr and "key check, later" in done.stderr
    assert "its key is unchecked" in person.is_refused(1, "models", **away)
    done = person.types("doctor", **away)
    assert "anthropic does not answer, so that its key is unchecked" in done.stdout


def test_a_key_that_means_nothing_without_an_address_says_so(person: Person, three: Three) -> None:
    done = person.types("key", "set", "ollama", stdin="a-key-of-ollama\n", OLLAMA_BASE_URL=three.local.url)
    assert "is asked once" not in done.stderr
    told = person.is_refused(1, "key", "set", "ollama", stdin="a-key-of-ollama\n")
    assert "OLLAMA_BASE_URL is not set" in told and "key set ollama --unchecked" in told
    done = person.types("key", "set", "ollama", "--unchecked", stdin="a-key-of-ollama\n")
    assert done.returncode == 0 and "OLLAMA_BASE_URL is set" in done.stderr


def test_a_provider_that_there_is_not_is_refused_with_those_that_there_are(person: Person) -> None:
    assert "anthropic, openai, ollama" in person.is_refused(2, "key", "check", "mistral")


def test_all_keys_are_checked_at_once(person: Person, three: Three) -> None:
    settings = three.all | {"OPENAI_BASE_URL": f"{three.gpt.url}/v1"}
    done = person.types("key", "check", **settings)
    assert done.stdout.splitlines() == [
        "Anthropic takes the key.", "OpenAI takes the key.", "Ollama takes the key.",
    ]  # fmt: skip
    done = person.types("key", "check", **settings | {"OPENAI_API_KEY": "sk-openai-wrong-0000"})
    assert done.returncode == 4 and "key set openai" in done.stderr
    assert done.stdout.splitlines() == ["Anthropic takes the key.", "Ollama takes the key."]


def test_models_of_all_providers_are_listed_with_who_uses_them(person: Person, three: Three) -> None:
    settings = three.all | {
        "OPENAI_BASE_URL": f"{three.gpt.url}/v1",
        "PLANNER_MODEL": "gpt-6.1-sol,qwen3:8b",
    }
    found = json.loads(person.types("models", "--json", **settings).stdout)
    assert found["models"] == [*three.claude.models, *three.gpt.models, *three.local.models]
    assert [one["provider"] for one in found["providers"]] == ["anthropic", "openai", "ollama"]
    assert [one["key"] for one in found["providers"]] == ["checked", "checked", "none"]
    assert found["chosen"]["PLANNER_MODEL"] == "gpt-6.1-sol,qwen3:8b" and found["missing"] == []
    told = person.types("models", **settings).stdout
    assert any(
        all(part in row for part in ("qwen3:8b", "ollama", "PLANNER_MODEL")) for row in told.splitlines()
    )


def test_one_that_is_down_is_named_beside_the_models_of_the_others(person: Person, three: Three) -> None:
    settings = three.all | {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}
    done = person.types("models", **settings)
    assert done.returncode == 1 and "claude-sonnet-5-5" in done.stdout
    assert "openai does not answer" in done.stderr


def test_a_chain_with_a_name_that_nobody_lists_is_found(person: Person, three: Three) -> None:
    done = person.types("models", **three.all | {
        "OPENAI_BASE_URL": f"{three.gpt.url}/v1", "CHATTER_MODEL": "claude-sonnet-5-5,gpt-6-sol"
    })  # fmt: skip
    assert (
        done.returncode == 1 and "gpt-6-sol (CHATTER_MODEL)" in done.stderr and "gpt-6.1-sol" in done.stderr
    )


def test_ollama_alone_answers_with_what_it_has(person: Person, three: Three) -> None:
    found = json.loads(person.types("models", "--json", OLLAMA_BASE_URL=three.local.url).stdout)
    assert found["chosen"] == {"PROMPTDOCK_MODEL by default": "qwen3:8b"}
