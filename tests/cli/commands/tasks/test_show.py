"""The list of tasks, as it is printed with no cluster at hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateways.cli import screen
from gateways.cli.commands.tasks import show
from shared.client.views.tasks.tasks import Filter
from shared.settings import Settings
from shared.store.factory import store_file
from shared.store.records import Project, Task, TaskStatus, project_key
from shared.store.sqlite import SqliteStore

PROJECT = project_key("default")


async def settings_with(home: Path, state: TaskStatus) -> Settings:
    settings = Settings(PROMPTDOCK_HOME=home)
    store = SqliteStore(store_file(settings))
    await store.open()
    await store.upsert([Project(id=PROJECT, slug="default", name="Default")])
    await store.insert(Task(slug="calm-otter", project_id=PROJECT, title="Dig", status=state))
    await store.close()
    return settings


async def test_what_is_in_progress_with_the_cluster_down_is_said_not_to_be_worked_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    screen.begin([])
    settings = await settings_with(tmp_path, "IN_PROGRESS")
    await show.show(settings, Filter(), as_json=False)
    told = capsys.readouterr()
    assert "calm-otter" in told.out
    assert "nothing of this is worked on now: the cluster is down" in told.err
    await show.one(settings, "calm-otter", as_json=False)
    assert "nothing of this is worked on now" in capsys.readouterr().err


async def test_what_has_ended_needs_no_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    screen.begin([])
    await show.show(await settings_with(tmp_path, "COMPLETED"), Filter(), as_json=False)
    assert "worked on" not in capsys.readouterr().err
