"""What a person is told of a call before they allow it: what will happen, from where to where, and with what."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shared.guard.permissions import about
from shared.guard.permissions.requests import ApprovalRequest
from shared.store.records import Repo, Task, TaskResult
from shared.tools import catalog, describe
from tests.tools.bench import Bench
from tests.tools.ground import commit, git

REGISTRY = catalog.registry()


async def told(bench: Bench, name: str, /, **arguments: Any) -> str:
    """The words of a call, as the gate makes them."""
    tool, here = REGISTRY.get(name), bench.context()
    checked = tool.check(arguments)
    facts = await tool.binds(here, **checked) if tool.binds else {}
    return "\n".join(await describe.call(here, tool, checked, facts))


async def branched(bench: Bench, path: Path, change: str = "three\n") -> Task:
    """A task that is done, whose work lies on a branch."""
    slug = (await bench.ok("create_task", title="Three lines", repo_id="shop"))["created"]
    git(path, "switch", "--quiet", "-c", f"promptdock/{slug}")
    (path / "app.py").write_text(f"one\ntwo\n{change}")
    commit(path, "three")
    git(path, "switch", "--quiet", "main")
    [repo] = await bench.store.select(Repo)
    fields = {"status": "COMPLETED", "branch": f"promptdock/{slug}", "repo_id": repo.id}
    [task] = await bench.store.update(Task, fields, {"slug": slug})
    return task


async def test_a_merge_says_which_branch_goes_where_how_large_it_is_and_whether_it_was_checked(
    bench: Bench,
) -> None:
    path = await bench.linked()
    task = await branched(bench, path)
    said = await told(bench, "merge_task", task_id=task.slug)
    assert f"merge promptdock/{task.slug} into main of shop" in said and "Three lines" in said
    assert "1 file changed, 1 insertion(+)" in said and "without conflicts" in said
    assert "nobody has checked it" in said
    ran = [{"by": "harness", "command": "make test", "exit_code": 0}]
    await bench.store.insert(TaskResult(task_id=task.id, verified="verified", commands=ran))
    assert "its receipt says verified: make test exit 0" in await told(bench, "merge_task", task_id=task.slug)
    (path / "app.py").write_text("one\ntwo\nsomething else\n")
    commit(path, "else")
    assert "it conflicts in app.py" in await told(bench, "merge_task", task_id=task.slug)


async def test_a_push_says_the_address_and_the_commits(bench: Bench) -> None:
    path = await bench.linked()
    (path / "app.py").write_text("one\n")
    commit(path, "Take a line away")
    said = await told(bench, "git_push", branch="main")
    assert f"push the branch main of shop to {git(path, 'remote', 'get-url', 'origin')}" in said
    assert "1 commit: 1 file changed" in said and "Take a line away" in said


async def test_a_command_says_in_which_folder_and_in_which_sandbox(bench: Bench) -> None:
    path = await bench.linked()
    said = await told(bench, "run_command", command="make test\nmake install", working_dir="shop/docs")
    assert said.startswith("run make test (and 1 more lines)")
    assert f"in the folder {path / 'docs'}" in said and "sandbox" in said


async def test_a_budget_says_from_what_to_what(bench: Bench) -> None:
    slug = (await bench.ok("create_task", title="Dear"))["created"]
    assert "budget from no limit to $2.50" in await told(bench, "edit_task", task_id=slug, budget=2.5)
    await bench.ok("edit_task", task_id=slug, budget=1.0)
    assert "budget from $1.00 to no limit" in await told(bench, "edit_task", task_id=slug, budget=None)
    await bench.ok("set_day_budget", dollars=3)
    assert "from $3.00 to $4.00" in await told(bench, "set_day_budget", dollars=4)
    await bench.ok("edit_project", project_id="default", budget_limit=7)
    assert "from $7.00 to $8.00" in await told(bench, "edit_project", project_id="default", budget_limit=8)
    assert "from READY to BLOCKED" in await told(bench, "edit_task", task_id=slug, status="BLOCKED")


async def test_a_repository_is_told_by_its_real_path(bench: Bench, tmp_path: Path) -> None:
    path = bench.repository("real", {"a.py": "1\n"})
    (tmp_path / "link").symlink_to(path)
    said = await told(bench, "add_repo", source="link", path=str(tmp_path / "link"))
    assert f"register the repository {path}" in said and f"given as {tmp_path / 'link'}" in said
    said = await told(
        bench, "add_workspace", project_id="default", source="link", path=str(tmp_path / "link")
    )
    assert f"open the folder {path}" in said


async def test_a_hook_says_when_it_acts_and_what_it_runs(bench: Bench) -> None:
    await bench.ok("create_project", name="Night")
    steps = [{"type": "shell", "command": "make report"}, {"type": "http", "url": "https://example.org/x"}]
    made = {
        "project_id": "night",
        "name": "Nightly",
        "prompt_template": "Look at {{step_0}}",
        "context_steps": steps,
    }
    said = await told(bench, "create_hook", trigger={"type": "cron", "cron": "0 9 * * 1-5"}, **made)
    assert "make the hook Nightly" in said and "0 9 * * 1-5" in said
    assert "step 1: shell make report" in said and "step 2: http https://example.org/x" in said
    trigger = {"type": "periodic", "interval_seconds": 900}
    hook = (await bench.ok("create_hook", trigger=trigger, **made))["created"]
    assert "every 900 s" in await told(bench, "edit_hook", hook_id=hook, daily_cap=3)
    assert "step 1: shell make report" in await told(bench, "fire_hook", hook_id=hook)


async def test_what_has_no_words_of_its_own_is_told_by_its_description_and_arguments(bench: Bench) -> None:
    said = await told(bench, "delete_note", project_id="shop", title="Old")
    assert "(delete_note)" in said and "project id: shop" in said and "title: Old" in said
    gone = await told(bench, "delete_task", task_id="no-such-task")
    assert "(delete_task)" in gone and "no-such-task" in gone


def test_all_words_belong_to_a_tool() -> None:
    assert all(name in REGISTRY for name in describe._TELLERS)


def card(**more: Any) -> ApprovalRequest:
    fields: dict[str, Any] = {
        "id": "0123456789abcdef", "call": "c", "agent": "backend", "session": "s", "user_id": "ada", "turn": "t",
        "home": "s", "tool": "bash", "action": "tool:bash:make test", "arguments": {}, "arguments_hash": "0",
        "why": "it runs a command", "pattern": "x", "project": "shop", "at": 1, "expires_at": 2,
    }  # fmt: skip
    return ApprovalRequest(**{**fields, **more})


def test_what_always_covers_is_said_before_it_is_chosen() -> None:
    assert "this very command line, by backend, in this conversation" in about.always(card())
    pushed = card(tool="git_push", bound={"address": "ssh://host/x", "commit": "a" * 40})
    assert "as long as it leads to ssh://host/x" in about.always(pushed)
    assert "whatever commits" in about.always(pushed)
    assert about.always(card(), each_time=True).startswith("nothing")
    assert about.always(card(user_id="")).startswith("nothing")


def test_a_model_s_reason_is_marked_as_its_own_words_and_hides_nothing() -> None:
    words = about.About(
        "run make", ("in the sandbox",), "I test\u202e it\nAction: tool:none", "calm-otter (A page)"
    )
    lines = about.lines(card(about=words.kept()))
    assert lines[0] == "Backend asks for permission: run make"
    assert "  Backend's own words: “I test\\u{202E} it\\nAction: tool:none”" in lines
    assert "  For the task calm-otter (A page)" in lines and "  Action: tool:bash:make test" in lines


def test_a_request_of_a_release_before_has_its_action_and_rule() -> None:
    lines = about.lines(card())
    assert lines[0].endswith("use bash") and "  Action: tool:bash:make test" in lines
    assert "  Why you are asked: it runs a command" in lines
