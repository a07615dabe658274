"""Whoever stands in a repository that another data folder's cluster knows is told where that is."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from shared import folders
from shared.bus import embedded
from shared.client import Client, elsewhere
from shared.errors import NoCluster, StoreUnavailable
from shared.settings import Settings, load
from shared.store.records import Repo, project_key
from shared.store.sqlite import SqliteStore


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git repository in which a person stands, whose own data lies below `tmp_path`."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    made = tmp_path / "shop"
    (made / "src").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(made)], check=True)
    monkeypatch.chdir(made / "src")
    return made


async def _knows(home: Path, repository: Path) -> Path:
    """A data folder in whose Store this repository is registered."""
    os.makedirs(home)  # noqa: PTH103 - a test has nothing else to do meanwhile
    store = SqliteStore(home / "promptdock.db")
    await store.open()
    await store.insert(Repo(project_id=project_key("default"), name="shop", path=str(repository)))
    await store.close()
    return home


async def test_the_cluster_that_knows_the_repository_is_named_with_what_to_type(shop: Path) -> None:
    home = await _knows(folders.data_folder() / "clone-1", shop)
    with pytest.raises(NoCluster) as caught:
        await Client(load()).reach()
    assert str(home) in caught.value.why and str(shop) in caught.value.why
    assert caught.value.fix == f"start it: PROMPTDOCK_HOME={home} promptdock up"
    with pytest.raises(StoreUnavailable) as stored:
        await Client(load()).store()
    assert stored.value.fix == caught.value.fix


async def test_one_that_runs_comes_first_and_is_not_to_be_started(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _knows(folders.data_folder() / "a", shop)
    home = await _knows(folders.data_folder() / "b", shop)
    monkeypatch.setattr(embedded, "running", lambda one: "redis://x" if one == home else None)
    found = elsewhere.find(folders.find_home(), shop)
    assert found is not None and found.home == home
    assert f"PROMPTDOCK_HOME={home} promptdock chat" in found.fix


async def test_a_repository_that_nobody_knows_is_of_no_other_cluster(shop: Path, tmp_path: Path) -> None:
    home = await _knows(folders.data_folder() / "clone-1", tmp_path / "other")
    (folders.data_folder() / "broken").mkdir()
    (folders.data_folder() / "broken" / "promptdock.db").write_text("no database")
    before = sorted(home.iterdir())
    assert elsewhere.find(folders.find_home(), shop) is None
    assert sorted(home.iterdir()) == before, "looking leaves nothing behind"


async def test_a_data_folder_counts_only_in_a_folder_that_is_trusted(shop: Path, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    home = await _knows(clone / folders.HOME_NAME, shop)
    assert elsewhere.find(folders.find_home(), shop) is None
    folders.trust(clone)
    found = elsewhere.find(folders.find_home(), shop)
    assert found is not None and found.home == home


async def test_a_link_among_the_data_folders_is_not_followed(shop: Path, tmp_path: Path) -> None:
    home = await _knows(tmp_path / "strange", shop)
    folders.data_folder().mkdir(parents=True)
    (folders.data_folder() / "linked").symlink_to(home)
    assert elsewhere.find(folders.find_home(), shop) is None


async def test_where_the_address_is_set_no_other_cluster_is_meant(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _knows(folders.data_folder() / "clone-1", shop)
    assert elsewhere.address(Settings(REDIS_URL="redis://127.0.0.1:1")) == "redis://127.0.0.1:1"


def test_what_a_repository_says_of_data_folders_is_not_read(shop: Path) -> None:
    (shop / folders.HOME_NAME).mkdir()
    (shop / folders.HOME_NAME / "redis.json").write_text(json.dumps({"pid": os.getpid()}))
    assert folders.homes() == []
