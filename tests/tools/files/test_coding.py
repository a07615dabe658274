"""The coding tools, called as the loop calls them, in a real worktree and a real sandbox."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from shared.errors import Fenced, ToolError
from shared.guard.sandbox.sandbox import Sandbox
from shared.store.base import Store
from shared.tasks.worktree.lock import WorktreeLock
from shared.tools.context import Context, Root, TaskWorktree
from shared.tools.files import coding
from shared.tools.registry import Registry
from tests.tools import ground

REGISTRY = Registry([coding.category])


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "outside.txt").write_text("CANARY")
    return ground.repository(tmp_path / "shop", {"src/a.py": "a = 1\nb = 2\nb2 = 2\n"}).path


@pytest.fixture
def context(workspace: Path) -> Context:
    return Context(
        agent="backend",
        session_id="s",
        turn_id="t",
        store=cast(Store, None),
        roots={"shop": Root("shop", workspace, writable=True)},
        sandbox=Sandbox.probe(),
    )


async def call(context: Context, name: str, **arguments: Any) -> dict[str, Any]:
    tool = REGISTRY.get(name)
    return await tool.function(context, **tool.check(arguments))


def total(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


async def test_a_file_is_created_changed_and_viewed_with_sums_of_before_and_after(
    context: Context, workspace: Path
) -> None:
    made = await call(context, "create_file", path="docs/x.md", content="hello\n")
    assert made["created"] and made["before"] is None and made["after"] == total("hello\n")
    again = await call(context, "create_file", path="shop/docs/x.md", content="hello\n")
    assert not again["created"] and again["before"] == again["after"] == total("hello\n")
    changed = await call(context, "str_replace", path="docs/x.md", old_str="hello", new_str="bye")
    assert (changed["before"], changed["after"]) == (total("hello\n"), total("bye\n")) and changed[
        "line"
    ] == 1
    assert (workspace / "docs" / "x.md").read_text() == "bye\n"
    seen = await call(context, "view", path="docs/x.md")
    assert (seen["content"], seen["lines"], seen["truncated"]) == ("1\tbye", 1, False)


async def test_view_shows_a_part_a_folder_and_says_what_is_binary(context: Context, workspace: Path) -> None:
    part = await call(context, "view", path="src/a.py", offset=2, limit=1)
    assert (part["content"], part["truncated"]) == ("2\tb = 2", True)
    folder = await call(context, "view", path=".")
    assert [entry["name"] for entry in folder["entries"]] == [".git", "src"]
    (workspace / "image").write_bytes(b"\x89PNG\0\0")
    assert (await call(context, "view", path="image"))["binary"]
    (workspace / "long").write_text("x" * 1_000_000 + "\n" + "y\n" * 100_000)
    long = await call(context, "view", path="long")
    assert len(long["content"]) < 70_000 and long["truncated"]


@pytest.mark.parametrize(
    ("old", "why"),
    [("b", "occurs"), ("nothing", "does not occur"), ("", "empty"), ("b\r\n", "does not occur")],
)
async def test_text_that_is_not_there_exactly_once_is_not_replaced(
    context: Context, workspace: Path, old: str, why: str
) -> None:
    with pytest.raises(ToolError, match=why):
        await call(context, "str_replace", path="src/a.py", old_str=old, new_str="x")
    assert (workspace / "src" / "a.py").read_text() == "a = 1\nb = 2\nb2 = 2\n"


@pytest.mark.parametrize(
    "path", ["../outside.txt", "/etc/passwd", "shop/../../outside.txt", ".git/config", "", "l"]
)
async def test_nothing_outside_of_the_workspace_is_written(
    context: Context, workspace: Path, path: str
) -> None:
    (workspace / "l").symlink_to("../outside.txt")
    for name, arguments in (
        ("create_file", {"content": "x"}),
        ("str_replace", {"old_str": "CANARY", "new_str": "x"}),
    ):
        with pytest.raises(ToolError) as caught:
            await call(context, name, path=path, **arguments)
        assert str(workspace) not in str(caught.value)
    assert (workspace.parent / "outside.txt").read_text() == "CANARY"


async def test_many_replacements_of_one_file_at_once_lose_nothing(context: Context, workspace: Path) -> None:
    (workspace / "n").write_text("".join(f"<{number}>" for number in range(20)))
    calls = (
        call(context, "str_replace", path="n", old_str=f"<{number}>", new_str=f"[{number}]")
        for number in range(20)
    )
    await asyncio.wait_for(asyncio.gather(*calls), 30)
    assert (workspace / "n").read_text() == "".join(f"[{number}]" for number in range(20))


def needs_sandbox(context: Context) -> None:
    sandbox = context.sandbox
    assert sandbox is not None
    if not sandbox.confines:
        pytest.skip(sandbox.why)


async def test_a_command_runs_in_the_workspace(context: Context, workspace: Path) -> None:
    needs_sandbox(context)
    done = await call(context, "bash", command="echo hi > made; cat made; echo no >&2; exit 3")
    assert (done["exit_code"], done["stdout"], done["stderr"]) == (3, "hi\n", "no\n")
    assert (workspace / "made").exists() and done["sandbox"] in ("bwrap", "landlock")


async def test_a_command_is_bounded_in_output_and_time_and_sees_no_secret(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_sandbox(context)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-CANARY")
    long = await call(context, "bash", command="seq 100000; seq 100000 >&2; env; cat ../outside.txt")
    assert long["truncated"] and len(long["stdout"]) < 4100 and len(long["stderr"]) < 2100
    assert "CANARY" not in long["stdout"] + long["stderr"] and long["stdout"].startswith("1\n2\n")
    late = await call(context, "bash", command="echo begun; sleep 60", timeout=1)
    assert late["timed_out"] and late["stdout"] == "begun\n" and "ended" in late["warning"]


async def test_without_a_sandbox_no_command_runs(context: Context, workspace: Path) -> None:
    for sandbox in (None, Sandbox("refused", "no sandbox: try X")):
        bare = Context("a", "s", "t", cast(Store, None), roots=context.roots, sandbox=sandbox)
        with pytest.raises(ToolError, match="cannot be run here"):
            await call(bare, "bash", command="touch ran")
    assert not (workspace / "ran").exists()


async def test_a_command_with_a_nul_is_refused_cleanly(context: Context) -> None:
    with pytest.raises(ToolError, match="NUL"):
        await call(context, "bash", command="git status\0;touch CANARY")


async def test_whoever_lost_the_worktree_writes_and_runs_nothing(
    context: Context, workspace: Path, tmp_path: Path
) -> None:
    needs_sandbox(context)
    lock = WorktreeLock(tmp_path / "locks", "t", 1)
    await lock.take()
    held = replace(context, worktree=TaskWorktree(lock))
    await call(held, "create_file", path="x", content="1")
    assert (await call(held, "bash", command="echo 2 >> x"))["exit_code"] == 0
    await WorktreeLock(tmp_path / "locks", "t", 2).take()
    for name, arguments in (
        ("create_file", {"path": "x", "content": "late"}),
        ("str_replace", {"path": "x", "old_str": "1", "new_str": "late"}),
        ("bash", {"command": "echo late > x"}),
    ):
        with pytest.raises(Fenced):
            await call(held, name, **arguments)
    assert (workspace / "x").read_text() == "12\n"


async def test_a_turn_without_a_task_has_nothing_to_change(context: Context, workspace: Path) -> None:
    reading = Context("a", "s", "t", cast(Store, None), roots={"shop": Root("shop", workspace)})
    with pytest.raises(ToolError, match="no workspace"):
        await call(reading, "create_file", path="x", content="x")


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("pytest", True), ("python -m pytest -q tests", True), (".venv/bin/pytest", True),
        ("cd web && npm test", True),
        ("CI=1 npm run lint", True), ("uv run ruff check .", True), ("make test", True),
        ("go test ./...", True),
        ("pytest || true", False), ("pytest; true", False), ("pytest | tail", False), ("pytest &", False),
        ("echo pytest", False), ("pytest --version", False), ("true # pytest", False), ("ls", False),
        ("pytest\ntrue", False), ("pytest --collect-only", False), ("echo $(pytest)", False),
    ],
)  # fmt: skip
def test_only_a_check_by_itself_is_proof(command: str, expected: bool) -> None:
    assert coding.is_check(command) is expected


def test_the_registry_shows_four_tools_with_effects_and_details() -> None:
    tools = {tool.name: tool for tool in REGISTRY}
    assert {name: tool.effect for name, tool in tools.items()} == {
        "create_file": "idempotent", "str_replace": "once", "view": "pure", "bash": "once",
    }  # fmt: skip
    assert tools["bash"].detail({"command": "ls -l\nrm x"}) == "ls -l\nrm x"
    assert tools["create_file"].detail({"path": "a/b"}) == "a/b"
    assert tools["bash"].schema["required"] == ["command"]
