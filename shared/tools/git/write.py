"""Tools of category git that change something: commit, pull, push, branches, merge, pull requests.

The older spellings of four tools stand at the end; they do the same and answer in their own words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from shared.errors import ToolError
from shared.guard.git.checkout import Checkout
from shared.guard.git.commands import check_ref
from shared.guard.permissions.touching import touching
from shared.store.records import Repo, Task, new_id
from shared.tools import checkouts
from shared.tools.categories import tier
from shared.tools.context import Context, Root
from shared.tools.git import pulls
from shared.tools.lookup import first
from shared.tools.registry import Result

category = tier("git")

RUNNING = ("ASSIGNED", "IN_PROGRESS")
CommitMessage = Annotated[str, Field(min_length=1, max_length=20_000)]
Branch = Annotated[str, Field(min_length=1, max_length=240)]


@dataclass(frozen=True)
class _Place:
    """One checkout that a call means, with git in it."""

    here: Context
    root: Root
    git: Checkout

    async def warning(self) -> Result:
        """That tasks are under way in this repository, where they are."""
        repo = await first(self.here.store, Repo, name=self.root.name)
        if repo is None:
            return {}
        found = await self.here.store.count(Task, {"repo_id": repo.id, "status": ("in", list(RUNNING))})
        return {"warning": f"{found} tasks are under way in this repository"} if found else {}


async def _place(
    here: Context, project_id: str, workspace: str, repo_id: str = "", *, change: bool = True
) -> _Place:
    here, root, _ = await checkouts.root(here, project_id, workspace, repo_id)
    return _Place(here, root, checkouts.checkout(here, root, change=change))


def _author(here: Context) -> str:
    return here.agent or "agent"


def _words(verb: str, *names: str) -> Any:
    """The detail of an action: `push origin main`."""

    def detail(arguments: dict[str, Any]) -> str:
        return " ".join([verb, *(str(arguments.get(name) or "") for name in names)]).strip()

    return detail


async def _can_push(
    here: Context,
    project_id: str = "",
    branch: str = "",
    workspace: str = "",
    repo_id: str = "",
    branch_name: str = "",
) -> None:
    """ToolError where there is no such branch, or no remote that takes it: nobody is asked for permission in vain."""
    at = await _place(here, project_id, workspace, repo_id, change=False)
    await at.git.can_push(branch or branch_name or await _current(at.git), reach=checkouts.reach(here))


async def _pushed(
    here: Context,
    project_id: str = "",
    branch: str = "",
    workspace: str = "",
    repo_id: str = "",
    branch_name: str = "",
) -> dict[str, str]:
    """Where a push goes, and with what."""
    at = await _place(here, project_id, workspace, repo_id, change=False)
    commit, changes = await at.git.outgoing(branch or branch_name or await _current(at.git))
    return {"address": await at.git.push_address(), "commit": commit, "changes": changes}


async def _pulled(
    here: Context, project_id: str = "", workspace: str = "", repo_id: str = "", **_more: Any
) -> dict[str, str]:
    """Where a pull gets its commits from, and what they are merged into."""
    at = await _place(here, project_id, workspace, repo_id, change=False)
    return {"address": await at.git.fetch_address(), "into": await at.git.head()}


async def _merged(
    here: Context,
    branch_name: str,
    project_id: str = "",
    default_branch: str = "",
    workspace: str = "",
    repo_id: str = "",
) -> dict[str, str]:
    """Both sides of a merge."""
    at = await _place(here, project_id, workspace, repo_id, change=False)
    into = default_branch or await checkouts.default_branch(at.here, at.root, at.git)
    ours, theirs = await at.git.commit_of(into), await at.git.commit_of(branch_name)
    changes = await at.git.amount(ours, theirs) if ours and theirs else ""
    return {"commit": theirs, "into": ours, "changes": changes}


async def _requested(
    here: Context,
    branch: str = "",
    project_id: str = "",
    workspace: str = "",
    repo_id: str = "",
    **_more: Any,
) -> dict[str, str]:
    """Where a pull request is made, and for what, as far as it is known here."""
    at = await _place(here, project_id, workspace, repo_id, change=False)
    commit, changes = await at.git.outgoing(branch or await _current(at.git))
    return {"address": await at.git.fetch_address(), "commit": commit, "changes": changes}


# The tools ----------------------------------------------------------------------------------------


@category.tool(effect="idempotent", detail=_words("commit"), touches=touching("files"))
async def git_commit(
    here: Context, message: CommitMessage, project_id: str = "", workspace: str = "", repo_id: str = ""
) -> Result:
    """Stage all changes and create a commit in a repository."""
    at = await _place(here, project_id, workspace, repo_id)
    sha = await _commit(at, message)
    left: Result = {"left_out": at.git.left_out.told()} if at.git.left_out else {}
    if sha is None:
        return {"committed": False, "message": "Nothing to commit: no file has changed"} | left
    return {
        "committed": True,
        "commit_message": message,
        "commit": sha,
        "branch": await at.git.branch(),
    } | left


@category.tool(
    effect="idempotent", detail=_words("pull origin", "branch"), binds=_pulled, touches=touching("address")
)
async def git_pull(
    here: Context, project_id: str = "", branch: str = "", workspace: str = "", repo_id: str = ""
) -> Result:
    """Pull (fetch + merge) a branch from the remote origin. On conflicts nothing is changed."""
    at = await _place(here, project_id, workspace, repo_id)
    name = check_ref(branch) if branch else await _current(at.git)
    conflicts = await at.git.pull(name, _author(here), checkouts.reach(here))
    if conflicts:
        return {"pulled": False, "branch": name, "conflicts": conflicts, "message": "nothing was changed"}
    return {"pulled": name, "branch": await at.git.branch(), "commit": await at.git.head()}


@category.tool(
    effect="idempotent",
    detail=_words("push origin", "branch"),
    ready=_can_push,
    binds=_pushed,
    touches=touching("address"),
)
async def git_push(
    here: Context, project_id: str = "", branch: str = "", workspace: str = "", repo_id: str = ""
) -> Result:
    """Push a branch to the remote origin, never by force."""
    return {"pushed": await _push(await _place(here, project_id, workspace, repo_id, change=False), branch)}


@category.tool(effect="idempotent", detail=_words("branch", "branch_name"), touches=touching("files"))
async def git_create_branch(
    here: Context, branch_name: Branch, project_id: str = "", workspace: str = "", repo_id: str = ""
) -> Result:
    """Create and switch to a new git branch in a repository."""
    at = await _place(here, project_id, workspace, repo_id)
    return {"created_branch": branch_name} | await _start(at, branch_name)


@category.tool(
    effect="idempotent", detail=_words("merge", "branch_name"), binds=_merged, touches=touching("merge")
)
async def git_merge(
    here: Context,
    branch_name: Branch,
    project_id: str = "",
    default_branch: str = "",
    workspace: str = "",
    repo_id: str = "",
) -> Result:
    """Merge a branch into the default branch. On conflicts nothing is changed."""
    at = await _place(here, project_id, workspace, repo_id)
    into, conflicts = await _merge(at, branch_name, default_branch)
    if conflicts:
        text = f"conflicts in {', '.join(conflicts[:20])}: the merge was taken back"
        return {"merged": False, "into": into, "message": text, "conflicts": conflicts}
    return {"merged": True, "branch": branch_name, "into": into, "commit": await at.git.head()}


@category.tool(
    effect="keyed", detail=_words("pr", "branch", "base"), binds=_requested, touches=touching("address")
)
async def git_create_pr(
    here: Context,
    title: Annotated[str, Field(min_length=1, max_length=300)],
    body: Annotated[str, Field(max_length=60_000)] = "",
    branch: str = "",
    base: str = "",
    project_id: str = "",
    workspace: str = "",
    repo_id: str = "",
) -> Result:
    """Create a GitHub pull request using the gh CLI. The branch has to be pushed before."""
    at = await _place(here, project_id, workspace, repo_id, change=False)
    head = branch or await _current(at.git)
    into = base or await checkouts.default_branch(at.here, at.root, at.git)
    url = await pulls.create(await at.git.remote_url(), title, body, head, into)
    for task in await here.store.select(Task, {"branch": head}, limit=5):
        await here.store.update(Task, {"pr_url": url}, {"id": task.id})
    return {"pr_url": url, "branch": head, "base": into}


@category.tool(effect="idempotent", detail=_words("switch", "branch_name"), touches=touching("files"))
async def checkout_branch(
    here: Context, branch_name: Branch, project_id: str = "", workspace: str = "", repo_id: str = ""
) -> Result:
    """Switch to an existing git branch in a project's repository."""
    at = await _place(here, project_id, workspace, repo_id)
    await at.git.switch(branch_name)
    return {"status": "checked_out", "branch": branch_name} | await at.warning()


