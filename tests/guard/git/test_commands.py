"""git, hardened: what a repository or a caller says never runs anything, and what we ask for works."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from shared.errors import ToolError
from shared.guard.files.git_folder import layout
from shared.guard.git.commands import STEP, Git, check_commit, check_ref, check_remote
from shared.guard.git.runner import GitRunner
from shared.guard.sandbox.addresses import LOCAL
from shared.guard.sandbox.sandbox import Sandbox
from tests.guard.conftest import sandbox

OPEN = Sandbox("none", "as if there were no sandbox")


def plain(folder: Path, *arguments: str) -> str:
    """git as anybody runs it, to prepare and to look."""
    author = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    done = subprocess.run(
        ["git", *author, *arguments], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture(params=["bwrap", "landlock", "none"])
def around(request: pytest.FixtureRequest) -> Sandbox:
    return OPEN if request.param == "none" else sandbox(str(request.param))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    plain(folder, "init", "-q", "-b", "main")
    (folder / "a.txt").write_text("one\ntwo\n")
    (folder / ".gitignore").write_text("*.log\n")
    plain(folder, "add", ".")
    plain(folder, "commit", "-q", "-m", "first")
    return folder


@pytest.mark.parametrize(
    "name",
    [
        "--output=/tmp/x", "--exec=touch C", "--open-files-in-pager=x", "-x", "a..b", "a b", "HEAD",
        "@", "a@{1}",
        "a~1", "a^", "a:b", "a?", "a*", "a[", "a\\b", "/a", "a/", "a//b", ".a", "a/.b", "a.lock",
        "a.lock/b", "a.",
        "", "a\n", "a\0b", "a\x7f", "main\u202e", "\U000e0041x", "\ud800", "x" * 300,
    ],
)  # fmt: skip
def test_what_is_no_branch_name_never_reaches_git(name: str) -> None:
    with pytest.raises(ToolError):
        check_ref(name)
    if "~" not in name and "^" not in name and name != "HEAD":
        with pytest.raises(ToolError):
            check_commit(name)


@pytest.mark.parametrize(
    "name", ["main", "promptdock/add-login-3", "feature/ümlaut", "v1.2.3", "a@b", "refs/heads/x"]
)
def test_ordinary_branch_names_pass(name: str) -> None:
    assert check_ref(name) == name
    assert check_commit(f"{name}~3^2") and check_commit("HEAD^") and check_commit("HEAD")


@pytest.mark.parametrize(
    "url",
    [
        "", "-oProxyCommand=x", "--upload-pack=touch C", "ext::sh -c 'touch% C'", "ext::sh", "fd::17", "a::b",
        "ssh://-oProxyCommand=touch C/x", "ssh://-oProxyCommand=x/y", "ssh://-l@host/x", "ssh://user@-host/x",
        "file:///etc", "/etc", "../x", ".", "C:/x y", "https://127.0.0.1:6379/", "https://localhost/x",
        "https://LOCALHOST./x", "https://a.localhost/x", "https://[::1]/x", "https://[::ffff:127.0.0.1]/x",
        "https://2130706433/x", "https://0x7f.1/x", "https://127.1/x", "https://0/x", "https://0.0.0.0/x",
        "git://169.254.169.254/", "http://[fe80::1]/", "http://metadata.google.internal/x", "git@127.0.0.1:x",
        "git@localhost:x", "https://user:pass@example.org/x", "https://ghp_token@example.org/x", "-u@host:x",
        "https:///x", "https://exa mple.org/x", "https://example.org/x\n", "gopher://example.org/x",
        "https://a%2fb/x",
        "https://example.org:99999/x", "javascript://x", "ftp://example.org/x", "https://example.org\u202e/x",
    ],
)  # fmt: skip
def test_a_hostile_remote_is_refused_without_showing_a_password(url: str) -> None:
    with pytest.raises(ToolError) as caught:
        check_remote(url)
    assert "pass" not in str(caught.value).replace("password", "") and "ghp_" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/a/b.git", "ssh://git@example.org:2222/a/b", "git@example.org:a/b.git",
        "https://93.184.216.34/a", "git@[2606:4700::1]:a/b", "http://git.internal:8080/x", "host:path/x",
    ],
)  # fmt: skip
def test_ordinary_remotes_pass(url: str) -> None:
    assert check_remote(url) == url


def test_places_of_this_machine_pass_only_where_a_person_gave_them() -> None:
    for url in ("/srv/x.git", "file:///srv/x.git", "http://127.0.0.1:3000/x"):
        assert check_remote(url, LOCAL) == url
    for url in ("ext::sh", "-x", "ssh://-oX/x"):
        with pytest.raises(ToolError):
            check_remote(url, LOCAL)


async def test_asking_tells_what_plain_git_tells(around: Sandbox, repository: Path) -> None:
    git = Git(repository, around)
    assert git.is_repo() and not Git(repository.parent, around).is_repo()
    assert await git.head() == plain(repository, "rev-parse", "HEAD")
    assert await git.branch() == "main" and await git.branches() == ["main"]
    [commit] = await git.log()
    assert (commit.author, commit.subject) == ("Ann <ann@example.org>", "first")
    assert "+two" in await git.show() and await git.file("HEAD", "a.txt") == "one\ntwo\n"
    (repository / "a.txt").write_text("one\nzwei\n")
    (repository / "new ü\nfile").write_text("")
    (repository / "x.log").write_text("")
    assert "+zwei" in await git.diff() and "a.txt" in await git.diff_stat()
    assert await git.changed_files() == ["a.txt", "new ü\nfile"]
    assert {(c.code, c.path) for c in await git.status()} == {(" M", "a.txt"), ("??", "new ü\nfile")}
    assert "Ann" in await git.blame("a.txt", 1, 1)
    assert await git.log(path="nothing") == [] and await git.commit_of("nothing") == ""
    with pytest.raises(ToolError, match="no commit"):
        await git.diff("nothing")


async def test_an_empty_repository_is_no_error(around: Sandbox, tmp_path: Path) -> None:
    git = Git(tmp_path / "new", around)
    await git.init()
    assert git.is_repo() and await git.head() == "" and await git.branch() == "main"
    (tmp_path / "new" / "a").write_text("x")
    sha = await git.commit_all("start", "s1")
    assert sha and await git.head() == sha


async def test_a_step_is_committed_once_under_its_agents_name(around: Sandbox, repository: Path) -> None:
    git = Git(repository, around)
    assert await git.commit_all("nothing", "t1:0") is None
    (repository / "b.txt").write_text("b")
    first = await git.commit_all(f"Add b\n\n{STEP}: t1:2\nmore", "t1:1", "backend")
    assert first and plain(repository, "log", "-1", "--format=%an <%ae>") == (
        "PromptDock backend <backend@promptdock.invalid>"
    )
    assert f"{STEP}: t1:1" in plain(repository, "log", "-1", "--format=%B")
    (repository / "c.txt").write_text("c")
    assert await git.commit_all("Add b", "t1:1", "backend") == first
    second = await git.commit_all("Add c", "t1:2", "backend")
    assert second not in (None, first), "a mark in the text of another commit was believed"
    assert await git.commit_all("Add c", "t1:2", "backend") == second
    assert plain(repository, "rev-list", "--count", "HEAD") == "3" and await git.status() == []
    with pytest.raises(ToolError):
        await git.commit_all("x", "a b\n")


async def test_a_repository_that_names_somebody_has_that_one_as_the_committer(
    around: Sandbox, repository: Path
) -> None:
    form = "--format=%an <%ae>, %cn <%ce>"
    ours = "PromptDock backend <backend@promptdock.invalid>"
    laid(repository, "b.txt")
    plain(repository, "config", "user.name", "Eve")
    assert await Git(repository, around).commit_all("Half a name", "s0", "backend")
    assert plain(repository, "log", "-1", form) == f"{ours}, {ours}"
    plain(repository, "config", "user.email", "eve@example.org")
    laid(repository, "c.txt")
    assert await Git(repository, around).commit_all("Work", "s1", "backend")
    assert plain(repository, "log", "-1", form) == f"{ours}, Eve <eve@example.org>"
    laid(repository, "d.txt")
    assert await Git(repository, around).commit_all("Work", "s2", "person")
    assert plain(repository, "log", "-1", form) == "Eve <eve@example.org>, Eve <eve@example.org>"


async def test_branches_and_worktrees_leave_the_main_checkout_alone(
    around: Sandbox, repository: Path, tmp_path: Path
) -> None:
    git = Git(repository, around)
    head = await git.head()
    await git.worktree_add(tmp_path / "trees" / "t", "promptdock/t", head)
    tree = Git(tmp_path / "trees" / "t", around)
    (tree.path / "a.txt").write_text("changed\n")
    assert await tree.commit_all("Change", "s") and await tree.branch() == "promptdock/t"
    assert (
        await git.head() == head
        and await git.status() == []
        and (repository / "a.txt").read_text() == "one\ntwo\n"
    )
    assert await git.changed_files(head, "promptdock/t") == ["a.txt"]
    (tree.path / "left").write_text("x")
    with pytest.raises(ToolError):
        await git.worktree_remove(tree.path)
    await git.worktree_remove(tree.path, force=True)
    assert not tree.path.exists()
    with pytest.raises(ToolError, match="no worktree"):
        await git.worktree_remove(repository, force=True)
    assert (repository / "a.txt").exists()
    with pytest.raises(ToolError):
        await git.delete_branch("promptdock/t")
    await git.delete_branch("promptdock/t", force=True)
    await git.create_branch("other")
    await git.switch("other")
    assert await git.branches() == ["main", "other"] and await git.branch() == "other"


def tracked(folder: Path) -> set[bytes]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=folder, capture_output=True, check=True).stdout
    return set(listed.split(b"\0"))


async def test_names_of_any_bytes_are_committed_and_inner_repositories_are_left_alone(
    around: Sandbox, repository: Path
) -> None:
    names = [b"bad\xff", "ü".encode(), b"*", b":(exclude)a", b"-f", b"new\nline", b" lead"]
    for name in names:
        (repository / os.fsdecode(name)).write_text("x")
    (repository / "a.txt").unlink()
    (repository / "dead").symlink_to("nowhere")
    (repository / "up").symlink_to("..")
    (repository / "inner").mkdir()
    plain(repository / "inner", "init", "-q")
    plain(repository / "inner", "commit", "-q", "--allow-empty", "-m", "x")
    git = Git(repository, around)
    assert await git.commit_all("All", "s")
    assert tracked(repository) == {*names, b"dead", b"up", b".gitignore", b""}
    assert [change.path for change in await git.status()] == ["inner/"]
    assert await git.commit_all("Again", "s2") is None


def poison_config(key: str, value: str) -> Callable[[Path, Path], None]:
    return lambda repository, _: (plain(repository, "config", key, value), None)[1]


HOOKS = (
    *("pre-commit", "post-checkout", "post-commit", "reference-transaction", "prepare-commit-msg"),
    *("commit-msg", "post-index-change", "pre-push", "post-merge", "fsmonitor-watchman"),
)


def poison_hooks(repository: Path, script: Path) -> None:
    for name in HOOKS:
        hook = repository / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(script.read_text())
        hook.chmod(0o755)


def poison_hooks_path(repository: Path, script: Path) -> None:
    poison_hooks(repository, script)
    (repository / ".git" / "hooks").rename(repository / "husky")
    plain(repository, "config", "core.hooksPath", "husky")


def poison_nested(repository: Path, script: Path) -> None:
    nested = repository / "nested"
    nested.mkdir()
    plain(nested, "init", "-q")
    (nested / "f").write_text("x")
    plain(nested, "add", ".")
    plain(nested, "commit", "-q", "-m", "x")
    plain(repository, "add", "nested")
    (repository / ".gitmodules").write_text(
        '[submodule "nested"]\n path = nested\n url = ./x\n ignore = none\n'
    )
    (nested / ".gitattributes").write_text("* filter=evil\n")
    plain(nested, "config", "filter.evil.clean", str(script))
    plain(nested, "config", "core.fsmonitor", str(script))
    (nested / "f").write_text("y")


def poison_bare(repository: Path, script: Path) -> None:
    bare = repository / "bare"
    plain(repository, "init", "-q", "--bare", str(bare))
    plain(bare, "config", "core.fsmonitor", str(script))
    plain(bare, "config", "core.worktree", str(repository))


def poison_worktree_config(repository: Path, script: Path) -> None:
    plain(repository, "config", "extensions.worktreeConfig", "true")
    plain(repository, "config", "--worktree", "core.fsmonitor", str(script))


def poison_include(repository: Path, script: Path) -> None:
    (repository / "more").write_text(f"[core]\n fsmonitor = {script}\n")
    plain(repository, "config", "include.path", "../more")


KEYS = [
    "core.fsmonitor", "core.sshCommand", "core.editor", "core.pager", "core.askPass", "core.gitProxy",
    "core.alternateRefsCommand", "core.worktree", "filter.evil.clean", "filter.evil.smudge",
    "filter.evil.process",
    "diff.external", "diff.evil.command", "diff.evil.textconv", "merge.evil.driver", "gpg.program",
    "gpg.ssh.program", "gpg.ssh.defaultKeyCommand", "alias.status", "alias.x", "credential.helper",
    "credential.https://example.org.helper", "remote.origin.uploadpack", "remote.origin.receivepack",
    "remote.origin.vcs", "url.ext::sh.insteadOf", "protocol.ext.allow", "pager.log", "sequence.editor",
    "uploadpack.packObjectsHook", "includeIf.gitdir:/.path", "difftool.x.cmd", "mergetool.x.cmd",
    "browser.x.cmd",
    "man.x.cmd", "web.browser", "sendemail.smtpserver", "instaweb.httpd", "tar.zip.command",
    "trailer.x.command",
    "trailer.x.cmd", "interactive.diffFilter", "init.templateDir", "safe.directory", "hook.x.command",
    "odd.key",
    "http.proxy", "http.cookieFile", "imap.tunnel", "svn-remote.x.url",
]  # fmt: skip
HARMFUL = [key for key in KEYS if key not in ("init.templateDir", "safe.directory", "http.proxy")]
POISONS: dict[str, Callable[[Path, Path], None]] = {
    "hooks": poison_hooks,
    "core.hooksPath": poison_hooks_path,
    "nested repository": poison_nested,
    "nested bare repository": poison_bare,
    "worktree config": poison_worktree_config,
    "include.path": poison_include,
}


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A program that shows that it ran, both inside and beside the repository."""
    file = tmp_path / "evil.sh"
    file.write_text(f"#!/bin/sh\ntouch '{tmp_path}/CANARY' '{tmp_path}/repository/CANARY'; cat\n")
    file.chmod(0o755)
    return file


