"""The checks of a task: commands whose success decides about the work, run by us and not by the agent.

They come with the request, else from the task's plan and from `promptdock.toml` in the repository:

    [checks]
    commands = ["make test", "ruff check ."]
    seconds = 600

The file is read at the commit of the default branch that the task stands on, so that no agent decides what it
is measured by.
"""

from __future__ import annotations

import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from shared.errors import Lasting, ToolError
from shared.guard.git.commands import Git
from shared.guard.processes.process import Lock, run
from shared.guard.processes.reserve import Reserve
from shared.guard.sandbox.sandbox import Sandbox
from shared.tasks.worktree.receipt import CheckRun, digest

FILE = "promptdock.toml"
MOST, SECONDS = 20, 900.0
_KEPT = 3000  # bytes of output that an agent reads of a check that failed


class _Checks(BaseModel):
    model_config = ConfigDict(extra="forbid", defer_build=True)

    commands: list[str] = Field(default_factory=list, max_length=MOST)
    seconds: float = Field(SECONDS, gt=0, le=7200)


@dataclass(frozen=True)
class CheckPlan:
    """The commands to run, in order, and how long each may take. `origin` says where they stand."""

    commands: tuple[str, ...] = ()
    seconds: float = SECONDS
    origin: str = ""


@dataclass(frozen=True)
class Ran:
    """One check that ran, and the end of what it printed."""

    command: CheckRun
    output: str

    @property
    def passed(self) -> bool:
        return self.command.exit_code == 0


def parse(commands: Any, origin: str) -> CheckPlan | None:
    """The plan that a task carries; None where it carries none."""
    if not isinstance(commands, list):
        return None
    texts = tuple(text for text in commands if isinstance(text, str) and text.strip() and "\0" not in text)
    return CheckPlan(texts[:MOST], origin=origin) if texts else None


async def of_repository(git: Git, commit: str) -> CheckPlan:
    """What the repository says at that commit; Lasting where its file cannot be used."""
    try:
        text = await git.file(commit, FILE)
    except ToolError:
        return CheckPlan()
    try:
        checks = _Checks.model_validate(tomllib.loads(text).get("checks", {}))
    except (tomllib.TOMLDecodeError, ValidationError) as error:
        raise Lasting(f"the checks in {FILE} cannot be read", str(error)[:400], f"correct {FILE}") from None
    return CheckPlan(tuple(checks.commands), checks.seconds, FILE)


def both(one: CheckPlan, other: CheckPlan | None) -> CheckPlan:
    """The commands of both, each once."""
    if other is None or not one.commands:
        return other or one
    commands = tuple(dict.fromkeys(one.commands + other.commands))
    return CheckPlan(commands, max(one.seconds, other.seconds), f"{one.origin} and {other.origin}")


async def run_all(git: Git, sandbox: Sandbox, plan: CheckPlan, lock: Lock) -> list[Ran]:
    """Run them all in the worktree, in order, also after one has failed; confined as any command is."""
    return [await _one(git, sandbox, command, plan.seconds, lock) for command in plan.commands]


async def _one(git: Git, sandbox: Sandbox, command: str, seconds: float, lock: Lock) -> Ran:
    argv = sandbox.wrap(["bash", "-c", command], git.path, writable=True)
    reserve = Reserve.of(git.path)
    done = await run(argv, cwd=git.path, timeout=seconds, limit=_KEPT, lock=lock, reserve=reserve)
    text = f"\n[ended after {seconds:g} s]" if done.timed_out else ""
    text += f"\n[{done.ended}]" if done.ended else ""
    record = CheckRun(
        command=command,
        exit_code=done.exit_code if done.ok or done.exit_code else -9,
        stdout_digest=digest(done.stdout),
        ms=done.ms,
        check=True,
        by="harness",
        at=time.time(),
    )
    return Ran(record, f"{done.stdout}\n{done.stderr}".strip()[-_KEPT:] + text)


def feedback(ran: Sequence[Ran]) -> str:
    """What an agent is told whose work did not pass."""
    parts = ["[The task's checks were run on your work, and not all passed. Correct it.]"]
    for check in ran:
        code = check.command.exit_code
        parts.append(f"$ {check.command.command}\nexit code {code}")
        if not check.passed:
            parts[-1] += f"\n{check.output}"
    return "\n\n".join(parts)
