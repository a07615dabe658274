"""Tools of category git that read: log, diff, status, changed files; of category history: who wrote a line.

What comes back was written by others, and is marked so: `"source": "repository"`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Annotated, Any

from pydantic import Field

from shared.errors import PromptDockError
from shared.guard.files.jail import Jail
from shared.guard.git.commands import Git
from shared.guard.permissions.secret_files import SHOWN, is_secret
from shared.guard.permissions.touching import touching
from shared.tools import checkouts
from shared.tools.categories import tier
from shared.tools.context import Context, Root
from shared.tools.git.diffs import without_secrets
from shared.tools.paths import checked, full, locate, own
from shared.tools.registry import Category, Result

category = tier("git")
history = Category("history", "Find out who wrote a line, when, and with what commit")

TEXT = 100_000  # bytes of a diff that are shown: what a model can still use
FILES = 2000
_SOURCE: Result = {"source": "repository"}  # what comes back was written by others
RECENT = 5  # commits that a status shows

LineNumber = Annotated[int, Field(ge=1)]


def _detail(arguments: dict[str, Any]) -> str:
    named = (arguments.get(name) for name in ("path", "workspace", "repo_id", "project_id"))
    return str(next(filter(None, named), ""))


@category.tool(effect="pure", detail=_detail, touches=touching("files"))
@checkouts.wherever
async def get_git_status(
    context: Context, project_id: str = "", workspace: str = "", repo_id: str = ""
) -> Result:
    """Get the git status of a project's repositories: branch, what is not committed, the newest commits."""
    context, roots = await _meant(context, project_id, workspace, repo_id)
    return {"repos": [await _status(context, root) for root in roots], "source": "repository"}


async def _meant(
    context: Context, project_id: str, workspace: str, repo_id: str
) -> tuple[Context, list[Root]]:
    """The one root that a call names, else all of the project."""
    workspace = await checkouts.named(context, workspace or repo_id, project_id)
    context, _ = await checkouts.opened(context, "", project_id, repo_id, wanted=workspace)
    if workspace or project_id in context.roots or len(context.roots) < 2:
        return context, [locate(context, project_id, workspace)[0]]
    own(context, project_id)
    return context, list(context.roots.values())


async def _each(roots: list[Root], read: Callable[[Root], Awaitable[Result]]) -> Result:
    """What is read of each of several repositories; one that cannot be read says why."""
    results: list[Result] = []
    for root in roots:
        try:
            results.append(await read(root))
        except PromptDockError as error:
            results.append({"workspace": root.name, "error": str(error)})
    return {"repos": results, "source": "repository"}


async def _status(context: Context, root: Root) -> dict[str, Any]:
    git = checkouts.checkout(context, root)
    try:
        changes = await git.status()
        commits = await git.log(RECENT) if await git.head() else []
        result: dict[str, Any] = {
            "repo_id": root.name,
            "path": root.name,
            "branch": await git.branch(),
            "commit": await git.head(),
            "clean": not changes,
            "status": "\n".join(f"{change.code} {change.path}" for change in changes[:FILES]),
            "recent_commits": [f"{commit.sha[:12]} {commit.subject}" for commit in commits],
        }
    except PromptDockError as error:
        return {"repo_id": root.name, "error": str(error)}
    return result | ({"truncated": True} if len(changes) > FILES else {})


@category.tool(effect="pure", detail=_detail, touches=touching("files"))
@checkouts.wherever
async def git_log(
    context: Context,
    project_id: str = "",
    count: Annotated[int, Field(ge=1, le=200)] = 10,
    workspace: str = "",
    path: str = "",
    repo_id: str = "",
) -> Result:
    """Show recent git commits of a project's repositories, or those that changed a file or folder (`path`)."""

    async def log(root: Root, inner: str = "") -> Result:
        git = checkouts.checkout(context, root)
        commits = await git.log(count, _inside(root, inner))
        entries = [asdict(commit) for commit in commits]
        return {"workspace": root.name, "branch": await git.branch(), "log": entries}

    if not path:
        context, roots = await _meant(context, project_id, workspace, repo_id)
        return await _each(roots, log) if len(roots) > 1 else await log(roots[0]) | _SOURCE
    context, root, inner = await checkouts.root(context, project_id, workspace, repo_id, path)
    return await log(root, inner) | _SOURCE


@category.tool(effect="pure", detail=_detail, touches=touching("files", path=SHOWN))
@checkouts.wherever
async def git_diff(
    context: Context,
    project_id: str = "",
    base_branch: str = "",
    workspace: str = "",
    path: str = "",
    repo_id: str = "",
) -> Result:
    """Show the git diff for a project's repositories against a base branch, else what is not committed."""
    most, base = TEXT, base_branch or "HEAD"

    async def diff(root: Root, inner: str = "") -> Result:
        git = checkouts.checkout(context, root)
        text = await git.diff(base, _inside(root, inner), limit=most)
        answer: Result = {"workspace": root.name, "base_branch": base}
        answer |= {"truncated": True} if len(text.encode()) > most else {}
        return answer | ({"diff": text} if is_secret(inner) else await without_secrets(git, text, base))

    if not path:
        context, roots = await _meant(context, project_id, workspace, repo_id)
        most = TEXT // len(roots)
        return await _each(roots, diff) if len(roots) > 1 else await diff(roots[0]) | _SOURCE
    context, root, inner = await checkouts.root(context, project_id, workspace, repo_id, path)
    return await diff(root, inner) | _SOURCE


@category.tool(effect="pure", detail=_detail, touches=touching("files"))
@checkouts.wherever
async def git_changed_files(
    context: Context, project_id: str = "", base_branch: str = "", workspace: str = "", repo_id: str = ""
) -> Result:
    """List files changed compared to a base branch (by default the repository's default branch)."""
    context, root, _ = await checkouts.root(context, project_id, workspace, repo_id)
    git = checkouts.checkout(context, root)
    base = base_branch or await _base(git)
    files = await git.changed_files(base)
    answer: Result = {
        "workspace": root.name,
        "base_branch": base,
        "files": files[:FILES],
        "count": len(files),
        "source": "repository",
    }
    return answer | {"truncated": True} if len(files) > FILES else answer


@history.tool(effect="pure", detail=_detail, touches=touching("files", path=SHOWN))
@checkouts.wherever
async def git_blame(
    context: Context, path: str, line_start: LineNumber = 1, line_end: LineNumber | None = None
) -> Result:
    """Show who wrote the lines of a file, when, and in which commit (200 lines without `line_end`)."""
    context, root, inner = await checkouts.root(context, path=path)
    git = checkouts.checkout(context, root)
    last = line_end or line_start + 199
    text = await git.blame(_inside(root, inner), line_start, last, limit=TEXT)
    return {"path": full(root, inner), "blame": text, "source": "repository"}


def _inside(root: Root, inner: str) -> str:
    """The path for git; ToolError for one that breaks the workspace's rules. It need not exist any more."""
    if inner:
        Jail(root.path).exists(checked(root, inner))
    return inner


async def _base(git: Git) -> str:
    """The default branch, here or as the remote had it; HEAD where there is neither."""
    name = await git.default_branch()
    for ref in (name, f"origin/{name}"):
        if name and await git.commit_of(ref):
            return ref
    return "HEAD"