async def use_all(git: Git) -> list[str]:
    """Call everything that git does for us; what was refused comes back."""
    calls: list[Callable[[], Awaitable[object]]] = [
        git.status, git.diff, git.diff_stat, git.changed_files, git.show, git.log, git.head, git.branches,
        lambda: git.blame("a.txt", 1, 1), lambda: git.commit_all("x", "step"), lambda: git.create_branch("b"),
        lambda: git.worktree_add(git.path.parent / "t", "promptdock/t", "HEAD"), lambda: git.switch("b"),
        lambda: git.fetch(reach=LOCAL), lambda: git.push("main", reach=LOCAL),
    ]  # fmt: skip
    refusals = []
    for call in calls:
        try:
            await call()
        except ToolError as error:
            refusals.append(str(error))
    return refusals


def make_tempting(repository: Path) -> None:
    (repository / ".gitattributes").write_text("* filter=evil diff=evil merge=evil\n")
    (repository / "a.txt").write_text("changed\n")
    plain(repository.parent, "init", "-q", "--bare", "origin.git")
    plain(repository, "remote", "add", "origin", str(repository.parent / "origin.git"))


@pytest.mark.parametrize("poison", [*POISONS, *HARMFUL])
@pytest.mark.parametrize("mode", ["none", "bwrap"])
async def test_a_poisoned_repository_runs_nothing(
    repository: Path, script: Path, poison: str, mode: str
) -> None:
    make_tempting(repository)
    value = str(script)
    POISONS.get(poison, poison_config(poison, value))(repository, script)
    refusals = await use_all(Git(repository, OPEN if mode == "none" else sandbox(mode)))
    assert not (repository.parent / "CANARY").exists() and not (repository / "CANARY").exists()
    if poison in HARMFUL:
        assert refusals and all("not trusted" in told for told in refusals)
        assert poison.split(".")[0].lower() in refusals[0].lower(), "the key is not named"


