"""A task that has its worktree: the work of its executor there, the checks on it, and what comes of it."""

from __future__ import annotations

import json
from typing import Any

from shared import log
from shared.bus.event_stream import EventStream
from shared.conversation import prompt
from shared.errors import Fenced, PromptDockError
from shared.executors.base import Executor, TaskOutcome, TaskWork
from shared.models.base import Usage
from shared.store.records import Repo
from shared.tasks import fate
from shared.tasks.worktree import receipt
from shared.tasks.worktree.acquire import Worktree
from shared.tasks.worktree.checks import CheckPlan, Ran
from shared.tools.context import Context, PackageRegistries, Root, TaskWorktree
from shared.worker.coding import executor as executing
from shared.worker.coding.attempt import Attempt
from shared.worker.coding.clock import WorkClock
from shared.worker.coding.overlap import OverlapWatch
from shared.worker.coding.resolve import Resolver
from shared.worker.coding.verify import Verifier
from shared.worker.runners import inheriting, situation
from shared.worker.runners.agent import model_name
from shared.worker.runners.consult import asked_for
from shared.worker.runners.question import TaskQuestion
from shared.worker.runners.task_run import Payload
from shared.worker.runners.waiting import beside, waiting_notice


class TaskCheckout:
    """One attempt in its worktree, from `open` to `close`."""

    def __init__(
        self, attempt: Attempt, clock: WorkClock, repo: Repo, needs: tuple[str, ...], resolver: Resolver
    ) -> None:
        self._attempt, self._clock = attempt, clock
        self._task, self._turn, self._resources = attempt.task, attempt.turn, attempt.resources
        self._repo, self._needs = repo, needs  # branches whose work this one begins with
        self._resolver = resolver
        self._verifier = self._verifies()
        self._overlap = OverlapWatch(self._resources.connection, repo, self._task.id, self.tree)
        self._removed = False  # the worktree: its work lies on its branch then
        self._usage = Usage()
        activity = self._turn.activity
        connection = self._resources.connection
        self._live = EventStream(connection.bus, connection.names, activity.events, activity)

    @classmethod
    async def open(cls, attempt: Attempt, clock: WorkClock) -> TaskCheckout:
        """Claim the task, and get its worktree with all that its work begins with."""
        task, resources, turn = attempt.task, attempt.resources, attempt.turn
        await task.load()
        await task.move("assigned", owner=attempt.agent)
        repo = await task.repo()
        needs = await task.needs(repo)
        began = task.began
        tree = await Worktree.acquire(resources.repos, repo, task.id, turn.epoch, needs, began)
        try:
            resolver = Resolver(turn, tree, resources.repos, repo)
            if began:
                await resolver.begin(attempt.agent)
            checkout = cls(attempt, clock, repo, needs, resolver)
            inheriting.task(turn, attempt.agent_runner.profile, attempt.request, task.id, repo.name)
        except BaseException:
            await tree.release()
            raise
        return checkout

    @property
    def tree(self) -> Worktree:
        """The worktree, with what its work is measured from."""
        return self._resolver.tree

    def _verifies(self) -> Verifier:
        here = self._attempt
        return Verifier(here.turn, here.agent, self.tree, here.resources.repos, self._repo, here.task.asked)

    # -- the work --------------------------------------------------------------------------------------------

    async def carry(self) -> tuple[TaskOutcome, list[Ran]]:
        """The work, its checks, and the work again where they failed."""
        tree = self.tree
        await self._task.move("started", branch=tree.branch, base_commit=tree.base, repo_id=self._repo.id)
        await self._task.news("started")
        await self._attempt.progress.say(f"Working on {tree.branch} in {self._repo.name}")
        plan = await self._verifier.plan(self._attempt.payload, self._task.row)
        work = self._described(plan)
        executor = self._executor(work)
        try:
            while True:
                outcome = await executor.run(work)
                self._usage = outcome.usage
                if outcome.kind == "question" and outcome.question is not None:
                    if not await self._asked(outcome.question):
                        return outcome, []
                    continue
                if outcome.kind != "answer" or outcome.spent:
                    return outcome, []
                ran = await self._checked(plan, outcome)
                if not self._verifier.unheard:
                    return outcome, ran
                await self._attempt.progress.say("It is not done yet; the agent is told what was found")
        finally:
            await self._live.close()

    async def _checked(self, plan: CheckPlan, outcome: TaskOutcome) -> list[Ran]:
        """Commit what was done, and run the checks on it."""
        if await self._resolver.again() or self._resolver.marked():
            return []
        rounds = self._verifier.rounds()
        title = self._task.title if not rounds else f"{self._task.title[:60]}: what its checks found"
        await self._verifier.commit(title, outcome.text, "final" if not rounds else f"repair{rounds}")
        unchanged = await self.tree.git.head() == self.tree.base
        if not plan.commands or (unchanged and (self._task.only_tells or self._why_nothing(outcome))):
            return []
        told = f"Running its checks ({plan.origin}): {', '.join(plan.commands)[:300]}"
        await self._attempt.progress.say(told)
        self._live("checks", {"commands": list(plan.commands)})  # the newest event is what the agent does now
        await self._task.news("verifying")
        return await self._verifier.check(plan, self._resources.sandbox)

    async def _asked(self, question: dict[str, Any]) -> str:
        here = self._attempt
        asks = TaskQuestion(
            *(self._resources.connection, here.agent, self._turn, self._task, here.approver),
            demo=self._resources.model.demo,
        )
        self._clock.stand_still(True)
        try:
            return await asks.ask(question, here.agent_runner.profile.permissions.approval_minutes)
        finally:
            self._clock.stand_still(False)

    # -- what the executor is handed -------------------------------------------------------------------------

    def _described(self, plan: CheckPlan) -> TaskWork:
        tree, here = self.tree, self._attempt
        settings, profile = self._resources.settings, here.agent_runner.profile
        wanted = asked_for(here.request)
        return TaskWork(
            turn_id=self._turn.id,
            path=tree.path,
            branch=tree.branch,
            system=(
                *prompt.compose(profile.system, roster={}, repositories=self._place(plan)),
                situation.of(self._turn, self._task.project),
            ),
            command=self._command_file(),
            model=wanted["model"] or model_name(settings, profile, self._resources.model),
            tokens=wanted["tokens"],
            journal=self._turn,
            lock=tree.lock,
            sandbox=self._resources.sandbox,
            permit=executing.refuse,
            ask=self._asked,
            live=waiting_notice(self._watch, here.progress.say, beside),
            joined=self._joined,
            scratch=here.scratch,
            cost=settings.budget_turn,
            rounds=profile.rounds,
        )

    def _place(self, plan: CheckPlan) -> str:
        """Where the agent works, on what, and by what that is measured."""
        there = f"- {self.tree.path.parent.name}: your worktree, branch {self.tree.branch}"
        if self._needs:
            there += f"\n  the work that it needs is in it already: {', '.join(self._needs)[:1000]}"
        if plan.commands:
            there += f"\n  checked with, when you have finished: {'; '.join(plan.commands)}"
        return there

    def _watch(self, kind: str, event: dict[str, Any]) -> None:
        self._live(kind, event)
        if kind == "tool_call":
            self._attempt.progress.does(event["tool"], event["arguments"])

    async def _joined(self) -> list[str]:
        await self._turn.look()
        words = [json.dumps(json.loads(entry.data).get("payload", {})) for entry in self._turn.joined()]
        await self._checkpoint()
        return words + await self._overlap.told(len(self._turn.records.results("bash")))

    def _executor(self, work: TaskWork) -> Executor:
        tree, approver = self.tree, self._attempt.approver
        root = Root(tree.path.parent.name, tree.path, commit=tree.base, writable=True)
        context = Context(
            agent=self._attempt.agent,
            session_id=self._turn.session,
            turn_id=self._turn.id,
            store=self._resources.store,
            on_behalf=approver.who,
            roles=lambda: approver.roles,
            project_id=self._task.project,
            roots={root.name: root},
            say=self._attempt.progress.say_seldom,
            sandbox=self._resources.sandbox,
            task=self._task.row,
            worktree=TaskWorktree(
                tree.lock,
                self._overlap.before,
                self._clock.stand_still,
                PackageRegistries(self._resources.settings.package_hosts, self._resources.repos.reach),
            ),
        )
        return executing.choose(self._attempt.agent_runner, self._turn, context, approver, work)

    async def _checkpoint(self) -> None:
        """Where the branch may leave this machine, what was done until now does."""
        number = len(self._turn.records.results())
        if number and self._repo.url and self._repo.push_tasks and not self._resolver.marked():
            await self._verifier.commit(self._task.title, "Work in progress.", f"step{number}")

    def _command_file(self) -> str:
        parts = [f"[task {self._task.id}]", self._attempt.payload["command_file"]]
        row = self._task.row
        if row is not None and row.feedback and row.feedback not in parts[1]:
            parts += [
                "[feedback on what was done before, which is on this branch already]",
                row.feedback,
            ]
        return "\n\n".join([*parts, *([self._resolver.words] if self._resolver.words else [])])

    # -- what comes of it ------------------------------------------------------------------------------------

    async def settle(self, outcome: TaskOutcome, ran: list[Ran]) -> Payload:
        """Write the receipt, and what follows from it."""
        if outcome.kind == "refusal":
            return await self.leave("failed", outcome.text)
        if outcome.kind == "question":
            asked = str((outcome.question or {}).get("asked") or outcome.text)
            return await self.leave("paused", f"Nobody answered its question: {asked}") | {"question": asked}
        if outcome.spent:
            return await self._spent(f"{outcome.spent} is spent. {outcome.text}", outcome.spent)
        if marked := self._resolver.marked():
            return await self.leave("failed", f"its conflicts were not resolved: {', '.join(marked[:10])}")
        payload = await self._receipt("completed", outcome.text, tidy=bool(ran))
        if outcome.demo:
            payload["demo"] = True
        if not payload["commits"]:
            payload |= {"unchanged": True} | self._why_nothing(outcome)
            payload |= {} if await self._was_merged() else {"branch": None}
        if failed := [one.command for one in ran if not one.passed]:
            told = ", ".join(f"{command.command} (exit {command.exit_code})" for command in failed[:5])
            payload |= {"status": "failed", "unproved": True, "error": f"its checks failed: {told}"}
            # Its agent was told so already, and still found nothing to change.
            payload |= {"lasting": True} if payload.get("unchanged") else {}
        return payload

    async def _spent(self, why: str, what: str) -> Payload:
        if self._turn.spent is None:  # tokens, which no person is asked for
            return await self.leave("failed", why) | {"lasting": True}
        left = await self.leave("spent", why)
        budget = self._turn.spent or {"scope": "turn", "name": self._turn.id, "dollars": 0}
        return left | {"question": what, "budget": budget}

    async def leave(self, how: str, why: str) -> Payload:
        """Keep what there is on the branch, and say why it ends here."""
        payload = self._task.left(how, why)
        if not self._removed:
            try:
                payload |= await self._receipt(how, f"Unfinished: {why}")
                payload["error"] = why + payload.pop("undone", "")
            except Fenced:
                raise
            except PromptDockError as error:
                log.get().warning("What the task made could not be kept", why=str(error))
        return payload

    async def close(self) -> None:
        """Give back the worktree, where it still stands, and what was said of its files."""
        if not self._removed:
            await self.tree.release()
        await self._overlap.end()

    async def _receipt(self, how: str, summary: str, tidy: bool = False) -> Payload:
        undone = await self._undo()
        # Tidy, its checks were run last, on what is committed, and what they left was taken away; unless a worker
        # that went on from there began to bring it up to date.
        if not tidy or await self.tree.git.merging():
            mark = "end" if self._verifier.rounds() else "final"
            await self._verifier.commit(self._task.title, summary, mark)
        tokens = self._usage.input + self._usage.output
        made = await self._verifier.receipt(summary, tokens)
        made = await self._task.proved(made, await self.tree.git.head())
        await self.tree.remove(force=True)
        self._removed = True
        if how == "completed" and not made.commits and not await self._was_merged():
            source = await self._resources.repos.source(self._repo)
            await source.delete_branch(made.branch, force=True)  # it holds nothing of its own
        shown = {"unknown": self._unknown(), "tokens": tokens, "cost": self._usage.cost}
        return self._task.card(how) | undone | receipt.payload(made) | shown

    async def _undo(self) -> dict[str, str]:
        """Take back a merge in which conflicts were left, so that no marks of them are committed."""
        if not (left := await self._resolver.end()):
            return {}
        self._verifier = self._verifies()
        into = self._repo.default_branch
        return {"undone": f" The merge of {into} was undone: conflicts were left in {', '.join(left[:10])}."}

    async def _was_merged(self) -> bool:
        row = self._task.row
        return row is not None and await fate.was_merged(self._resources.store, row.id)

    def _why_nothing(self, outcome: TaskOutcome) -> Payload:
        """How a task ended that changed nothing; {} where its agent says what it found: an end like others."""
        if outcome.limit:
            why = f"nothing was changed before it reached a limit: {outcome.limit}"
            return {"status": "failed", "error": f"{why}. {outcome.text[:500]}"}
        if refused := self._verifier.refused():
            why = f"nothing was changed: its last call was not allowed ({refused[:200]})"
            return {"status": "failed", "error": why, "lasting": True}
        if not outcome.text.strip() or outcome.text.startswith("Done."):
            return {"status": "failed", "error": "nothing was changed, and its agent does not say why"}
        return {}

    def _unknown(self) -> list[str]:
        """What was under way when a worker died: nobody knows whether it took effect."""
        results = [record.content for record in self._turn.records.results()]
        return [content["unknown"] for content in results if isinstance(content.get("unknown"), str)]
