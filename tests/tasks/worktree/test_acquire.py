"""A task's worktree: one owner at a time, and no child of an earlier one goes on writing."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

from shared.errors import Busy, Fenced, ToolError
from shared.guard.files import lock as flock
from shared.guard.processes.pid import birth
from shared.guard.processes.process import run
from shared.guard.sandbox.addresses import LOCAL
from shared.store.records import Repo
from shared.tasks.worktree import lock as holds
from shared.tasks.worktree.acquire import Worktree
from shared.tasks.worktree.lock import WorktreeLock
from shared.tasks.worktree.mirrors import Mirrors
from tests.tasks.conftest import PROJECT, plain, until


async def test_work_happens_beside_the_main_checkout_and_leaves_only_its_branch(
    repos: Mirrors, repo: Repo, repository: Path
) -> None:
    head = plain(repository, "rev-parse", "HEAD")
    tree = await Worktree.acquire(repos, repo, "t-1", 1)
    assert tree.path.is_relative_to(repos.home / "worktrees") and tree.path.name == "t-1"
    assert (tree.branch, tree.base) == ("promptdock/t-1", head)
    (tree.path / "b.txt").write_text("b\n")
    with pytest.raises(ToolError, match="not committed"):
        await tree.remove()
    sha = await tree.git.commit_all("Add b", "t-1:1")
    await tree.remove()
    assert plain(repository, "rev-parse", "promptdock/t-1") == sha
    assert plain(repository, "rev-parse", "HEAD") == head and plain(repository, "status", "--porcelain") == ""
    assert list((repos.home / "worktrees").rglob("*.*")) == [] and not tree.path.exists()
    assert len(plain(repository, "worktree", "list").splitlines()) == 1


async def test_several_tasks_work_in_one_repository_at_the_same_time(repos: Mirrors, repo: Repo) -> None:
    first = await Worktree.acquire(repos, repo, "t-1", 1)
    second = await Worktree.acquire(repos, repo, "t-2", 1)
    other = await repos.source(repo)
    await other.worktree_detach(repos.home / "elsewhere" / "x", second.base)
    for tree in (first, second):
        (tree.path / "b.txt").write_text(tree.branch)
    made = await asyncio.gather(first.git.commit_all("One", "a"), second.git.commit_all("Two", "b"))
    assert all(made) and made[0] != made[1]
    await first.remove()
    await second.remove()
    assert await other.file("promptdock/t-2", "b.txt") == "promptdock/t-2"


async def test_a_worktree_whose_files_somebody_removed_is_made_again(repos: Mirrors, repo: Repo) -> None:
    tree = await Worktree.acquire(repos, repo, "t", 1)
    (tree.path / "b.txt").write_text("b")
    sha = await tree.git.commit_all("Add b", "t:1")
    shutil.rmtree(tree.path)
    again = await Worktree.acquire(repos, repo, "t", 2)
    assert await again.git.head() == sha and (again.path / "b.txt").exists()


async def test_uncommitted_work_of_a_dead_owner_is_gone_on_with(
    repos: Mirrors, repo: Repo, repository: Path
) -> None:
    tree = await Worktree.acquire(repos, repo, "t", 1)
    (tree.path / "half.txt").write_text("half")
    stale = Path((tree.git.where or pytest.fail("no repository")).folder) / "index.lock"
    stale.write_text("")  # as a killed git leaves it
    plain(repository, "commit", "-q", "--allow-empty", "-m", "meanwhile")
    again = await Worktree.acquire(repos, repo, "t", 2)
    assert (again.path / "half.txt").read_text() == "half" and again.base == tree.base
    assert await again.git.commit_all("Go on", "t:2")


async def test_a_worktree_that_a_crash_cut_off_is_made_again(repos: Mirrors, repo: Repo) -> None:
    tree = await Worktree.acquire(repos, repo, "t", 1)
    await tree.lock.note(ready=False)
    (tree.path / "a.txt").unlink()
    again = await Worktree.acquire(repos, repo, "t", 2)
    assert (again.path / "a.txt").exists() and await again.git.status() == []
    await again.lock.note(ready=False)
    plain(again.source.path, "worktree", "remove", "--force", str(again.path))
    again.path.mkdir()
    (again.path / "rest").write_text("x")
    third = await Worktree.acquire(repos, repo, "t", 3)
    assert not (third.path / "rest").exists() and (third.path / "a.txt").exists()


async def test_an_owner_that_was_replaced_can_do_nothing_more(repos: Mirrors, repo: Repo) -> None:
    old = await Worktree.acquire(repos, repo, "t", 1)
    (old.path / "b.txt").write_text("b")
    new = await Worktree.acquire(repos, repo, "t", 2)
    with pytest.raises(Fenced):
        await old.git.commit_all("Late", "late")
    with pytest.raises(Fenced):
        await run(["touch", "late"], cwd=old.path, lock=old.lock)
    with pytest.raises(Fenced):
        async with old.lock.held():
            pytest.fail("two held it")
    with pytest.raises(Fenced):
        await Worktree.acquire(repos, repo, "t", 1)
    await old.release()  # gives back nothing that is not its own
    assert await new.git.commit_all("In time", "in-time") and not (new.path / "late").exists()


OWNER = """
import asyncio, sys
from pathlib import Path
from shared.guard.processes.process import run
from shared.tasks.worktree.lock import WorktreeLock