async def test_a_remote_that_the_configuration_names_is_checked_too(repository: Path, script: Path) -> None:
    for url in (f"ext::{script} %S", "https://127.0.0.1:6379/x", "--upload-pack=x"):
        plain(repository, "config", "remote.origin.url", url)
        with pytest.raises(ToolError):
            await Git(repository, OPEN).fetch()
    assert not (repository.parent / "CANARY").exists()


async def test_an_ordinary_repositorys_configuration_is_trusted(repository: Path) -> None:
    entries = {
        "user.name": "Ann", "core.autocrlf": "input", "branch.main.remote": "origin", "pull.rebase": "true",
        "remote.origin.fetch": "+refs/heads/*:refs/remotes/origin/*", "submodule.lib.update": "checkout",
        "core.fsmonitor": "true", "lfs.url": "https://example.org", "gui.wmstate": "normal",
        "merge.ff": "only",
        "diff.algorithm": "histogram", "rerere.enabled": "true",
        "branch.main.vscode-merge-base": "origin/main",
    }  # fmt: skip
    for key, value in entries.items():
        plain(repository, "config", key, value)
    assert await Git(repository, OPEN).status() == []
    plain(repository, "config", "submodule.lib.update", "!touch CANARY")
    with pytest.raises(ToolError, match="submodule"):
        await Git(repository, OPEN).status()


