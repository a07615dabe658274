"""Files that hold secrets: shown by no tool without permission, found by no search, taken into no commit of ours."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from shared.guard.git.commands import Git
from shared.guard.permissions import secret_files
from shared.guard.permissions.presets import preset
from shared.guard.sandbox.sandbox import Sandbox
from shared.store.sqlite import SqliteStore
from tests.attacks.ground import Ground, git
from tests.support.guards import guarded
from tests.support.sqlite import store
from tests.tools.bench import Bench

__all__ = ["store"]

SECRET = "hunter2-51c0ffee"
KEY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
PEM = f"-----BEGIN PRIVATE KEY-----\n{KEY}\n-----END PRIVATE KEY-----\n"
AUTHOR = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")


@pytest.fixture
def workspace(workspace: Path) -> Path:
    (workspace / ".env").write_text(f"TOKEN={SECRET}\n")
    (workspace / "id_rsa").write_text(PEM)
    (workspace / "sub").mkdir()
    (workspace / "sub" / "prod.env").write_text(f"TOKEN={SECRET}\n")
    (workspace / "notes.txt").write_text(f"line\n{PEM}end\n")
    (workspace / "harmless").symlink_to(".env")
    return workspace


@pytest.fixture
def bench(store: SqliteStore, tmp_path: Path, strongest: Sandbox) -> Bench:
    return Bench(store, tmp_path / "home", strongest)


def tracked(workspace: Path) -> None:
    """A person has given the file to git."""
    git(workspace, "add", "-f", ".env")
    git(workspace, *AUTHOR, "commit", "-qm", "x")


CALLS = [
    ("read_file", {"path": ".env"}),
    ("read_file", {"path": "workspace/sub/../.env"}),
    ("read_file", {"path": "harmless"}),
    ("view", {"path": ".env"}),
    ("view", {"path": "harmless"}),
    ("grep", {"pattern": "TOKEN"}),
    ("grep", {"pattern": "TOKEN", "path": ".env"}),
    ("grep", {"pattern": "TOKEN", "path": "sub"}),
    ("search_files", {"pattern": "TOKEN", "path": "harmless"}),
    ("find_symbols", {"path": ".env"}),
    (
        "report_findings",
        {"confidence": 1, "findings": [{"repo": "workspace", "file": ".env", "line": 1, "text": "x", "claim": "x"}]},
    ),
]  # fmt: skip


@pytest.mark.parametrize("profile", ["standard", "builder", "guarded", "locked"])
@pytest.mark.parametrize(("tool", "arguments"), CALLS)
async def test_no_tool_tells_what_stands_in_them(
    workspace: Path, strongest: Sandbox, tool: str, arguments: dict[str, object], profile: str
) -> None:
    ground = Ground(workspace, preset(profile, confined=True), strongest)
    assert SECRET not in str(await ground.call(tool, **arguments))


@guarded("secret-files")
async def test_reading_one_is_asked_for(workspace: Path, strongest: Sandbox) -> None:
    ground = Ground(workspace, preset("standard"), strongest)
    assert SECRET not in str(await ground.call("read_file", path=".env"))


@guarded("secret-files")
async def test_a_link_to_one_tells_nothing(workspace: Path, strongest: Sandbox) -> None:
    ground = Ground(workspace, preset("open"), strongest)
    assert SECRET not in str(await ground.call("read_file", path="harmless"))


@guarded("secret-files")
async def test_a_search_passes_over_them(workspace: Path, strongest: Sandbox) -> None:
    ground = Ground(workspace, preset("open"), strongest)
    assert SECRET not in str(await ground.call("grep", pattern="TOKEN"))


async def test_a_search_says_what_it_passed_over_and_not_whether_it_would_match(
    workspace: Path, strongest: Sandbox
) -> None:
    ground = Ground(workspace, preset("open"), strongest)
    for pattern in ("TOKEN", "surely nowhere"):
        told = await ground.call("grep", pattern=pattern)
        assert "workspace/.env" in told["not_searched"] and "permission" in told["why_not"]
    assert "not_searched" not in await ground.call("grep", pattern="TOKEN", path=".env")
    assert "not_searched" not in await ground.call("grep", pattern="x", path="src")
    assert "workspace/.env" in (await ground.call("search_files", pattern="x"))["not_searched"]


async def test_with_leave_they_are_read(workspace: Path, strongest: Sandbox) -> None:
    ground = Ground(workspace, preset("open"), strongest)
    assert SECRET in str(await ground.call("read_file", path=".env"))
    assert SECRET in str(await ground.call("grep", pattern="TOKEN", path=".env"))


@guarded("secret-files")
async def test_a_private_key_in_another_file_is_left_out(workspace: Path, strongest: Sandbox) -> None:
    ground = Ground(workspace, preset("standard"), strongest)
    for tool, arguments in (
        ("read_file", {"path": "notes.txt"}), ("view", {"path": "notes.txt"}), ("grep", {"pattern": "MII"}),
        ("grep", {"pattern": "BEGIN", "context": 2}),
    ):  # fmt: skip
        assert KEY not in str(await ground.call(tool, **arguments)), tool


async def test_what_shows_how_one_looks_is_read_as_ever(workspace: Path, strongest: Sandbox) -> None:
    (workspace / ".env.example").write_text("TOKEN=put yours here\n")
    ground = Ground(workspace, preset("standard"), strongest)
    assert "put yours" in str(await ground.call("read_file", path=".env.example"))


@guarded("secret-files")
async def test_a_diff_tells_nothing_of_them(workspace: Path, strongest: Sandbox) -> None:
    tracked(workspace)
    (workspace / ".env").write_text(f"TOKEN={SECRET}-new\n")
    (workspace / "f").write_text("changed again\n")
    told = await Ground(workspace, preset("standard"), strongest).call("git_diff")
    assert SECRET not in str(told)
    assert "changed again" in str(told)
    assert told["left_out"] == [".env: it holds secrets"]


@guarded("secret-files")
async def test_a_commit_does_not_take_them_in(workspace: Path, strongest: Sandbox) -> None:
    (workspace / ".promptdock").mkdir()
    (workspace / ".promptdock" / "promptdock.db").write_text("x")
    (workspace / ".npmrc").write_text("//registry.invalid/:_authToken=abcdef\n")
    made = Git(workspace, strongest)
    await made.commit_all("All of it", step="s1")
    taken = git(workspace, "show", "--name-only", "--format=", "HEAD").split()
    assert set(taken) == {"f", "harmless"}
    assert set(made.left_out.secrets) == {
        *(".env", "id_rsa", "sub/prod.env", "notes.txt", ".npmrc", ".promptdock/promptdock.db"),
    }  # fmt: skip


async def test_what_git_has_already_stays_in_it(workspace: Path, strongest: Sandbox) -> None:
    tracked(workspace)
    (workspace / ".env").write_text("TOKEN=another\n")
    assert await Git(workspace, strongest).commit_all("Change it", step="s1")
    assert ".env" in git(workspace, "show", "--name-only", "--format=", "HEAD").split()


async def test_a_tool_that_commits_says_what_it_left_out(bench: Bench) -> None:
    shop = await bench.linked("shop")
    (shop / ".env").write_text(f"TOKEN={SECRET}\n")
    told = await bench.ok("git_commit", message="x")
    assert not told["committed"] and ".env" in told["left_out"][0]


@guarded("secret-files")
async def test_a_command_in_a_checkout_sees_none_that_git_does_not_have(bench: Bench) -> None:
    if bench.repos.sandbox.mode != "bwrap":
        pytest.skip("only bubblewrap can leave a file out")
    shop = await bench.linked("shop")
    (shop / ".env").write_text(f"TOKEN={SECRET}\n")
    told = await bench.ok("run_command", command="cat .e*; ls -a", working_dir="shop")
    assert SECRET not in told["stdout"] and ".env" in told["stdout"]
    assert told["returncode"] == 0


async def test_a_command_that_names_one_and_was_allowed_sees_it(bench: Bench) -> None:
    shop = await bench.linked("shop")
    (shop / ".env").write_text(f"TOKEN={SECRET}\n")
    assert SECRET in (await bench.ok("run_command", command="cat .env", working_dir="shop"))["stdout"]


@pytest.mark.parametrize(
    "name", [".env", "a/.ENV.local", "x/id_ed25519", "certs/server.key", ".aws/credentials"]
)
def test_the_list_knows_it(name: str) -> None:
    assert secret_files.is_secret(name)


@pytest.mark.parametrize(
    "name", [".env.example", "id_rsa.pub", "src/keys.py", "environment.env.ts", "monkey"]
)
def test_the_list_lets_it_be(name: str) -> None:
    assert not secret_files.is_secret(name)


def test_where_a_diff_was_cut_the_rest_of_an_unknown_file_is_left_out() -> None:
    diff = f"diff --git a/a b/a\n+one\n[… 9 bytes left out …]\n+TOKEN={SECRET}\ndiff --git a/b b/b\n+two\n"
    text, _ = secret_files.without(diff, doubt=True)
    assert SECRET not in text and "+one" in text and "+two" in text


async def test_looking_for_them_is_bounded(tmp_path: Path) -> None:
    deep = tmp_path
    for number in range(8):
        deep = deep / str(number)
    deep.mkdir(parents=True)
    (deep / ".env").write_text("x")
    assert await asyncio.to_thread(secret_files.untracked, tmp_path) == []
