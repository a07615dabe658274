"""What came of a task: its result and diff (category system), and its last error (category agent)."""

from __future__ import annotations

import re
from typing import Any

from shared.errors import ToolError
from shared.guard.git.checkout import Checkout
from shared.guard.permissions.touching import touching
from shared.store.origin import marked
from shared.store.records import Repo, Task, TaskResult
from shared.tools import checkouts, lookup
from shared.tools.categories import tier
from shared.tools.context import Context
from shared.tools.git import diffs
from shared.tools.registry import Result

category = tier("system")
errors = tier("agent")

TEXT = 100_000  # bytes of a diff
MESSAGE, SUMMARY = 2000, 1000

_KINDS: tuple[tuple[str, str, str], ...] = (
    (
        "rate_limit",
        r"rate.?limit|429|too many requests|overloaded|529",
        "wait a little, then restart the task",
    ),
    (
        "authentication",
        r"api.?key|authenticat|401|403|not take the key",
        "check the key: promptdock key check",
    ),
    ("budget", r"budget|token limit|tokens? (?:were )?spent", "raise the budget, or split the task"),
    ("timeout", r"time(?:d)? ?out|ended after \d+ (?:min|s)|took too long", "split the task, or restart it"),
    ("merge_conflict", r"merge conflict|conflict", "resolve the conflict on its branch, then restart it"),
    ("git", r"\bgit\b|repository|worktree|branch", "look at the repository with get_git_status"),
    ("tests", r"test|assert|lint|mypy|ruff|eslint", "read the failing checks, then reopen it with feedback"),
    ("not_found", r"no such file|not found|does not exist", "name the right paths in the task's description"),
    ("permission", r"permission|denied|not allowed|sandbox", "see what was refused; a person can allow it"),
    ("nothing_done", r"nothing was changed", "say in the description what has to change, and where"),
    ("stopped", r"was stopped|stopped by", "restart it when it is wanted again"),
)


async def _last(here: Context, task: Task) -> TaskResult | None:
    order = [("created_at", "desc")]
    rows = await here.store.select(TaskResult, {"task_id": task.id}, order=order, limit=1)  # type: ignore[arg-type]
    return rows[0] if rows else None


@category.tool(effect="pure", touches=touching("records"))
async def get_task_result(here: Context, task_id: str) -> Result:
    """Retrieve a task's output: summary, files changed, error message, tokens used; and what was verified."""
    task = await lookup.task(here.store, task_id)
    result = await _last(here, task)
    if result is None:
        raise ToolError(f"the task {task_id} has no result yet", f"it is {task.status}", "wait for its end")
    return {
        "task_id": task.slug,
        "status": task.status,
        "summary": result.summary,
        "files_changed": result.files_changed,
        "error_message": result.error or None,
        "tokens_used": result.tokens_used,
        "cost": result.cost,
        "agent": result.agent,
        "branch": result.branch,
        "commits": result.commits,
        "diff_stat": result.diff_stat,
        "commands": result.commands,
        "verified": result.verified,
        **marked([result]),
    }


@category.tool(effect="pure", touches=touching("files"))
@checkouts.wherever
async def get_task_diff(here: Context, task_id: str) -> Result:
    """Show the git diff for a task's branch against the commit that it began from."""
    task = await lookup.task(here.store, task_id)
    if not task.branch:
        raise ToolError(
            f"the task {task_id} has no branch", f"it is {task.status}", "it gets one when it begins"
        )
    repo = await lookup.first(here.store, Repo, id=task.repo_id) if task.repo_id else None
    if repo is None:
        raise ToolError(f"the task {task_id} has no repository", "", "")
    git, branch = await _branch(here, repo, task.branch)
    base = task.base_commit or await git.merge_base(await checkouts.repos(here).base(repo), branch)
    diff = await git.diff(base, to=branch, limit=TEXT)
    result: Result = {"task_id": task.slug, "branch": task.branch, "base": base, "source": "repository"}
    result |= await diffs.without_secrets(git, diff, base, branch)
    return result | ({"truncated": True} if len(diff.encode()) > TEXT else {})


async def _branch(here: Context, repo: Repo, branch: str) -> tuple[Checkout, str]:
    """git where the branch lies, and the branch as it is called there: made here, or pushed by another machine."""
    for fresh in (False, True):
        git = await checkouts.source(here, repo, fresh)
        for ref in (branch, f"origin/{branch}"):
            if await git.commit_of(ref):
                return git, ref
    raise ToolError(
        f"the branch {branch} is not on this machine",
        f"another machine worked on it, and it was not pushed to {repo.name}",
        "look at it there, or let tasks push their branches: promptdock repo add URL --push",
    )


@errors.tool(effect="pure", touches=touching("records"))
async def get_agent_error(here: Context, task_id: str) -> Result:
    """Get the last error recorded for a task: its class, a suggested fix, and the agent's own summary."""
    task = await lookup.task(here.store, task_id)
    result = await _last(here, task)
    message = (result.error if result else "") or task.error
    told: dict[str, Any] = {
        "task_id": task.slug,
        "title": task.title,
        "status": task.status,
        "retries": f"{task.attempts} / {task.max_retries}",
    }
    if not message:
        return told | {"error_type": None, "message": "no error was recorded for this task"}
    kind, fix = classify(message)
    return told | {
        "error_type": kind,
        "error_message": message[:MESSAGE],
        "suggested_fix": fix,
        "agent_summary": (result.summary if result else "")[:SUMMARY],
        **marked([task, result]),
    }


def classify(message: str) -> tuple[str, str]:
    """The class of an error by its words, and what usually helps."""
    for kind, pattern, fix in _KINDS:
        if re.search(pattern, message[:MESSAGE], re.IGNORECASE):
            return kind, fix
    return "unknown", "read the message and the worker's log, then restart the task"
