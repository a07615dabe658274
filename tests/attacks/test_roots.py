"""Which folders can be a root: a repository of a person's own, and never what the cluster or the system stands on."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from shared.errors import ToolError, UsageError
from shared.folders import HOME_NAME, data_folder
from shared.guard.files import roots
from shared.guard.sandbox.sandbox import Sandbox
from shared.store.records import Repo, Workspace, project_key
from shared.store.row import new_id
from shared.store.sqlite import SqliteStore
from shared.tasks.worktree.mirrors import Mirrors
from tests.support.guards import guarded
from tests.support.sqlite import store
from tests.tools.bench import Bench

__all__ = ["store"]

PROJECT = new_id()
SECRET = "hunter2-51c0ffee"


@pytest.fixture
def repos(tmp_path: Path, strongest: Sandbox) -> Mirrors:
    home = tmp_path / "home"
    home.mkdir()
    return Mirrors(home, "h1", strongest)


@pytest.fixture
def bench(store: SqliteStore, tmp_path: Path, strongest: Sandbox) -> Bench:
    return Bench(store, tmp_path / "home", strongest)


@pytest.fixture(autouse=True)
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Our person lives here, with their decisions and data where programs keep them."""
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "person").mkdir()


def repository(folder: Path) -> Path:
    """One with a commit and with a file that is nobody's business."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "secret.txt").write_text(SECRET)
    author = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    for words in (("init", "-q", "-b", "main"), ("add", "."), ("commit", "-q", "-m", "first")):
        subprocess.run(["git", *author, *words], cwd=folder, check=True, capture_output=True)
    return folder


PLACES: dict[str, Callable[[Path], Path]] = {
    "the data folder": lambda here: here / "home",
    "what contains the data folder": lambda here: here,
    "a folder in the data folder": lambda here: here / "home" / "redis",
    "all workspaces at once": lambda here: here / "home" / "workspaces",
    "a home folder": lambda here: here / "person",
    "keys": lambda here: here / "person" / ".ssh",
    "what another cluster keeps": lambda here: data_folder() / "other-1234",
}


@pytest.mark.parametrize("place", PLACES)
@guarded("roots")
async def test_no_link_makes_it_a_root(repos: Mirrors, tmp_path: Path, place: str) -> None:
    folder = repository(PLACES[place](tmp_path))
    try:
        await repos.add(str(folder), PROJECT)
    except UsageError:
        return
    raise AssertionError(f"{folder} is a root now")


async def test_a_link_to_it_by_another_name_is_seen_through(repos: Mirrors, tmp_path: Path) -> None:
    repository(repos.home)
    (tmp_path / "harmless").symlink_to(repos.home)
    with pytest.raises(UsageError, match="data folder"):
        await repos.add(str(tmp_path / "harmless"), PROJECT)


@pytest.mark.parametrize(
    "place", ["/", "/etc", "/etc/ssh", "/usr/local", "/proc/self", "/home", "/var", "/tmp"]
)
def test_the_system_is_nobodys_repository(place: str, tmp_path: Path) -> None:
    assert roots.forbidden(Path(place).resolve(), tmp_path / "home")


@pytest.mark.parametrize("place", ["code/shop", ".config/nvim", "work"])
def test_a_folder_of_a_persons_own_can_be_one(place: str, tmp_path: Path) -> None:
    assert roots.forbidden(tmp_path / "person" / place, tmp_path / "home") == ""


async def test_a_folder_in_a_repository_does_not_open_the_whole_of_it(repos: Mirrors, tmp_path: Path) -> None:
    whole = repository(tmp_path / "work")
    (whole / "docs").mkdir()
    with pytest.raises(UsageError) as refused:
        await repos.add(str(whole / "docs"), PROJECT)
    assert str(whole) in str(refused.value)


@guarded("roots")
async def test_what_was_registered_before_is_not_opened_where_it_may_not_be(
    bench: Bench, tmp_path: Path
) -> None:
    project, folder = project_key("default"), repository(bench.home / "redis")
    await bench.linked("shop")
    await bench.store.upsert([Repo(project_id=project, name="old", path=str(folder), home="here")])
    told = await bench.run("read_file", path="old/secret.txt")
    assert SECRET not in str(told)
    assert "data folder" in str(told)


@guarded("roots")
async def test_a_workspace_of_before_is_not_opened_where_it_may_not_be(bench: Bench, tmp_path: Path) -> None:
    project, folder = project_key("default"), repository(bench.home / "redis")
    await bench.linked("shop")
    row = Workspace(
        project_id=project, name="old", path=str(folder), home="here", source="link", branch="main"
    )
    await bench.store.upsert([row])
    told = await bench.run("read_file", path="old/secret.txt")
    assert SECRET not in str(told)
    assert "data folder" in str(told)


@guarded("roots")
async def test_a_folder_that_was_swapped_for_a_link_is_not_followed(bench: Bench, tmp_path: Path) -> None:
    shop, other = await bench.linked("shop"), repository(tmp_path / "other")
    shop.rename(shop.with_name("away"))
    shop.symlink_to(other)
    told = await bench.run("read_file", path="shop/secret.txt")
    assert SECRET not in str(told)
    assert "leads to" in str(told)


@guarded("roots")
async def test_the_data_folder_is_not_made_a_repository(bench: Bench) -> None:
    (bench.home / "redis").mkdir(parents=True)
    await bench.run("add_repo", source="init", path=str(bench.home / "redis"), name="h")
    assert not (bench.home / "redis" / ".git").exists()


async def test_a_folder_that_holds_something_is_not_taken_over(bench: Bench) -> None:
    there = bench.home / "workspaces" / "default" / "full"
    there.mkdir(parents=True)
    (there / "x").write_text("x")
    assert "no empty folder" in await bench.no("add_repo", source="init", name="full")


async def test_our_own_code_is_read_but_written_by_no_tool(tmp_path: Path) -> None:
    here = Path(roots.__file__).parents[2]
    assert roots.ours(here) and not roots.ours(tmp_path)


def test_the_data_folder_of_an_earlier_release_keeps_its_repository_open(tmp_path: Path) -> None:
    shop = repository(tmp_path / "shop")
    (shop / HOME_NAME).mkdir()
    assert roots.opened("shop", str(shop), shop / HOME_NAME) == shop
    with pytest.raises(ToolError):
        roots.opened("shop", str(shop), shop / "data")
    with pytest.raises(UsageError):
        roots.check(shop, shop / HOME_NAME)
