"""What becomes of a task's branch: merged without touching anybody's files, thrown away, tried in advance."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shared.errors import Busy, ToolError
from shared.guard.addresses import LOCAL
from shared.store.records import Project, Repo, Task, TaskDependency, TaskEvent
from shared.store.row import new_id
from shared.store.sqlite import SqliteStore
from shared.tasks import merge
from shared.tasks.repos import Repos
from shared.tasks.worktree import Worktree
from tests.support.sqlite import opened
from tests.tasks.conftest import PROJECT, commit, plain


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with opened(tmp_path) as made:
        await made.upsert([Project(id=PROJECT, slug="p", name="P")])
        yield made


async def worked(repos: Repos, repo: Repo, store: SqliteStore, name: str, **files: str) -> Task:
    """A task that has written these files (`a_txt` for a.txt) on its branch, and is completed."""
    tree = await Worktree.acquire(repos, repo, name, 1)
    for file, text in files.items():
        (tree.path / file.replace("_", ".")).write_text(text)
    await tree.git.commit_all(f"Work of {name}", f"{name}:1")
    await tree.remove()
    task = Task(
        slug=name,
        project_id=PROJECT,
        title=f"Do {name}",
        status="COMPLETED",
        branch=tree.branch,
        repo_id=repo.id,
    )
    await store.upsert([task])
    return task


async def events(store: SqliteStore) -> list[str]:
    return [row.event for row in await store.select(TaskEvent, order=[("created_at", "asc")])]


async def test_a_merge_brings_the_work_into_the_checkout_and_leaves_a_persons_changes(
    repos: Repos, repo: Repo, repository: Path, store: SqliteStore
) -> None:
    task = await worked(repos, repo, store, "t-1", b_txt="b\n")
    (repository / "a.txt").write_text("mine, not committed\n")
    commit(repository, "c.txt", "meanwhile\n")
    done = await merge.merge(repos, repo, store, task, "ann", "k1")
    assert (done.into, done.files) == ("trunk", ["b.txt"])
    assert plain(repository, "rev-parse", "HEAD") == done.commit
    assert (repository / "b.txt").read_text() == "b\n"
    assert (repository / "a.txt").read_text() == "mine, not committed\n"
    assert len(plain(repository, "log", "-1", "--format=%P").split()) == 2
    again = await merge.merge(repos, repo, store, task, "ann", "k1")
    assert again.commit == "" and plain(repository, "rev-parse", "HEAD") == done.commit
    assert await events(store) == ["merged"]


async def test_what_a_task_was_built_on_comes_with_it_and_its_history_says_so(
    repos: Repos, repo: Repo, store: SqliteStore
) -> None:
    first = await worked(repos, repo, store, "t-1", b_txt="b\n")
    aside = await worked(repos, repo, store, "t-2", c_txt="c\n")
    tree = await Worktree.acquire(repos, repo, "t-3", 1, [str(first.branch)])
    (tree.path / "d.txt").write_text("d\n")
    await tree.git.commit_all("Go on", "t-3:1")
    await tree.remove()
    last = aside.model_copy(update={"id": new_id(), "slug": "t-3", "branch": tree.branch})
    await store.upsert([last, *(edge(last, needs) for needs in (first, aside))])
    for _ in ("once", "and again after a crash"):
        done = await merge.merge(repos, repo, store, last, "ann", "k1")
        assert done.along == ["t-1"], "only what is in its history came with it"
    told = {(row.task_id, row.event) for row in await store.select(TaskEvent)}
    assert told == {(last.id, "merged"), (first.id, "merged")}
    assert (await merge.merge(repos, repo, store, first, "ann", "k2")).commit == ""


def edge(task: Task, needs: Task) -> TaskDependency:
    return TaskDependency(id=new_id(), task_id=task.id, depends_on_id=needs.id)


async def test_a_merge_that_would_overwrite_a_persons_changes_is_refused_and_changes_nothing(
    repos: Repos, repo: Repo, repository: Path, store: SqliteStore
) -> None:
    task = await worked(repos, repo, store, "t-1", a_txt="theirs\n")
    head = plain(repository, "rev-parse", "HEAD")
    (repository / "a.txt").write_text("mine\n")
    with pytest.raises(ToolError):
        await merge.merge(repos, repo, store, task, "ann", "k1")
    assert (repository / "a.txt").read_text() == "mine\n" and plain(repository, "rev-parse", "HEAD") == head
    assert await events(store) == []


async def test_a_conflict_is_named_before_anything_is_touched(
    repos: Repos, repo: Repo, repository: Path, store: SqliteStore
) -> None:
    task = await worked(repos, repo, store, "t-1", a_txt="theirs\n")
    await worked(repos, repo, store, "t-2", a_txt="others\n")
    head = commit(repository, "a.txt", "ours\n")
    with pytest.raises(ToolError, match=r"conflicts in a\.txt"):
        await merge.merge(repos, repo, store, task, "ann", "k1")
    assert plain(repository, "rev-parse", "HEAD") == head and plain(repository, "status", "--porcelain") == ""
    git = await merge.source(repos, repo)
    found = await merge.clashes(git, str(task.branch), head, "trunk")
    assert [(clash.branch, clash.files) for clash in found] == [
        ("trunk", ["a.txt"]),
        ("promptdock/t-2", ["a.txt"]),
    ]


async def test_a_branch_that_is_not_checked_out_is_moved_without_any_checkout(
    repos: Repos, repo: Repo, repository: Path, store: SqliteStore
) -> None:
    task = await worked(repos, repo, store, "t-1", b_txt="b\n")
    plain(repository, "switch", "-q", "-c", "elsewhere")
    done = await merge.merge(repos, repo, store, task, "ann", "k1")
    assert plain(repository, "rev-parse", "trunk") == done.commit
    assert (
        plain(repository, "branch", "--show-current") == "elsewhere" and not (repository / "b.txt").exists()
    )


async def test_a_mirror_is_pushed_only_where_the_repository_grants_it(
    repos: Repos, repository: Path, store: SqliteStore, tmp_path: Path
) -> None:
    remote = tmp_path / "remote.git"
    plain(tmp_path, "clone", "-q", "--bare", str(repository), str(remote))
    closed = await repos.add(f"file://{remote}", PROJECT)
    task = await worked(repos, closed, store, "t-1", b_txt="b\n")
    with pytest.raises(ToolError, match="nothing may be pushed"):
        await merge.merge(repos, closed, store, task, "ann", "k1")
    granted = closed.model_copy(update={"push_tasks": True})
    done = await merge.merge(repos, granted, store, task, "ann", "k2")
    assert plain(remote, "rev-parse", "trunk") == done.commit


async def test_what_is_thrown_away_leaves_neither_branch_nor_worktree(
    repos: Repos, repo: Repo, repository: Path, store: SqliteStore
) -> None:
    task = await worked(repos, repo, store, "t-1", b_txt="b\n")
    left = await Worktree.acquire(repos, repo, "t-1", 2)  # as a crash leaves it
    (left.path / "more.txt").write_text("x")
    with pytest.raises(Busy):
        await merge.discard(repos, repo, store, task, "ann", "k1")
    await left.release()
    await merge.discard(repos, repo, store, task, "ann", "k1")
    assert "promptdock" not in plain(repository, "branch", "--list", "--all")
    assert not left.path.exists() and list((repos.home / "worktrees").rglob("t-1*")) == []
    (row,) = await store.select(Task, {"slug": "t-1"})
    assert row.branch is None and await events(store) == ["discarded"]


async def test_a_task_that_runs_is_neither_merged_nor_thrown_away(
    repos: Repos, repo: Repo, store: SqliteStore
) -> None:
    task = (await worked(repos, repo, store, "t-1", b_txt="b\n")).model_copy(update={"status": "IN_PROGRESS"})
    for change in (merge.merge, merge.discard):
        with pytest.raises(ToolError, match="IN_PROGRESS"):
            await change(repos, repo, store, task, "ann", "k1")


async def test_a_reopened_task_goes_on_with_its_branch_from_where_it_left_the_default_branch(
    repos: Repos, repo: Repo, repository: Path, store: SqliteStore
) -> None:
    start = plain(repository, "rev-parse", "HEAD")
    await worked(repos, repo, store, "t-1", b_txt="b\n")
    commit(repository, "c.txt", "meanwhile\n")
    tree = await Worktree.acquire(repos, repo, "t-1", 2)
    assert (tree.path / "b.txt").exists() and tree.base == start
    assert await tree.git.changed_files(tree.base, tree.branch) == ["b.txt"]


async def test_another_machine_goes_on_from_the_last_push(
    repos: Repos, repository: Path, tmp_path: Path, store: SqliteStore
) -> None:
    remote = tmp_path / "remote.git"
    plain(tmp_path, "clone", "-q", "--bare", str(repository), str(remote))
    repo = (await repos.add(f"file://{remote}", PROJECT)).model_copy(update={"push_tasks": True})
    first = await Worktree.acquire(repos, repo, "t-1", 1)
    (first.path / "b.txt").write_text("b\n")
    await first.git.commit_all("Half of it", "t-1:1")
    await first.source.push(first.branch, reach=LOCAL)
    (tmp_path / "other").mkdir()
    elsewhere = Repos(tmp_path / "other", "h2", repos.sandbox, allow_local=True)
    second = await Worktree.acquire(elsewhere, repo, "t-1", 2)
    assert (second.path / "b.txt").read_text() == "b\n" and second.base == first.base
