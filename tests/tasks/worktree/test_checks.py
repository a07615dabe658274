"""The checks of a task: run by us on what was committed, whatever the agent says about them."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.errors import ToolError
from shared.store.records import Repo
from shared.tasks.worktree import checks, receipt
from shared.tasks.worktree.acquire import Worktree
from shared.tasks.worktree.checks import CheckPlan
from shared.tasks.worktree.mirrors import Mirrors
from shared.tasks.worktree.receipt import CheckRun
from tests.tasks.conftest import commit

FILE = '[checks]\ncommands = ["grep -q one a.txt", "test -f b.txt"]\nseconds = 20\n'


async def test_they_are_read_from_the_repository_as_it_was_before_the_agent_came(
    repos: Mirrors, repo: Repo, repository: Path
) -> None:
    commit(repository, "promptdock.toml", FILE)
    tree = await Worktree.acquire(repos, repo, "t", 1)
    (tree.path / "promptdock.toml").write_text('[checks]\ncommands = ["true"]\n')
    await tree.git.commit_all("Make it easy", "t:1")
    plan = await checks.of_repository(tree.git, tree.base)
    assert plan == CheckPlan(("grep -q one a.txt", "test -f b.txt"), 20.0, "promptdock.toml")


async def test_a_repository_without_them_has_none_and_a_wrong_file_is_said(
    repos: Mirrors, repo: Repo, repository: Path
) -> None:
    git = await repos.source(repo)
    assert (await checks.of_repository(git, "trunk")).commands == ()
    commit(repository, "promptdock.toml", "[checks]\ncommands = 3\n")
    with pytest.raises(ToolError, match="cannot be read"):
        await checks.of_repository(git, "trunk")


async def test_all_run_and_their_exit_codes_and_outputs_are_recorded(repos: Mirrors, repo: Repo) -> None:
    tree = await Worktree.acquire(repos, repo, "t", 1)
    plan = CheckPlan(("echo out; exit 3", "true", "sleep 30"), seconds=3.0)
    ran = await checks.run_all(tree.git, repos.sandbox, plan, tree.lock)
    assert [one.command.exit_code for one in ran][:2] == [3, 0] and not ran[2].passed
    assert ran[0].command.stdout_digest == receipt.digest("out\n") and "out" in ran[0].output
    assert all(one.command.by == "harness" and one.command.check for one in ran)
    told = checks.feedback(ran)
    assert "exit code 3\nout" in told and "[ended after 3 s]" in told


def test_what_an_agent_ran_does_not_count_where_we_ran_checks() -> None:
    agents = CheckRun(command="pytest", exit_code=0, check=True, at=9)
    ours = CheckRun(command="make test", exit_code=2, check=True, by="harness", at=10)
    assert receipt.verdict([agents], True, 5) == "verified"
    assert receipt.verdict([agents, ours], True, 5) == "unverified"
    work = [receipt.Produced(sha="a" * 40, subject="Work")]
    made = receipt.Receipt(commits=work, commands=[agents, ours], verified="unverified")
    assert receipt.describe(made) == "Unverified: `make test` exit 2."
    assert receipt.describe(receipt.Receipt(commits=work)) == "Unverified: no check ran."
    assert receipt.describe(receipt.Receipt()) == "Nothing was changed."


@pytest.mark.parametrize("value", [None, "make test", [], [""], [3], ["a\0b"]])
def test_a_task_without_usable_commands_carries_no_checks(value: object) -> None:
    assert checks.parse(value, "the plan") is None


def test_a_plan_adds_to_the_checks_of_the_repository_and_takes_none_away() -> None:
    standing, planned = (
        CheckPlan(("make test", "true"), 60.0, "promptdock.toml"),
        CheckPlan(("true", "ls"), 9.0, "the plan"),
    )
    both = checks.both(standing, planned)
    assert (both.commands, both.seconds) == (("make test", "true", "ls"), 60.0)
    assert both.origin == "promptdock.toml and the plan"
    assert checks.both(CheckPlan(), planned) == planned and checks.both(standing, None) == standing