async def test_a_changed_dot_git_file_does_not_lead_us_to_another_repository(
    repository: Path, tmp_path: Path, script: Path
) -> None:
    await Git(repository, OPEN).worktree_add(tmp_path / "t", "promptdock/t", "HEAD")
    tree = Git(tmp_path / "t", OPEN)
    evil = tmp_path / "evil"
    evil.mkdir()
    plain(evil, "init", "-q")
    plain(evil, "config", "core.fsmonitor", str(script))
    (tmp_path / "t" / ".git").write_text(f"gitdir: {evil}/.git\n")
    assert await tree.branch() == "promptdock/t"
    assert [change.path for change in await tree.status()] == []
    assert layout(tmp_path / "t") is None and not Git(tmp_path / "t", OPEN).is_repo()
    # Neither to a real worktree that is another one's, nor to a folder that only claims to be one.
    (tmp_path / "t" / ".git").write_text(f"gitdir: {repository}/.git/worktrees/t\n")
    (tmp_path / "u").mkdir()
    (tmp_path / "u" / ".git").write_text(f"gitdir: {repository}/.git/worktrees/t\n")
    assert layout(tmp_path / "t") and layout(tmp_path / "u") is None
    claims = evil / ".git" / "elsewhere" / "u"
    claims.mkdir(parents=True)
    (claims / "gitdir").write_text(f"{tmp_path}/u/.git\n")
    (claims / "commondir").write_text("../..\n")
    (tmp_path / "u" / ".git").write_text(f"gitdir: {claims}\n")
    assert layout(tmp_path / "u") is None
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / ".git").symlink_to(evil / ".git")
    assert layout(linked) is None
    assert not (tmp_path / "CANARY").exists()


