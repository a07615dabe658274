"""The receipt of a task: what was done, from git and from commands that ran, never from a model's words."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pydantic import BaseModel, Field

from shared.guard.git.commands import Git
from shared.store.records import Verified

FILES, COMMANDS, COMMITS = 500, 200, 200


class CheckRun(BaseModel, defer_build=True):
    """One command that ran in the worktree; `stdout_digest` is the SHA-256 of what it printed, as kept."""

    command: str
    exit_code: int
    stdout_digest: str = ""
    ms: int = 0
    check: bool = False  # whether it was a check (tests, linter, build) rather than a step of the work
    by: Literal["agent", "harness"] = "agent"  # whether the agent ran it, or we did when it had finished
    at: float = 0.0  # when it ended, in seconds since the epoch


class Produced(BaseModel, defer_build=True):
    """One commit of the task's branch."""

    sha: str
    subject: str


class Clash(BaseModel, defer_build=True):
    """Files in which the branch cannot be merged with another one: found by trying, before anybody merges."""

    branch: str
    files: list[str] = Field(default_factory=list)


class Receipt(BaseModel, defer_build=True):
    """What Chatter reports. `summary` is the agent's own account, everything else was recorded."""

    summary: str = ""
    branch: str = ""
    base: str = ""
    commits: list[Produced] = Field(default_factory=list)
    files_changed: list[str] = Field(default_factory=list)
    diff_stat: str = ""
    commands: list[CheckRun] = Field(default_factory=list)
    tokens: int = 0
    verified: Verified = "unverified"
    clashes: list[Clash] = Field(default_factory=list)


def digest(text: str) -> str:
    """The form in which outputs are recorded."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def verdict(commands: Iterable[CheckRun], committed: bool, changed: float = 0.0) -> Verified:
    """Whether checks stand behind the work: each check's last run counts, if it ended after the last change.

    Where we ran checks ourselves, those alone count. verified: there is a commit, and all checks passed;
    partly: some did; unverified: none did, or none ran.
    """
    checks = [run for run in commands if run.check]
    ours = [run for run in checks if run.by == "harness"]
    last = {run.command: run.exit_code == 0 and run.at >= changed for run in ours or checks}
    if not last or not committed or not any(last.values()):
        return "unverified"
    return "verified" if all(last.values()) else "partly"


def describe(receipt: Receipt) -> str:
    """What stands behind the work, in a sentence for a person."""
    ours = [run for run in receipt.commands if run.check and run.by == "harness"]
    checks = {run.command: run.exit_code for run in ours or receipt.commands if run.check}
    ran = ", ".join(f"`{command}` exit {code}" for command, code in list(checks.items())[:6])
    who = "run by the harness" if ours else "run by the agent"
    if receipt.verified == "unverified" and not receipt.files_changed and not receipt.commits:
        return f"Nothing was changed; {ran} ({who})." if checks else "Nothing was changed."
    match receipt.verified:
        case "verified":
            return f"Verified: {ran} ({who}, after the last change)."
        case "partly":
            return f"Partly verified: {ran} ({who})."
        case _:
            return f"Unverified: {ran}." if checks else "Unverified: no check ran."


def payload(receipt: Receipt) -> dict[str, Any]:
    """As whoever asked for the task is sent it."""
    return {
        "summary": receipt.summary,
        "branch": receipt.branch,
        "commits": [commit.sha for commit in receipt.commits],
        "files_changed": receipt.files_changed,
        "diff_stat": receipt.diff_stat,
        "commands": [command.model_dump() for command in receipt.commands],
        "verified": receipt.verified,
        "proof": describe(receipt),
        "receipt": receipt.model_dump(),
    }


def _last_change(git: Git, paths: Iterable[str]) -> float:
    """When the newest of these files was changed, in seconds since the epoch."""
    newest = 0.0
    for path in paths:
        with contextlib.suppress(OSError, ValueError):
            newest = max(newest, (git.path / path).lstat().st_mtime)
    return newest


async def build(
    git: Git,
    branch: str,
    base: str,
    commands: Iterable[CheckRun | Mapping[str, Any]] = (),
    summary: str = "",
    tokens: int = 0,
) -> Receipt:
    """The receipt of what `branch` holds above `base`, while its worktree `git` is still there.

    Only committed work counts. Raises ToolError where git cannot say.
    """
    ran = [CheckRun.model_validate(command) for command in commands]
    made, changed, stat = await git.work(base, await git.commit_of(f"refs/heads/{branch}"), COMMITS)
    return Receipt(
        summary=summary,
        branch=branch,
        base=base,
        commits=[Produced(sha=commit.sha, subject=commit.subject) for commit in reversed(made)],
        files_changed=changed[:FILES],
        diff_stat=stat if made else "",
        commands=ran[-COMMANDS:],
        tokens=tokens,
        verified=verdict(ran, bool(made), _last_change(git, changed)),
    )
