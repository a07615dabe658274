"""What merged, discarded and old tasks leave is cleared away; work that waits for a person never is."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from shared.store.records import Project, Repo, Task, TaskDependency
from shared.store.row import now
from shared.store.sqlite import SqliteStore
from shared.tasks.names import slug
from shared.tasks.worktree import merge
from shared.tasks.worktree.mirrors import Mirrors
from shared.tasks.worktree.prune import Leftovers, prune
from tests.support.sqlite import opened
from tests.tasks.conftest import PROJECT, plain
from tests.tasks.worktree.test_merge import worked


@pytest.fixture
async def store(tmp_path: Path, repo: Repo) -> AsyncIterator[SqliteStore]:
    async with opened(tmp_path) as made:
        await made.upsert([Project(id=PROJECT, slug="p", name="P")])
        await made.upsert([repo])
        yield made


async def test_branches_that_are_merged_go_and_others_stay(
    repos: Mirrors, repo: Repo, repository: Path, store: SqliteStore
) -> None:
    merged = await worked(repos, repo, store, "t-1", b_txt="b\n")
    await worked(repos, repo, store, "t-2", c_txt="c\n")
    await merge.merge(repos, repo, store, merged, "person", "k1")
    (repos.home / "worktrees" / slug(repo.name) / "t-1").mkdir(parents=True)
    for really in (False, True):
        found = await prune(repos, store, really=really)
        assert found == Leftovers(["t-1"], ["t-1"], []), really
        left = plain(repository, "branch", "--list", "promptdock/*", "--format=%(refname:short)").split()
        assert left == (["promptdock/t-2"] if really else ["promptdock/t-1", "promptdock/t-2"])
    assert await prune(repos, store, really=True) == Leftovers()


async def test_a_branch_that_went_on_after_its_merge_stays(
    repos: Mirrors, repo: Repo, repository: Path, store: SqliteStore
) -> None:
    task = await worked(repos, repo, store, "t-1", b_txt="b\n")
    await merge.merge(repos, repo, store, task, "person", "k1")
    plain(
        repository,
        "branch",
        "-f",
        "promptdock/t-1",
        plain(repository, "commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "x"),
    )
    assert await prune(repos, store, really=True) == Leftovers()


async def test_old_tasks_go_but_for_those_that_somebody_waits_for_or_has_to_merge(
    repos: Mirrors, repo: Repo, store: SqliteStore
) -> None:
    old = now() - timedelta(days=40)

    def ended(slug: str, **more: object) -> Task:
        return Task(slug=slug, project_id=PROJECT, title=slug, status="COMPLETED", ended_at=old, **more)

    gone, needed, unmerged = (
        ended("gone"),
        ended("needed"),
        ended("unmerged", branch="promptdock/unmerged", repo_id=repo.id),
    )
    new = ended("new").model_copy(update={"ended_at": now()})
    waits = Task(slug="waits", project_id=PROJECT, title="w", status="DEFINED")
    await store.upsert([gone, needed, unmerged, new, waits])
    await store.upsert([TaskDependency(task_id=waits.id, depends_on_id=needed.id)])
    before = now() - timedelta(days=30)
    assert (await prune(repos, store, before=before)).tasks == ["gone"]
    assert await store.count(Task, {}) == 5
    assert (await prune(repos, store, PROJECT, before, really=True)).tasks == ["gone"]
    assert {task.slug for task in await store.select(Task)} == {"needed", "unmerged", "new", "waits"}
