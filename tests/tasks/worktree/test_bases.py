"""What a task begins with: the work of the tasks that it needed, and nothing of theirs becomes its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.errors import ToolError
from shared.store.records import Project, Repo, Task, TaskDependency
from shared.store.row import new_id
from shared.store.sqlite import SqliteStore
from shared.tasks.worktree import bases, receipt
from shared.tasks.worktree.acquire import Worktree
from shared.tasks.worktree.mirrors import Mirrors
from tests.tasks.conftest import PROJECT, commit, plain


async def worked(repos: Mirrors, repo: Repo, name: str, file: str, text: str = "x\n") -> str:
    """The branch of a task that wrote one file."""
    tree = await Worktree.acquire(repos, repo, name, 1)
    (tree.path / file).write_text(text)
    await tree.git.commit_all(f"Work of {name}", f"{name}:1")
    await tree.remove()
    return tree.branch


async def test_it_begins_with_all_that_it_needed_and_its_receipt_holds_its_own_alone(
    repos: Mirrors, repo: Repo, repository: Path
) -> None:
    needs = [await worked(repos, repo, "t-1", "b.txt"), await worked(repos, repo, "t-2", "c.txt")]
    tree = await Worktree.acquire(repos, repo, "t-3", 1, needs)
    assert sorted(path.name for path in tree.path.glob("*.txt")) == ["a.txt", "b.txt", "c.txt"]
    (tree.path / "d.txt").write_text("d\n")
    sha = await tree.git.commit_all("Join them", "t-3:1")
    made = await receipt.build(tree.git, tree.branch, tree.base)
    assert ([one.sha for one in made.commits], made.files_changed) == ([sha], ["d.txt"])
    assert plain(repository, "rev-parse", "trunk") != tree.base
    await tree.remove()
    again = await Worktree.acquire(repos, repo, "t-3", 2, needs, tree.base)
    assert again.base == tree.base, "a second attempt took the others' work for its own"


async def test_one_line_of_history_is_not_merged_with_itself(
    repos: Mirrors, repo: Repo, repository: Path
) -> None:
    first = await worked(repos, repo, "t-1", "b.txt")
    tree = await Worktree.acquire(repos, repo, "t-2", 1, [first])
    assert tree.base == plain(repository, "rev-parse", first)
    (tree.path / "c.txt").write_text("c\n")
    await tree.git.commit_all("Go on", "t-2:1")
    last = await Worktree.acquire(repos, repo, "t-3", 1, [tree.branch, first, "promptdock/gone"])
    assert last.base == plain(repository, "rev-parse", tree.branch)


async def test_what_was_merged_already_is_not_brought_in_again(
    repos: Mirrors, repo: Repo, repository: Path
) -> None:
    first = await worked(repos, repo, "t-1", "b.txt")
    plain(repository, "merge", "-q", "--no-ff", "-m", "Merge it", first)
    tree = await Worktree.acquire(repos, repo, "t-2", 1, [first])
    assert tree.base == plain(repository, "rev-parse", "trunk")


async def test_work_that_conflicts_is_not_begun_on(repos: Mirrors, repo: Repo, repository: Path) -> None:
    needs = [
        await worked(repos, repo, "t-1", "b.txt", "one\n"),
        await worked(repos, repo, "t-2", "b.txt", "two\n"),
    ]
    with pytest.raises(ToolError, match=r"promptdock/t-2 conflicts .* b\.txt"):
        await Worktree.acquire(repos, repo, "t-3", 1, needs)
    assert plain(repository, "branch", "--list", "promptdock/t-3") == ""


async def test_checks_are_those_of_the_default_branch_not_of_an_agent_before(
    repos: Mirrors, repo: Repo, repository: Path
) -> None:
    begun = commit(repository, "promptdock.toml", '[checks]\ncommands = ["make test"]\n')
    first = await worked(repos, repo, "t-1", "promptdock.toml", '[checks]\ncommands = ["true"]\n')
    tree = await Worktree.acquire(repos, repo, "t-2", 1, [first])
    assert await tree.begun(repos, repo) == begun
    commit(repository, "z.txt", "meanwhile\n")
    assert await tree.begun(repos, repo) == begun


async def test_the_branches_of_all_forerunners_count_but_of_those_that_failed_and_were_skipped(
    repo: Repo, tmp_path: Path
) -> None:
    store = SqliteStore(tmp_path / "store.db")
    await store.open()
    await store.upsert([Project(id=PROJECT, slug="p", name="P")])

    def row(name: str, **more: object) -> Task:
        values = {"repo_id": repo.id, "branch": f"promptdock/{name}"} | more
        return Task(slug=name, project_id=PROJECT, title=name, status="COMPLETED", **values)

    tasks = [row("a"), row("b"), row("c"), row("skipped", error="it broke"), row("far", repo_id=new_id())]
    a, b, c, skipped, far = tasks
    await store.upsert(tasks)
    for task, needed in ((b, a), (c, b), (c, skipped), (c, far)):
        await store.insert(TaskDependency(task_id=task.id, depends_on_id=needed.id))
    assert await bases.branches(store, c, repo) == ("promptdock/b", "promptdock/a")
    await store.close()
