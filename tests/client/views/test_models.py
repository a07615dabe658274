"""Whether the provider has the models that the settings name."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.client.doctor import machine
from shared.client.local.facts import facts
from shared.client.views import models
from shared.models.factory import PROVIDERS
from shared.settings import Settings
from tests.support.messages_api import MessagesApi

LISTED = ["claude-opus-5-5", "claude-sonnet-5-5-20260928", "claude-haiku-5-5"]


def _settings(home: Path, url: str = "", **more: str) -> Settings:
    key = {"ANTHROPIC_API_KEY": "sk-ant-test-key-0000", "ANTHROPIC_BASE_URL": url or None}
    return Settings.model_validate({"PROMPTDOCK_HOME": home, **key, **more})


@pytest.mark.parametrize("name", ["claude-sonnet-5-5", "claude-sonnet-5-5-latest", "claude-opus-5-5"])
def test_a_name_without_its_date_means_the_one_that_is_listed_with_it(name: str, tmp_path: Path) -> None:
    assert models.missing(_settings(tmp_path, PROMPTDOCK_MODEL=name), LISTED) == []


def test_a_name_that_is_not_listed_is_told_with_its_setting_and_near_names(tmp_path: Path) -> None:
    settings = _settings(tmp_path, PROMPTDOCK_MODEL="claude-opus-5-5", PLANNER_MODEL="claude-haiku-5")
    (found,) = models.missing(settings, LISTED)
    assert (found.name, found.setting) == ("claude-haiku-5", "PLANNER_MODEL")
    assert found.near[0] == "claude-haiku-5-5"
    assert "set PLANNER_MODEL" in found.fix and "promptdock models" in found.fix


def test_a_provider_that_lists_nothing_says_nothing(tmp_path: Path) -> None:
    assert models.missing(_settings(tmp_path, PROMPTDOCK_MODEL="anything"), []) == []


async def test_the_doctor_finds_a_model_that_the_provider_does_not_have(tmp_path: Path) -> None:
    with MessagesApi(()) as api:
        good = await machine.model(_settings(tmp_path, api.url))
        bad = await machine.model(_settings(tmp_path, api.url, PROMPTDOCK_MODEL="gpt-5"))
    assert (good.level, PROVIDERS[0].recommended in good.told) == ("ok", True)
    assert bad.level == "fail"
    assert "gpt-5 (PROMPTDOCK_MODEL)" in bad.told and "claude-" in bad.fix


def test_the_model_in_force_is_named_where_none_is_set(tmp_path: Path) -> None:
    def shown(settings: Settings) -> object:
        return next(row["value"] for row in facts(settings) if row["name"] == "PROMPTDOCK_MODEL")

    assert shown(_settings(tmp_path)) == PROVIDERS[0].recommended
    assert shown(Settings(PROMPTDOCK_HOME=tmp_path)) == "demo"
    assert shown(_settings(tmp_path, PROMPTDOCK_MODEL="claude-opus-5-5")) == "claude-opus-5-5"