# What they and the older ones share ---------------------------------------------------------------


async def _commit(at: _Place, message: str) -> str | None:
    return await at.git.commit_all(message, at.here.step_id or str(new_id()), _author(at.here))


async def _push(at: _Place, branch: str) -> str:
    name, bound = branch or await _current(at.git), at.here.bound
    facts = {fact: bound[fact] for fact in ("commit", "address") if bound.get(fact)}
    await at.git.push(name, reach=checkouts.reach(at.here), **facts)
    return name


async def _start(at: _Place, name: str) -> Result:
    if await at.git.branch() == name:
        return {"warning": "it was there already"}
    if await at.git.commit_of(f"refs/heads/{name}"):
        raise ToolError(f"there is a branch {name!r} already", "", "switch to it with checkout_branch")
    await at.git.start(name)
    return {}


async def _merge(at: _Place, branch: str, default: str) -> tuple[str, list[str]]:
    """The branch that was merged into, and the files in conflict; then all is as it was before."""
    into = default or await checkouts.default_branch(at.here, at.root, at.git)
    if check_ref(branch) == into:
        raise ToolError(f"{branch!r} cannot be merged into itself", "", "name another branch")
    await at.git.need_clean()
    was = await at.git.branch()
    if was != into:
        await at.git.switch(into)
    try:
        conflicts = await at.git.merge(branch, _author(at.here))
    except ToolError:
        await _back(at.git, was, into)
        raise
    if conflicts:
        await _back(at.git, was, into)
    return into, conflicts