async def main():
    folder, script = Path(sys.argv[1]), sys.argv[2]
    lock = WorktreeLock(folder, "t", 1)
    await lock.take()
    await run(["bash", "-c", script], cwd=folder, lock=lock, timeout=300)

asyncio.run(main())
"""
# What children do to outlive their parent; each writes its id, and then on and on into `ticks`.
CHILDREN = {
    "in the background": "(echo $BASHPID > pid; while :; do echo x >> ticks; sleep .01; done) & wait",
    "in a session of its own": "setsid --wait bash -c 'echo $$ > pid; while :; do echo x >> ticks; sleep .01; done'",
    "without what it inherited": "for f in /dev/fd/*; do n=${f##*/}; [ $n -gt 2 ] && eval exec $n'>&-'; done"
    "; echo $$ > pid; while :; do echo x >> ticks; sleep .01; done",
    "deaf to signals": "trap '' TERM INT HUP; echo $$ > pid; while :; do echo x >> ticks; sleep .01; done",
}


@pytest.mark.parametrize("child", CHILDREN)
@pytest.mark.parametrize("fate", [signal.SIGKILL, signal.SIGSTOP])
async def test_children_of_an_owner_that_was_killed_or_frozen_end_before_the_successor_starts(
    tmp_path: Path, child: str, fate: signal.Signals
) -> None:
    owner = await asyncio.create_subprocess_exec(sys.executable, "-c", OWNER, str(tmp_path), CHILDREN[child])
    try:
        await until(lambda: lines(tmp_path / "ticks") > 3)
        owner.send_signal(fate)
        if fate == signal.SIGKILL:
            await asyncio.wait_for(owner.wait(), 10)
        seen = lines(tmp_path / "ticks")
        await until(lambda: lines(tmp_path / "ticks") > seen)  # it goes on without its owner
        successor = WorktreeLock(tmp_path, "t", 2)
        await successor.take()
        ended = lines(tmp_path / "ticks")
        assert birth(int((tmp_path / "pid").read_text())) == ""
        async with successor.child():
            pass
        assert lines(tmp_path / "ticks") == ended
        # The frozen one wakes up: its own child is gone, and it starts no other.
        if fate == signal.SIGSTOP:
            owner.send_signal(signal.SIGCONT)
            await asyncio.wait_for(owner.wait(), 10)
    finally:
        for pid in (owner.pid, number(tmp_path / "pid")):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        await owner.wait()


def lines(file: Path) -> int:
    return len(file.read_text().splitlines()) if file.exists() else 0


def number(file: Path) -> int:
    return int(file.read_text())


async def test_a_process_that_only_got_the_number_of_a_recorded_group_is_left_alone(tmp_path: Path) -> None:
    stranger = await asyncio.create_subprocess_exec("sleep", "60", start_new_session=True)
    try:
        groups = [{"group": stranger.pid, "birth": "another boot:1"}]
        record = {"owner": {"group": 1, "birth": "x"}, "token": "t", "epoch": 1, "groups": groups}
        (tmp_path / "t.json").write_text(json.dumps(record))
        await WorktreeLock(tmp_path, "t", 2).take()
        assert birth(stranger.pid) and stranger.returncode is None
    finally:
        stranger.kill()
        await stranger.wait()


async def test_a_record_that_a_crash_cut_off_does_not_stop_the_successor(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('{"owner": {"gro')
    lock = WorktreeLock(tmp_path, "t", 1)
    assert await lock.take() == {}
    async with lock.held():
        pass


async def test_a_dead_owner_with_a_later_epoch_is_no_obstacle(tmp_path: Path) -> None:
    record = {
        "owner": {"group": 1, "birth": "gone"},
        "token": "t",
        "epoch": 99,
        "groups": [],
        "notes": {"a": 1},
    }
    (tmp_path / "t.json").write_text(json.dumps(record))
    assert await WorktreeLock(tmp_path, "t", 1).take() == {"a": 1}


async def test_an_owner_frozen_in_the_middle_of_starting_a_child_makes_the_successor_wait_and_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holds, "_WAIT", 0.2)
    lock = WorktreeLock(tmp_path, "t", 1)
    await lock.take()
    async with lock.child():
        with pytest.raises(Busy):
            await WorktreeLock(tmp_path, "t", 2).take()
    await WorktreeLock(tmp_path, "t", 2).take()


async def test_many_successors_at_once_leave_one_owner(repos: Mirrors, repo: Repo) -> None:
    trees = await asyncio.wait_for(
        asyncio.gather(
            *(Worktree.acquire(repos, repo, "t", epoch) for epoch in range(1, 7)), return_exceptions=True
        ),
        60,
    )
    owners = []
    for tree in trees:
        assert isinstance(tree, Worktree | Fenced)
        if isinstance(tree, Worktree):
            with contextlib.suppress(Fenced):
                async with tree.lock.held():
                    owners.append(tree.lock.epoch)
    assert owners == [6]


async def test_a_worker_killed_while_it_made_the_branch_leaves_nothing_in_the_way(
    repos: Mirrors, repo: Repo, repository: Path
) -> None:
    heads = repository / ".git" / "refs" / "heads" / "promptdock"
    heads.mkdir()
    (heads / "t.lock").write_text("")  # as git leaves it when it is killed
    tree = await Worktree.acquire(repos, repo, "t", 2)
    assert await tree.git.branch() == "promptdock/t"


async def test_release_ends_children_and_the_next_one_goes_on(tmp_path: Path) -> None:
    lock = WorktreeLock(tmp_path, "t", 1)
    await lock.take()
    running = asyncio.create_task(
        run(["bash", "-c", "echo $$ > pid; sleep 60"], cwd=tmp_path, lock=lock, timeout=100)
    )
    await until(lambda: lines(tmp_path / "pid") > 0)
    await lock.release()
    assert (await asyncio.wait_for(running, 10)).exit_code == -9
    await WorktreeLock(tmp_path, "t", 1).take()


async def test_a_hundred_children_keep_the_record_small_and_no_descriptor_open(tmp_path: Path) -> None:
    lock = WorktreeLock(tmp_path, "t", 1)
    await lock.take()
    for _ in range(5):
        await asyncio.gather(*(run(["true"], cwd=tmp_path, lock=lock) for _ in range(20)))
    assert len(json.loads((tmp_path / "t.json").read_text())["groups"]) < 30
    fd = flock.attempt(tmp_path / "t.lease")  # no one holds it any more
    assert fd is not None
    os.close(fd)


async def test_what_another_machine_has_just_pushed_of_a_task_is_gone_on_with(
    repos: Mirrors, repository: Path, tmp_path: Path
) -> None:
    shared = tmp_path / "shared.git"
    plain(tmp_path, "clone", "-q", "--bare", str(repository), str(shared))
    other = Mirrors(tmp_path / "other", "h2", repos.sandbox, allow_local=True)
    row = await repos.add(shared.as_uri(), PROJECT, push_tasks=True)
    await other.source(row)  # fetched a moment ago, and so fresh for a minute
    began = ""
    for number, home in enumerate((repos, other, repos)):
        tree = await Worktree.acquire(home, row, "t", number + 1, (), began)
        began = tree.base
        assert sorted(file.name for file in tree.path.glob("step*")) == [f"step{n}" for n in range(number)]
        (tree.path / f"step{number}").write_text("done\n")
        await tree.git.commit_all("A step", f"s{number}")
        await tree.source.push(tree.branch, reach=LOCAL)
        await tree.remove()