def make_tree(folder: Path, entries: str) -> str:
    done = subprocess.run(
        ["git", "mktree"], cwd=folder, input=entries, text=True, capture_output=True, check=True
    )
    return done.stdout.strip()


async def test_a_file_below_a_linked_folder_is_not_checked_out_through_the_link(
    repository: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    blob = plain(repository, "hash-object", "-w", "a.txt")
    (tmp_path / "target").write_text(str(outside))
    link = plain(repository, "hash-object", "-w", str(tmp_path / "target"))
    below = make_tree(repository, f"100644 blob {blob}\tevil\n")
    made = make_tree(repository, f"120000 blob {link}\td\n040000 tree {below}\td\n")
    commit = plain(repository, "commit-tree", made, "-m", "x")
    with contextlib.suppress(ToolError):
        await Git(repository, OPEN).worktree_add(tmp_path / "t", "promptdock/t", commit)
    assert list(outside.iterdir()) == []


async def test_output_is_bounded_and_a_missing_git_is_said(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / "big").write_text("line\n" * 200_000)
    plain(repository, "add", ".")
    git = Git(repository, OPEN)
    assert len(await git.diff(limit=1000)) < 1100
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(ToolError):
        await Git(repository, Sandbox("refused", "")).status()


async def test_a_mirror_is_fetched_without_touching_our_branches(
    around: Sandbox, repository: Path, tmp_path: Path
) -> None:
    mirror = Git(tmp_path / "mirror.git", around)
    with pytest.raises(ToolError):
        await mirror.mirror(str(repository))
    await mirror.mirror(str(repository), reach=LOCAL)
    assert await mirror.default_branch() == "main"
    first = await mirror.commit_of("refs/remotes/origin/main")
    await mirror.create_branch("promptdock/t", first)
    (repository / "b").write_text("b")
    plain(repository, "add", ".")
    plain(repository, "commit", "-q", "-m", "second")
    plain(repository, "branch", "promptdock/t")
    await mirror.fetch(reach=LOCAL)
    assert await mirror.commit_of("refs/remotes/origin/main") == plain(repository, "rev-parse", "HEAD")
    assert await mirror.commit_of("promptdock/t") == first
    await mirror.create_branch("promptdock/u", first)
    await mirror.push("promptdock/u", reach=LOCAL)
    assert plain(repository, "rev-parse", "promptdock/u") == first
    # The remote's branch of that name went another way: it stays, and ours is refused.
    with pytest.raises(ToolError, match="push"):
        await mirror.push("promptdock/t", reach=LOCAL)
    assert plain(repository, "rev-parse", "promptdock/t") == plain(repository, "rev-parse", "main")


async def test_what_git_complains_of_is_told_whole_with_what_it_asks_for(repository: Path) -> None:
    plain(repository, "switch", "-q", "-c", "feature")
    (repository / "new.txt").write_text("theirs\n")
    plain(repository, "add", ".")
    plain(repository, "commit", "-q", "-m", "new")
    plain(repository, "switch", "-q", "main")
    (repository / "new.txt").write_text("mine\n")
    with pytest.raises(ToolError) as told:
        await GitRunner(repository, OPEN)._git("merge", "feature")
    assert told.value.what == "git merge failed"
    assert told.value.why == (
        "error: The following untracked working tree files would be overwritten by merge: new.txt"
    )
    assert told.value.fix == "move or remove them before you merge"


async def test_a_long_complaint_of_git_is_cut_and_says_so(repository: Path) -> None:
    plain(repository, "switch", "-q", "-c", "feature")
    for number in range(20):
        (repository / f"new-{number:02}.txt").write_text("theirs\n")
    plain(repository, "add", ".")
    plain(repository, "commit", "-q", "-m", "new")
    plain(repository, "switch", "-q", "main")
    for number in range(20):
        (repository / f"new-{number:02}.txt").write_text("mine\n")
    with pytest.raises(ToolError) as told:
        await GitRunner(repository, OPEN)._git("merge", "feature")
    assert told.value.why.endswith("new-04.txt / and 15 lines more")


# What tools leave behind


LEFT = [
    "__pycache__/a.cpython-311.pyc", "src/__pycache__/b.pyc", ".pytest_cache/README.md", ".mypy_cache/x.json",
    ".ruff_cache/x", "node_modules/left/index.js", ".venv/bin/python", "shop.egg-info/PKG-INFO", ".coverage",
    "web/node_modules/x.js",
]  # fmt: skip


def laid(folder: Path, *names: str, data: bytes = b"x\n") -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


async def test_what_tools_leave_behind_is_not_committed(around: Sandbox, repository: Path) -> None:
    laid(repository, *LEFT, "src/b.py")
    git = Git(repository, around)
    assert await git.commit_all("Work", "s", written=())
    assert tracked(repository) == {b"a.txt", b".gitignore", b"src/b.py", b""}
    assert await git.status() == [] and not git.left_out
    laid(repository, "src/__pycache__/c.pyc")
    assert await git.commit_all("Nothing but byte code", "s2", written=()) is None


async def test_what_git_has_of_such_names_stays_ordinary_work(around: Sandbox, repository: Path) -> None:
    laid(repository, "node_modules/own/index.js", "kept/__pycache__/a.pyc", "build/rules.mk")
    plain(repository, "add", "--force", ".")
    plain(repository, "commit", "-q", "-m", "kept on purpose")
    laid(repository, "pyproject.toml", "kept/__pycache__/b.pyc", "dist/out.js")
    laid(repository, "node_modules/own/more.js", "build/more.mk", "kept/__pycache__/a.pyc", data=b"new\n")
    assert await Git(repository, around).commit_all("Work", "s", written=())
    assert plain(repository, "show", "--name-only", "--format=", "HEAD").split() == [
        "build/more.mk", "kept/__pycache__/a.pyc", "node_modules/own/more.js", "pyproject.toml",
    ]  # fmt: skip


async def test_a_repository_may_take_such_a_name_back(around: Sandbox, repository: Path) -> None:
    (repository / ".gitignore").write_text("!htmlcov/\n")
    laid(repository, "htmlcov/index.html")
    assert await Git(repository, around).commit_all("Work", "s", written=())
    assert b"htmlcov/index.html" in tracked(repository)


@pytest.mark.parametrize(
    ("beside", "left"),
    [
        ("Cargo.toml", "target/debug/x.txt"), ("sub/pom.xml", "sub/target/report.txt"),
        ("setup.py", "build/lib/a.py"), ("package.json", "dist/a.js"), ("App.csproj", "obj/a.json"),
    ],
)  # fmt: skip
async def test_a_folder_is_a_tools_where_its_makings_lie_beside_it(
    repository: Path, beside: str, left: str
) -> None:
    laid(repository, beside, left, f"elsewhere/{left}")
    git = Git(repository, OPEN)
    assert await git.commit_all("Work", "s", written=())
    assert os.fsencode(left) not in tracked(repository)
    assert os.fsencode(f"elsewhere/{left}") in tracked(repository)
    laid(repository, f"{left}.own")
    assert await git.commit_all("Written on purpose", "s2", written=[f"{left}.own"])
    assert os.fsencode(f"{left}.own") in tracked(repository)


async def test_a_folder_that_says_that_it_is_a_cache_is_one(repository: Path) -> None:
    laid(repository, "any/CACHEDIR.TAG", data=b"Signature: 8a477f597d28d172789f06886806bc55\n# x\n")
    laid(repository, "any/deep/x.txt", "env/lib/a.py", "env/pyvenv.cfg", "b.txt")
    laid(repository, "other/CACHEDIR.TAG", data=b"no signature\n")
    assert await Git(repository, OPEN).commit_all("Work", "s", written=())
    assert tracked(repository) == {b"a.txt", b".gitignore", b"b.txt", b"other/CACHEDIR.TAG", b""}


async def test_a_binary_that_a_command_made_is_named_instead_of_committed(repository: Path) -> None:
    laid(repository, "a.png", data=b"\x89PNG\0")
    plain(repository, "add", ".")
    plain(repository, "commit", "-q", "-m", "a picture")
    laid(repository, "b.png", "core", "written.bin", "sub/c.db", data=b"\x89\0\1")
    git = Git(repository, OPEN)
    assert await git.commit_all("Work", "s", written=["written.bin"])
    assert plain(repository, "show", "--name-only", "--format=", "HEAD").split() == ["b.png", "written.bin"]
    assert (
        git.left_out.binaries == ["core", "sub/c.db"] and "core: a command made it" in git.left_out.told()[0]
    )
    assert await git.commit_all("A person's own checkout", "s2")
    assert {b"core", b"sub/c.db"} <= tracked(repository) and not git.left_out