async def _back(git: Checkout, was: str, now: str) -> None:
    if was and was != now:
        await git.switch(was)


async def _current(git: Checkout) -> str:
    name = await git.branch()
    if not name:
        raise ToolError("no branch is checked out here", "the checkout stands at a commit", "name the branch")
    return name


# The older spellings ------------------------------------------------------------------------------


@category.tool(
    effect="idempotent", detail=_words("branch", "branch_name"), older=True, touches=touching("files")
)
async def create_branch(
    here: Context, branch_name: Branch, project_id: str = "", repo_id: str = ""
) -> Result:
    """Create a new git branch in a project's repository, and switch to it."""
    return {"branch": branch_name, "status": "created"} | await _start(
        await _place(here, project_id, "", repo_id), branch_name
    )


@category.tool(effect="idempotent", detail=_words("commit"), older=True, touches=touching("files"))
async def commit_changes(
    here: Context, message: CommitMessage, project_id: str = "", repo_id: str = ""
) -> Result:
    """Stage all changes and create a git commit in a project's repository."""
    at = await _place(here, project_id, "", repo_id)
    sha = await _commit(at, message)
    result: Result = {"status": "committed", "commit": sha} if sha else {"status": "nothing_to_commit"}
    result |= {"left_out": at.git.left_out.told()} if at.git.left_out else {}
    return result | await at.warning()


@category.tool(
    effect="idempotent",
    detail=_words("push origin", "branch_name"),
    older=True,
    ready=_can_push,
    touches=touching("address"),
    binds=_pushed,
)
async def push_branch(
    here: Context, project_id: str = "", branch_name: str = "", repo_id: str = ""
) -> Result:
    """Push a branch to the remote origin in a project's repository."""
    at = await _place(here, project_id, "", repo_id, change=False)
    return {"branch": await _push(at, branch_name), "status": "pushed"}


@category.tool(
    effect="idempotent",
    detail=_words("merge", "branch_name"),
    older=True,
    binds=_merged,
    touches=touching("merge"),
)
async def merge_branch(here: Context, branch_name: Branch, project_id: str = "", repo_id: str = "") -> Result:
    """Merge a branch into the default branch (e.g., main)."""
    at = await _place(here, project_id, "", repo_id)
    into, conflicts = await _merge(at, branch_name, "")
    result: Result = {"status": "conflict" if conflicts else "merged", "target": into}
    return result | ({"conflicts": conflicts} if conflicts else {}) | await at.warning()
