"""The repositories of a project while the Store is down, and however many projects somebody names."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from structlog.testing import capture_logs

from shared.errors import StoreUnavailable, ToolError
from shared.store.base import Store
from shared.store.records import Repo, project_key
from shared.tasks.worktree.mirrors import Mirrors
from shared.worker import repositories
from shared.worker.repositories import KnownRepositories


class Rows:
    """A Store in which each project has one repository, until it is down."""

    down = False

    async def select(self, _table: Any, where: dict[str, Any], **_more: Any) -> list[Repo]:
        if self.down:
            raise StoreUnavailable("the store is down", "for this test")
        return [Repo(project_id=where["project_id"], name="shop", kind="backend")]


class Disk:
    """Mirrors of which those of the project `lost` cannot be read."""

    async def read_root(self, row: Repo) -> tuple[Path, str]:
        if row.project_id == project_key("lost"):
            raise ToolError("it is not here", "", "")
        return Path("/nowhere"), "abc"


def known(rows: Rows) -> KnownRepositories:
    return KnownRepositories(cast(Store, rows), cast(Mirrors, Disk()))


async def test_with_the_store_down_they_are_taken_as_last_read() -> None:
    rows = Rows()
    here = known(rows)
    assert [row.name for row in await here.rows("bank")] == ["shop"]
    rows.down = True
    with capture_logs() as logged:
        assert [row.name for row in await here.rows("bank")] == ["shop"]
        assert await here.rows("another") == []
    assert len(logged) == 2


async def test_only_the_projects_that_were_named_last_are_remembered() -> None:
    rows = Rows()
    here = known(rows)
    for number in range(repositories.KNOWN + 1):
        await here.rows(f"p{number}")
    rows.down = True
    assert await here.rows("p0") == [] and await here.rows("p1") != []


async def test_a_repository_that_cannot_be_read_leaves_the_others() -> None:
    here = known(Rows())
    roots = await here.roots("bank")
    assert (roots["shop"].path, roots["shop"].commit, roots["shop"].kind) == (
        Path("/nowhere"),
        "abc",
        "backend",
    )
    with capture_logs() as logged:
        assert await here.roots("lost") == {}
    assert "cannot be read" in logged[0]["event"]
