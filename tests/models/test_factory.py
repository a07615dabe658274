"""Providers: registered in one place, chosen by the settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from shared.client.local import key
from shared.client.local.facts import facts
from shared.client.views import models
from shared.errors import ConfigurationError
from shared.models import factory
from shared.models.base import Answer, Model, OnDelta, Request
from shared.models.factory import PROVIDERS, Provider
from shared.settings import Settings
from shared.worker.provider import ReloadingModel


class Oracle(Model):
    """An adapter that answers with what it was made with."""

    name = "oracle"
    called = "the oracle"

    def __init__(self, key: Callable[[], str], *, base_url: str | None, idle: float, wise: int) -> None:
        self._key, self._base_url, self._idle, self._wise = key, base_url, idle, wise

    async def answer(self, request: Request, on_delta: OnDelta | None = None) -> Answer:
        words = f"{self._key()} at {self._base_url}, silent for {self._idle:g}, {self._wise}"
        return Answer(({"type": "text", "text": words},), "end_turn")

    async def models(self) -> list[str]:
        return ["oracle-2"]

    async def check(self) -> None:
        return None


@pytest.fixture
def oracle(monkeypatch: pytest.MonkeyPatch) -> Provider:
    """A provider that one entry in the registry adds."""
    made = Provider(
        "delphi",
        "Delphi",
        "openai_api_key",
        "openai_base_url",
        "oracle-2",
        f"{__name__}:Oracle",
        options={"wise": "ollama_context"},
    )
    monkeypatch.setattr(factory, "PROVIDERS", (PROVIDERS[0], made))
    return made


def _settings(folder: Path, **values: str) -> Settings:
    return Settings.model_validate({"PROMPTDOCK_HOME": str(folder), **values})


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda one: one.called)
async def test_a_registered_provider_has_a_key_an_address_and_an_adapter(
    provider: Provider, tmp_path: Path
) -> None:
    address = "http://127.0.0.1:1"
    found = _settings(tmp_path, **{provider.key_name: "a-key", provider.address_name: address})
    assert (provider.key(found), provider.address(found)) == ("a-key", address)
    assert factory.configured(found) == [provider]
    model = provider.connect(found, lambda: "a-key")
    assert isinstance(model, Model) and model.called and not model.demo
    await model.close()


async def test_one_entry_makes_a_provider_answer_whose_key_is_set(oracle: Provider, tmp_path: Path) -> None:
    found = _settings(
        tmp_path, OPENAI_API_KEY="a-word", OPENAI_BASE_URL="http://127.0.0.1:1", MODEL_SILENCE="5000"
    )
    model = ReloadingModel(found, lambda: found)
    answer = await model.answer(Request("oracle-2", (), ()))
    assert answer.content[0]["text"] == "a-word at http://127.0.0.1:1, silent for 5, 16384"
    assert (model.called, model.demo) == ("the oracle", False)
    await model.close()


async def test_commands_speak_of_the_provider_whose_key_is_set(oracle: Provider, tmp_path: Path) -> None:
    found = _settings(tmp_path, OPENAI_API_KEY="a-word")
    assert (key.name(found), key.company(found), key.current(found)) == ("OPENAI_API_KEY", "Delphi", "a-word")
    said = await models.asked(found)
    assert models.names(said) == ["oracle-2"]
    assert models.missing(found, ["oracle-2"], said) == []
    assert {"name": "PROMPTDOCK_MODEL", "value": "oracle-2", "source": "default"} in facts(found)


def test_the_demo_model_answers_where_no_key_is_set_but_not_in_production(tmp_path: Path) -> None:
    found = _settings(tmp_path)
    assert ReloadingModel(found, lambda: found).demo
    with pytest.raises(ConfigurationError, match="production") as refused:
        factory.make_demo(_settings(tmp_path, PROMPTDOCK_ENV="production"))
    assert PROVIDERS[0].key_name in refused.value.fix
