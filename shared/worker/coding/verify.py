"""What a task has to show for itself: commits, the checks that we ran on them, and the receipt."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from shared import failpoints, log
from shared.errors import Fenced, PromptDockError
from shared.guard.sandbox.sandbox import Sandbox
from shared.store.records import Repo, Task
from shared.store.row import derived
from shared.tasks.worktree import checks, merge, message, receipt
from shared.tasks.worktree.acquire import Worktree
from shared.tasks.worktree.checks import CheckPlan, Ran
from shared.tasks.worktree.mirrors import Mirrors
from shared.tasks.worktree.receipt import CheckRun, Clash, Receipt
from shared.tools.files import coding
from shared.turns.records import CheckRecord, ChecksRecord, ModelRecord, NoteRecord, ResultRecord
from shared.turns.turn import Turn

_WRITERS = ("create_file", "write_file", "str_replace", "edit_file")
REPAIRS = 2  # times that an agent is told what its checks found


class Verifier:
    """The evidence of one turn's work in one worktree. Every step may be made again after a crash."""

    def __init__(
        self, turn: Turn, agent: str, tree: Worktree, repos: Mirrors, repo: Repo, asked: str = ""
    ) -> None:
        self._asked, self._checks = asked, tuple[str, ...]()  # what its commits say of it
        self._turn, self._agent, self._tree = turn, agent, tree
        self._repos, self._repo = repos, repo
        self._made: dict[str, str] = {}  # step -> its commit
        self._left: dict[str, None] = {}  # new files that were not committed, each with its reason

    async def plan(self, payload: dict[str, Any], task: Task | None) -> CheckPlan:
        """The checks of this task: those that its sender gave, else its repository's and its plan's.

        A plan is an agent's: it adds to what the repository wants, and takes nothing from it.
        """
        plan = await self._plan(payload, task)
        self._checks = plan.commands
        return plan

    async def _plan(self, payload: dict[str, Any], task: Task | None) -> CheckPlan:
        if (given := checks.parse(payload.get("checks"), "the task")) is not None:
            return given
        # Not at the base: that holds other agents' work, and none of them decides what others are measured by.
        begun = await self._tree.begun(self._repos, self._repo)
        standing = await checks.of_repository(self._tree.git, begun)
        planned = checks.parse(task.plan.get("checks"), "the plan") if task is not None else None
        return checks.both(standing, planned)

    async def commit(self, title: str, text: str, mark: str) -> str | None:
        """Commit what there is, once for each mark; and send the branch where it may be sent."""
        step = str(derived("commit", self._turn.id, mark))
        if step in self._made:
            return self._made[step]
        git, told = self._tree.git, message.commit(title, text, self._asked, self._checks)
        made = await git.commit_all(told, step=step, agent=self._agent, written=self._written())
        if git.left_out:
            log.get().warning("New files were not committed", files=", ".join(git.left_out.told(20)))
            # Of all commits together: what was left out may have been taken away since.
            self._left |= dict.fromkeys(git.left_out.told())
        failpoints.point("committed", self._turn.id)
        if made:
            self._made[step] = made
        if made and self._repo.url and self._repo.push_tasks:
            await self._push()
        return made

    def _written(self) -> set[str]:
        """The files that the agent made by a tool for files, from what was allowed: by whichever executor."""
        found = set()
        for record in self._turn.records.of(CheckRecord):
            _, _, rest = record.action.partition(":")
            tool, _, path = rest.partition(":")
            if record.decision != "deny" and tool in _WRITERS:
                # The worktree's own name may stand before it.
                found |= {path, path.removeprefix(f"{self._tree.path.parent.name}/")}
        return found

    async def _push(self) -> None:
        try:
            await self._tree.source.push(self._tree.branch, reach=self._repos.reach)
        except Fenced:
            raise
        except PromptDockError as error:
            log.get().warning("The branch could not be pushed", branch=self._tree.branch, why=str(error))

    async def check(self, plan: CheckPlan, sandbox: Sandbox) -> list[Ran]:
        """Run the checks; what they leave behind does not become part of the work."""
        kept = self._kept()
        if kept is not None or not plan.commands:
            return kept or []
        ran = await checks.run_all(self._tree.git, sandbox, plan, self._tree.lock)
        await self._tree.git.tidy()
        told = [{**one.command.model_dump(), "output": "" if one.passed else one.output} for one in ran]
        record = ChecksRecord(at=time.time_ns() // 1_000_000, ran=told)
        again = self.rounds() < REPAIRS and not all(one.passed for one in ran)
        # Together: whoever goes on after a crash has the agent correct what was found.
        await self._turn.step(record, *([NoteRecord(text=checks.feedback(ran))] if again else []))
        return ran

    def _kept(self) -> list[Ran] | None:
        """The checks that a worker before us ran on this very work."""
        for record in reversed(self._turn.records):
            if isinstance(record, ModelRecord):
                return None
            if isinstance(record, ChecksRecord):
                return [
                    Ran(
                        CheckRun.model_validate({k: v for k, v in one.items() if k != "output"}),
                        one["output"],
                    )
                    for one in record.ran
                ]
        return None

    @property
    def unheard(self) -> bool:
        """Whether the agent was told of checks that failed, and has not answered yet."""
        return bool(self._turn.records) and isinstance(self._turn.records[-1], NoteRecord)

    def rounds(self) -> int:
        """How often checks were run on this task's work so far."""
        return len(self._turn.records.of(ChecksRecord))

    def refused(self) -> str:
        """The call that the agent was last refused, if it made no other after it; "" else."""
        last = self._turn.records.last(CheckRecord)
        return last.action if last and last.decision in ("deny", "ask_denied", "expired") else ""

    async def receipt(self, summary: str, tokens: int) -> Receipt:
        """From git and from the commands that ran; with the branches that it could not be merged with."""
        tree = self._tree
        if self._left:
            summary = "\n".join([f"{summary}\n\nNot committed:", *(f"- {one}" for one in self._left)])
        built = receipt.build(tree.git, tree.branch, tree.base, self._commands(), summary, tokens)
        made, clashes = await asyncio.gather(built, self._clashes())
        return made.model_copy(update={"clashes": clashes}) if made.commits else made

    async def _clashes(self) -> list[Clash]:
        try:
            git = await merge.source(self._repos, self._repo)
            into = await self._repos.base(self._repo, git)
            return await merge.clashes(git, self._tree.branch, into, self._repo.default_branch)
        except PromptDockError as error:
            log.get().warning("It was not tried whether the branch merges", why=str(error))
            return []

    def _commands(self) -> list[dict[str, Any]]:
        """The commands that ran, from the journal: also those of a worker that died before us.

        Of our own checks the last run counts: what failed before was corrected since.
        """
        found = [_command(ran) for ran in self._turn.records.results("bash") if "exit_code" in ran.content]
        ours = self._turn.records.last(ChecksRecord)
        return found + [{k: v for k, v in one.items() if k != "output"} for one in (ours.ran if ours else [])]


def _command(record: ResultRecord) -> dict[str, Any]:
    return {
        "command": record.arguments["command"],
        "exit_code": record.content["exit_code"],
        "stdout_digest": receipt.digest(record.content["stdout"]),
        "ms": record.content["ms"],
        "check": coding.is_check(record.arguments["command"]),
        "at": record.at / 1000,
    }
