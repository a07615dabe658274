"""What becomes of a task's branch: merged without touching anybody's files, thrown away, tried in advance."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shared.errors import Busy, ToolError
from shared.guard.sandbox.addresses import LOCAL
from shared.store.records import Project, Repo, Task, TaskDependency, TaskEvent, TaskResult
from shared.store.row import new_id
from shared.store.sqlite import SqliteStore
from shared.tasks import fate
from shared.tasks.worktree import merge
from shared.tasks.worktree.acquire import Worktree
from shared.tasks.worktree.mirrors import Mirrors
from shared.tasks.worktree.receipt import CheckRun, Receipt
from tests.support.sqlite import opened
from tests.tasks.conftest import PROJECT, commit, plain


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with opened(tmp_path) as made:
        await made.upsert([Project(id=PROJECT, slug="p", name="P")])
        yield made


async def worked(repos: Mirrors, repo: Repo, store: SqliteStore, name: str, **files: str) -> Task:
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
    repos: Mirrors, repo: Repo, repository: Path, store: SqliteStore
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


@pytest.mark.parametrize("known", [True, False])
async def test_a_merge_into_a_persons_changes_says_which_files_are_in_the_way(
    repos: Mirrors, repo: Repo, repository: Path, store: SqliteStore, known: bool
) -> None:
    name = "a.txt" if known else "b.txt"
    task = await worked(repos, repo, store, "t-1", **{name.replace(".", "_"): "of the task\n"})
    (repository / name).write_text("mine, not committed\n")
    before = plain(repository, "rev-parse", "HEAD")
    with pytest.raises(ToolError) as told:
        await merge.merge(repos, repo, store, task, "ann", "k1")
    assert told.value.what == f"{task.branch!r} was not merged into 'trunk'"
    assert f"would be overwritten: {name}" in told.value.why and str(repository) in told.value.why
    assert "git stash" in told.value.fix
    assert "error:" not in str(told.value), "git's own words stand in the log"
    assert plain(repository, "rev-parse", "HEAD") == before and await events(store) == []
    assert (repository / name).read_text() == "mine, not committed\n"


async def test_undoing_a_merge_says_which_files_are_in_the_way(
    repos: Mirrors, repo: Repo, repository: Path, store: SqliteStore
) -> None:
    task = await worked(repos, repo, store, "t-1", a_txt="of the task\n")
    await merge.merge(repos, repo, store, task, "ann", "k1")
    (repository / "a.txt").write_text("mine, not committed\n")
    with pytest.raises(ToolError) as told:
        await merge.unmerge(repos, repo, store, task, "ann", "k2")
    assert told.value.what == "the merge of t-1 is not undone in 'trunk'"
    assert "would be overwritten: a.txt" in told.value.why and "git stash" in told.value.fix


async def test_a_merge_says_what_was_asked_and_what_stands_behind_the_work(
    repos: Mirrors, repo: Repo, repository: Path, store: SqliteStore
) -> None:
    task = await worked(repos, repo, store, "t-1", b_txt="b\n")
    task = task.model_copy(update={"title": "Goal", "description": "# Goal\n\nWrite b. It is short."})
    check = CheckRun(command="make test", exit_code=0, check=True, by="harness", at=9e9)
    receipt = Receipt(branch=str(task.branch), commands=[check], verified="verified")
    result = TaskResult(
        id=new_id(), task_id=task.id, attempt=1, agent="backend", summary="It is written.\n\nPromptDock-Step: x",
        receipt=receipt.model_dump(),
    )  # fmt: skip
    await store.upsert([task, result])
    plain(repository, "config", "user.name", "Ann")
    plain(repository, "config", "user.email", "ann@here.invalid")
    await merge.merge(repos, repo, store, task, "person", "k1")
    assert plain(repository, "log", "-1", "--format=%an, %cn") == "Ann, Ann"
    said = plain(repository, "log", "-1", "--format=%B")
    assert said.startswith("Merge t-1: Write b\n\nIt is written.\n\n")
    assert "Asked for:\n\n# Goal\n\nWrite b. It is short.\n\nVerified: `make test` exit 0" in said
    assert "PromptDock-Step" not in said


async def test_a_merge_that_nothing_followed_is_undone_without_a_trace(
    repos: Mirrors, repo: Repo, repository: Path, store: SqliteStore
) -> None:
    task = await worked(repos, repo, store, "t-1", b_txt="b\n")
    before = plain(repository, "rev-parse", "HEAD")
    await merge.merge(repos, repo, store, task, "person", "k1")
    (repository / "a.txt").write_text("mine, not committed\n")
    os.utime(repository / "b.txt", (1, 1))  # as an editor that saves it again does
    undone = await merge.unmerge(repos, repo, store, task, "person", "k2")
    assert (undone.commit, undone.into) == ("", "trunk")
    assert plain(repository, "rev-parse", "HEAD") == before and not (repository / "b.txt").exists()
    assert (repository / "a.txt").read_text() == "mine, not committed\n"
    with pytest.raises(ToolError, match="is not merged"):
        await merge.unmerge(repos, repo, store, task, "person", "k3")
    assert (await merge.merge(repos, repo, store, task, "person", "k4")).files == ["b.txt"]
    assert await events(store) == ["merged", "unmerged", "merged"]


@pytest.mark.parametrize("holder", ["commit", "tag", "branch"])
async def test_a_merge_that_others_build_on_is_taken_out_by_a_commit_and_can_be_merged_again(
    repos: Mirrors, repo: Repo, repository: Path, store: SqliteStore, holder: str
) -> None:
    task = await worked(repos, repo, store, "t-1", b_txt="b\n")
    done = await merge.merge(repos, repo, store, task, "person", "k1")
    if holder == "commit":
        commit(repository, "c.txt", "meanwhile\n")
    else:
        plain(repository, holder, "kept", "HEAD")
    undone = await merge.unmerge(repos, repo, store, task, "person", "k2")
    assert undone.commit == plain(repository, "rev-parse", "HEAD") != done.commit
    assert not (repository / "b.txt").exists() and (repository / "c.txt").exists() == (holder == "commit")
    assert plain(repository, "log", "-1", "--format=%s") == "Undo the merge of t-1: Do t-1"
    for again in ("k3", "k5"):  # with new work the second time
        merged = await merge.merge(repos, repo, store, task, "person", again)
        assert merged.commit and "b.txt" in merged.files and (repository / "b.txt").read_text() == "b\n"
        undone = await merge.unmerge(repos, repo, store, task, "person", f"{again}u")
        assert not (repository / "b.txt").exists() and not (repository / "d.txt").exists()
        tree = await Worktree.acquire(repos, repo, "t-1", 2)
        (tree.path / "d.txt").write_text("d\n")
        await tree.git.commit_all("More", f"t-1:{again}")
        await tree.remove()


async def test_a_merge_whose_lines_were_changed_since_is_not_undone_and_says_so(
    repos: Mirrors, repo: Repo, repository: Path, store: SqliteStore
) -> None:
    task = await worked(repos, repo, store, "t-1", a_txt="theirs\n")
    await merge.merge(repos, repo, store, task, "person", "k1")
    head = commit(repository, "a.txt", "changed since\n")
    with pytest.raises(ToolError, match="cannot be undone") as refused:
        await merge.unmerge(repos, repo, store, task, "person", "k2")
    assert "a.txt" in refused.value.why and plain(repository, "rev-parse", "HEAD") == head


async def test_what_a_person_merged_or_took_out_by_hand_is_told_as_it_is(
    repos: Mirrors, repo: Repo, repository: Path, store: SqliteStore
) -> None:
    task = await worked(repos, repo, store, "t-1", b_txt="b\n")
    plain(repository, "merge", "-q", "--no-ff", "-m", "By hand", str(task.branch))
    for key in ("k1", "k2"):
        assert (await merge.merge(repos, repo, store, task, "person", key)).commit == ""
    assert await events(store) == ["merged"], "merged twice is written once"
    with pytest.raises(ToolError, match="no merge of ours"):
        await merge.unmerge(repos, repo, store, task, "person", "k3")
    other = await worked(repos, repo, store, "t-2", c_txt="c\n")
    await merge.merge(repos, repo, store, other, "person", "k4")
    plain(repository, "reset", "-q", "--hard", "HEAD~1")
    assert (await merge.unmerge(repos, repo, store, other, "person", "k5")).commit == ""
    assert (await events(store))[-1] == "unmerged"


async def test_what_came_along_goes_along(repos: Mirrors, repo: Repo, store: SqliteStore) -> None:
    first = await worked(repos, repo, store, "t-1", b_txt="b\n")
    tree = await Worktree.acquire(repos, repo, "t-2", 1, [str(first.branch)])
    (tree.path / "d.txt").write_text("d\n")
    await tree.git.commit_all("Go on", "t-2:1")
    await tree.remove()
    last = first.model_copy(update={"id": new_id(), "slug": "t-2", "branch": tree.branch})
    await store.upsert([last, edge(last, first)])
    await merge.merge(repos, repo, store, last, "person", "k1")
    with pytest.raises(ToolError, match=r"came with t-2.*promptdock tasks unmerge t-2"):
        await merge.unmerge(repos, repo, store, first, "person", "k2")
    assert (await merge.unmerge(repos, repo, store, last, "person", "k3")).along == ["t-1"]
    assert await fate.fates(store, [first.id, last.id]) == {}


async def test_what_a_task_was_built_on_comes_with_it_and_its_history_says_so(
    repos: Mirrors, repo: Repo, store: SqliteStore
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
    repos: Mirrors, repo: Repo, repository: Path, store: SqliteStore
) -> None:
    task = await worked(repos, repo, store, "t-1", a_txt="theirs\n")
    head = plain(repository, "rev-parse", "HEAD")
    (repository / "a.txt").write_text("mine\n")
    with pytest.raises(ToolError):
        await merge.merge(repos, repo, store, task, "ann", "k1")
    assert (repository / "a.txt").read_text() == "mine\n" and plain(repository, "rev-parse", "HEAD") == head
    assert await events(store) == []


async def test_a_conflict_is_named_before_anything_is_touched(
    repos: Mirrors, repo: Repo, repository: Path, store: SqliteStore
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
    repos: Mirrors, repo: Repo, repository: Path, store: SqliteStore
) -> None:
    task = await worked(repos, repo, store, "t-1", b_txt="b\n")
    plain(repository, "switch", "-q", "-c", "elsewhere")
    done = await merge.merge(repos, repo, store, task, "ann", "k1")
    assert plain(repository, "rev-parse", "trunk") == done.commit
    assert (
        plain(repository, "branch", "--show-current") == "elsewhere" and not (repository / "b.txt").exists()
    )


async def test_a_mirror_is_pushed_only_where_the_repository_grants_it(
    repos: Mirrors, repository: Path, store: SqliteStore, tmp_path: Path
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
    repos: Mirrors, repo: Repo, repository: Path, store: SqliteStore
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


async def test_what_is_merged_is_not_thrown_away_until_its_merge_is_undone(
    repos: Mirrors, repo: Repo, repository: Path, store: SqliteStore
) -> None:
    first = await worked(repos, repo, store, "t-1", b_txt="b\n")
    tree = await Worktree.acquire(repos, repo, "t-2", 1, [str(first.branch)])
    (tree.path / "d.txt").write_text("d\n")
    await tree.git.commit_all("Go on", "t-2:1")
    await tree.remove()
    last = first.model_copy(update={"id": new_id(), "slug": "t-2", "branch": tree.branch})
    await store.upsert([last, edge(last, first)])
    await merge.merge(repos, repo, store, last, "person", "k1")
    for task in (first, last):
        with pytest.raises(ToolError, match="its work is in trunk") as refused:
            await merge.discard(repos, repo, store, task, "ann", "k2")
        assert "promptdock tasks unmerge t-2" in refused.value.fix
        assert task.branch and plain(repository, "branch", "--list", task.branch)
    assert set((await fate.fates(store, [first.id, last.id])).values()) == {"merged"}
    await merge.unmerge(repos, repo, store, last, "person", "k3")
    for task in (first, last):
        await merge.discard(repos, repo, store, task, "ann", f"k4:{task.slug}")
    assert set((await fate.fates(store, [first.id, last.id])).values()) == {"discarded"}


async def test_what_was_made_after_a_merge_is_thrown_away_alone(
    repos: Mirrors, repo: Repo, repository: Path, store: SqliteStore
) -> None:
    task = await worked(repos, repo, store, "t-1", b_txt="b\n")
    await merge.merge(repos, repo, store, task, "person", "k1")
    await store.insert(TaskEvent(id=new_id(), task_id=task.id, event="started"))
    await merge.discard(repos, repo, store, task, "ann", "k2")
    assert await fate.fates(store, [task.id]) == {task.id: "merged"}
    (row,) = await store.select(Task, {"slug": "t-1"})
    await merge.unmerge(repos, repo, store, row, "person", "k3")
    assert "b.txt" not in plain(repository, "ls-tree", "--name-only", "trunk")


async def test_a_task_that_runs_is_neither_merged_nor_thrown_away(
    repos: Mirrors, repo: Repo, store: SqliteStore
) -> None:
    task = (await worked(repos, repo, store, "t-1", b_txt="b\n")).model_copy(update={"status": "IN_PROGRESS"})
    for change in (merge.merge, merge.discard):
        with pytest.raises(ToolError, match="IN_PROGRESS"):
            await change(repos, repo, store, task, "ann", "k1")


async def test_a_reopened_task_goes_on_with_its_branch_from_where_it_left_the_default_branch(
    repos: Mirrors, repo: Repo, repository: Path, store: SqliteStore
) -> None:
    start = plain(repository, "rev-parse", "HEAD")
    await worked(repos, repo, store, "t-1", b_txt="b\n")
    commit(repository, "c.txt", "meanwhile\n")
    tree = await Worktree.acquire(repos, repo, "t-1", 2)
    assert (tree.path / "b.txt").exists() and tree.base == start
    assert await tree.git.changed_files(tree.base, tree.branch) == ["b.txt"]


async def test_another_machine_goes_on_from_the_last_push(
    repos: Mirrors, repository: Path, tmp_path: Path, store: SqliteStore
) -> None:
    remote = tmp_path / "remote.git"
    plain(tmp_path, "clone", "-q", "--bare", str(repository), str(remote))
    repo = (await repos.add(f"file://{remote}", PROJECT)).model_copy(update={"push_tasks": True})
    first = await Worktree.acquire(repos, repo, "t-1", 1)
    (first.path / "b.txt").write_text("b\n")
    await first.git.commit_all("Half of it", "t-1:1")
    await first.source.push(first.branch, reach=LOCAL)
    (tmp_path / "other").mkdir()
    elsewhere = Mirrors(tmp_path / "other", "h2", repos.sandbox, allow_local=True)
    second = await Worktree.acquire(elsewhere, repo, "t-1", 2)
    assert (second.path / "b.txt").read_text() == "b\n" and second.base == first.base
