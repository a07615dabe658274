"""A task's turn: a command file, a worktree, an executor that does the work, its proof, a receipt."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

from shared import log
from shared.bus import messages
from shared.bus.activity import stream_of
from shared.bus.event_stream import EventStream
from shared.conversation import prompt
from shared.errors import (
    BadMessage,
    ConfigurationError,
    Fenced,
    Lasting,
    ModelRefused,
    PromptDockError,
    ToolError,
)
from shared.executors.base import Executor, TaskOutcome, TaskWork
from shared.models.base import Usage
from shared.store.records import Repo
from shared.tasks import fate
from shared.tasks.names import slug
from shared.tasks.worktree import receipt
from shared.tasks.worktree.acquire import Worktree
from shared.tasks.worktree.checks import CheckPlan, Ran
from shared.tools.context import Context, Root, TaskWorktree
from shared.turns.records import BegunRecord, FinalRecord
from shared.turns.turn import Turn
from shared.worker.coding import executor as executing
from shared.worker.coding.overlap import OverlapWatch
from shared.worker.coding.resolve import Resolver
from shared.worker.coding.verify import Verifier
from shared.worker.permissions.gate import asked_by
from shared.worker.runners import closing, inheriting, situation
from shared.worker.runners.agent import AgentRunner, beside, model_name, waiting_notice
from shared.worker.runners.consult import asked_for
from shared.worker.runners.question import TaskQuestion
from shared.worker.runners.task_run import Payload, TaskRun, apply_tasks

__all__ = ["TaskRunner", "apply_tasks"]

_NEWS = 10.0  # seconds between progress messages


def _lasting(error: PromptDockError) -> Payload:
    """That no other try would end better, where that is so: somebody has to decide or to set something first."""
    for_good = isinstance(error, (Lasting, ConfigurationError, BadMessage, ModelRefused))
    return {"lasting": True} if for_good else {}


class TaskRunner:
    """Runs one task. Made anew for each turn."""

    def __init__(self, engine: AgentRunner, turn: Turn) -> None:
        self.engine, self.turn, self.resources = engine, turn, engine.resources
        self.agent = engine.profile.name
        self.request = messages.agent({**json.loads(turn.given[0].data), "id": turn.given[0].id})
        self.payload = self.request.payload
        self.ticket = TaskRun(
            self.resources.connection,
            self.resources.store,
            self.resources.model.demo,
            self.agent,
            turn,
            self.request,
            engine.profile.works_on,
        )
        activity, asked = turn.activity, asked_by(self.request)
        activity.kind, activity.task, activity.title = "task", self.ticket.id, self.ticket.title
        activity.user, activity.session = asked.user_id, asked.session
        activity.events = stream_of(self.agent, turn.session)
        self._tree: Worktree | None = None
        self._proof: Verifier | None = None
        self._renewing: Resolver | None = None
        self._aware: OverlapWatch | None = None
        self._repo: Repo | None = None
        self._needs: tuple[str, ...] = ()  # branches whose work this one begins with
        self._usage = Usage()
        self._news = 0.0
        self._saying: asyncio.Task[None] | None = None  # the news that is on its way
        self._clock: asyncio.Timeout | None = None
        self._left = 0.0  # seconds of it, while a person is asked

    @property
    def deadline(self) -> int:
        """When nobody wants the work any more."""
        return self.turn.given[0].deadline

    async def run(self) -> None:
        """From claim to finish."""
        self.engine = await self.engine.current()
        log.get().info(f"Received {self.request.type} from {self.request.sender}")
        if self.request.type != "task" or not str(self.payload.get("command_file") or "").strip():
            what = f"{self.agent} takes tasks with a command_file, not {self.request.type}s without one"
            log.get().warning("A request was refused", error=what, request=self.request.id)
            await self.failed(BadMessage(what, "", "send type task with payload.command_file"))
            return
        final = self.turn.records.final
        if final is None:
            final = await self._work()
            await self.turn.step(FinalRecord(payload=final))
        await self._close(final)

    async def stopped(self) -> None:
        """The person or the asker ended the task: what was made is kept on its branch."""
        held = await self.ticket.held()
        how, why = ("held", "A person paused it.") if held else ("stopped", "The task was stopped.")
        payload = await self._leave(how, why)
        await self._close(payload)

    async def failed(self, error: PromptDockError, dead: str = "") -> None:
        """The task cannot be done; the asker is told why."""
        payload = await self._leave("failed", str(error))
        await self._close(payload | error.as_dict() | _lasting(error), dead)

    # -- the work --------------------------------------------------------------------------------------------

    async def _work(self) -> Payload:
        begun = self.turn.records.first(BegunRecord)
        if begun is None:
            begun = BegunRecord(at=int(time.time() * 1000))
            await self.turn.step(begun)
        left, late = self._bound(begun.at)
        try:
            async with asyncio.timeout(max(1.0, left)) as self._clock:
                await self._begin()
                outcome, ran = await self._carry()
        except TimeoutError:
            return await self._leave("timeout", late)
        except ToolError as error:
            log.get().error("A task cannot be carried out", task=self.ticket.id, why=str(error))
            return await self._leave("failed", str(error)) | _lasting(error)
        return await self._settle(outcome, ran)

    def _bound(self, started: int) -> tuple[float, str]:
        """The seconds that are left, and what is said when they are over. What people took to answer does not count."""
        minutes = self.engine.profile.task_minutes
        waited = self.turn.records.waited_ms(int(time.time() * 1000))
        left = (started + waited) / 1000 + minutes * 60 - time.time()
        # What names none may wait for its turn for a while; how long it may then run is said here alone.
        named = messages.deadline_ms(self.request.deadline)
        wanted = (
            named + waited - self.turn.claimed_at - self.turn.elapsed_ms()
        ) / 1000  # by the server's clock
        if named > 0 and wanted < left:
            return wanted, "The task was ended at its deadline: nobody waits for it any more."
        return left, f"The task was ended after {minutes:g} minutes."

    async def _begin(self) -> None:
        await self.ticket.load()
        await self.ticket.move("assigned", owner=self.agent)
        repo = self._repo = await self.ticket.repo()
        repos = self.resources.repos
        needs = await self.ticket.needs(repo)
        began = self.ticket.began
        tree = await Worktree.acquire(repos, repo, self.ticket.id, self.turn.epoch, needs, began)
        self._tree, self._needs = tree, needs
        self._renewing = Resolver(self.turn, tree, repos, repo)
        if began:
            await self._renewing.begin(self.agent)
        tree = self._tree = self._renewing.tree
        self._proof = Verifier(self.turn, self.agent, tree, repos, repo, self.ticket.asked)
        self._aware = OverlapWatch(self.resources.connection, repo, self.ticket.id, tree)
        inheriting.task(self.turn, self.engine.profile, self.request, self.ticket.id, repo.name)
        await self.ticket.move("started", branch=tree.branch, base_commit=tree.base, repo_id=repo.id)
        await self.ticket.news("started")
        await self._say(f"Working on {tree.branch} in {repo.name}", always=True)

    async def _carry(self) -> tuple[TaskOutcome, list[Ran]]:
        """The work, its checks, and the work again where they failed."""
        assert self._tree is not None and self._proof is not None
        activity = self.turn.activity
        plan = await self._proof.plan(self.payload, self.ticket.row)
        live = EventStream(
            self.resources.connection.bus, self.resources.connection.names, activity.events, activity
        )
        work = self._described(live, plan)
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
                ran = await self._checked(plan, outcome, live)
                if not self._proof.unheard:
                    return outcome, ran
                await self._say("It is not done yet; the agent is told what was found", always=True)
        finally:
            await live.close()

    async def _checked(self, plan: CheckPlan, outcome: TaskOutcome, live: EventStream) -> list[Ran]:
        """Commit what was done, and run the checks on it."""
        assert self._proof is not None and self._tree is not None and self._renewing is not None
        if await self._renewing.again() or self._renewing.marked():
            return []
        rounds = self._proof.rounds()
        title = self.ticket.title if not rounds else f"{self.ticket.title[:60]}: what its checks found"
        await self._proof.commit(title, outcome.text, "final" if not rounds else f"repair{rounds}")
        unchanged = await self._tree.git.head() == self._tree.base
        if not plan.commands or (unchanged and (self.ticket.only_tells or self._why_nothing(outcome))):
            return []
        await self._say(f"Running its checks ({plan.origin}): {', '.join(plan.commands)[:300]}", always=True)
        live("checks", {"commands": list(plan.commands)})  # the newest event is what the agent does now
        await self.ticket.news("verifying")
        return await self._proof.check(plan, self.resources.sandbox)

    async def _asked(self, question: dict[str, Any]) -> str:
        question_of = TaskQuestion(
            *(self.resources.connection, self.agent, self.turn, self.ticket, asked_by(self.request)),
            demo=self.resources.model.demo,
        )
        self._paused(True)
        try:
            return await question_of.ask(question, self.engine.profile.permissions.approval_minutes)
        finally:
            self._paused(False)

    # -- what the executor is handed -------------------------------------------------------------------------

    def _described(self, live: EventStream, plan: CheckPlan) -> TaskWork:
        assert self._tree is not None and self._aware is not None
        tree, aware = self._tree, self._aware
        there = f"- {tree.path.parent.name}: your worktree, branch {tree.branch}"
        if self._needs:
            there += f"\n  the work that it needs is in it already: {', '.join(self._needs)[:1000]}"
        if plan.commands:
            there += f"\n  checked with, when you have finished: {'; '.join(plan.commands)}"

        def watch(kind: str, event: dict[str, Any]) -> None:
            live(kind, event)
            if kind == "tool_call" and time.monotonic() - self._news > _NEWS:
                self._news = time.monotonic()
                told = json.dumps(event["arguments"], ensure_ascii=False)[:160]
                self._saying = asyncio.create_task(self._say(f"{event['tool']} {told}", always=True))

        async def joined() -> list[str]:
            await self.turn.look()
            words = [json.dumps(json.loads(entry.data).get("payload", {})) for entry in self.turn.joined()]
            await self._checkpoint()
            ran = len(self.turn.records.results("bash"))
            return words + await aware.told(ran)

        return TaskWork(
            turn_id=self.turn.id,
            path=tree.path,
            branch=tree.branch,
            system=(
                *prompt.compose(self.engine.profile.system, roster={}, repositories=there),
                situation.of(self.turn, self.ticket.project),
            ),
            command=self._command_file(),
            model=(wanted := asked_for(self.request))["model"]
            or model_name(self.resources.settings, self.engine.profile, self.resources.model),
            tokens=wanted["tokens"],
            journal=self.turn,
            lock=tree.lock,
            sandbox=self.resources.sandbox,
            permit=executing.refuse,
            ask=self._asked,
            live=waiting_notice(watch, lambda text: self._say(text, always=True), beside),
            joined=joined,
            scratch=self._scratch(),
            cost=self.resources.settings.budget_turn,
            rounds=self.engine.profile.rounds,
        )

    def _executor(self, work: TaskWork) -> Executor:
        assert self._tree is not None and self._aware is not None
        tree = self._tree
        root = Root(tree.path.parent.name, tree.path, commit=tree.base, writable=True)
        context = Context(
            agent=self.agent,
            session_id=self.turn.session,
            turn_id=self.turn.id,
            store=self.resources.store,
            on_behalf=asked_by(self.request).who,
            roles=lambda: asked_by(self.request).roles,
            project_id=self.ticket.project,
            roots={root.name: root},
            say=self._say,
            sandbox=self.resources.sandbox,
            task=self.ticket.row,
            worktree=TaskWorktree(tree.lock, self._aware.before, self._paused),
        )
        return executing.choose(self.engine, self.turn, context, asked_by(self.request), work)

    async def _checkpoint(self) -> None:
        """Where the branch may leave this machine, what was done until now does."""
        repo, number = self._repo, len(self.turn.records.results())
        if self._renewing is not None and self._renewing.marked():
            return
        if repo is not None and repo.url and repo.push_tasks and self._proof is not None and number:
            await self._proof.commit(self.ticket.title, "Work in progress.", f"step{number}")

    def _paused(self, waits: bool) -> None:
        """The time in which a person is asked for permission does not count."""
        clock, now = self._clock, asyncio.get_running_loop().time()
        if clock is None:
            return
        if waits:
            self._left = (clock.when() or now) - now
            clock.reschedule(None)
        else:
            clock.reschedule(now + self._left)

    def _scratch(self) -> Path:
        return self.resources.settings.home / "executors" / slug(self.ticket.id)

    def _command_file(self) -> str:
        text = f"[task {self.ticket.id}]\n\n{self.payload['command_file']}"
        row = self.ticket.row
        if row is not None and row.feedback and row.feedback not in text:
            text += (
                f"\n\n[feedback on what was done before, which is on this branch already]\n\n{row.feedback}"
            )
        if self._renewing is not None and self._renewing.words:
            text += f"\n\n{self._renewing.words}"
        return text

    # -- the end ---------------------------------------------------------------------------------------------

    async def _settle(self, outcome: TaskOutcome, ran: list[Ran]) -> Payload:
        """Write the receipt, and what follows from it."""
        if outcome.kind == "refusal":
            return await self._leave("failed", outcome.text)
        if outcome.kind == "question":
            asked = str((outcome.question or {}).get("asked") or outcome.text)
            left = await self._leave("paused", f"Nobody answered its question: {asked}")
            return left | {"question": asked}
        if outcome.spent and self.turn.spent is None:  # tokens, which no person is asked for
            return await self._leave("failed", f"{outcome.spent} is spent. {outcome.text}") | {
                "lasting": True
            }
        if outcome.spent:
            left = await self._leave("spent", f"{outcome.spent} is spent. {outcome.text}")
            budget = self.turn.spent or {"scope": "turn", "name": self.turn.id, "dollars": 0}
            return left | {"question": outcome.spent, "budget": budget}
        if self._renewing is not None and (marked := self._renewing.marked()):
            return await self._leave("failed", f"its conflicts were not resolved: {', '.join(marked[:10])}")
        payload = await self._receipt("completed", outcome.text, tidy=bool(ran))
        if outcome.demo:
            payload["demo"] = True
        failed = [one.command for one in ran if not one.passed]
        if not payload["commits"]:
            payload |= {"unchanged": True} | self._why_nothing(outcome)
            payload |= {} if await self._was_merged() else {"branch": None}
        if failed:
            told = ", ".join(f"{command.command} (exit {command.exit_code})" for command in failed[:5])
            payload |= {"status": "failed", "unproved": True, "error": f"its checks failed: {told}"}
            # Its agent was told so already, and still found nothing to change.
            payload |= {"lasting": True} if payload.get("unchanged") else {}
        return payload

    async def _was_merged(self) -> bool:
        row = self.ticket.row
        return row is not None and await fate.was_merged(self.resources.store, row.id)

    def _why_nothing(self, outcome: TaskOutcome) -> Payload:
        """How a task ended that changed nothing; {} where its agent says what it found: an end like others."""
        assert self._proof is not None
        if outcome.limit:
            why = f"nothing was changed before it reached a limit: {outcome.limit}"
            return {"status": "failed", "error": f"{why}. {outcome.text[:500]}"}
        if refused := self._proof.refused():
            why = f"nothing was changed: its last call was not allowed ({refused[:200]})"
            return {"status": "failed", "error": why, "lasting": True}
        if not outcome.text.strip() or outcome.text.startswith("Done."):
            return {"status": "failed", "error": "nothing was changed, and its agent does not say why"}
        return {}

    async def _leave(self, how: str, why: str) -> Payload:
        """Keep what there is on the branch, and say why it ends here."""
        payload: Payload = self.ticket.card(how) | {"error": why, "commits": [], "summary": why}
        if self._tree is not None:
            try:
                payload |= await self._receipt(how, f"Unfinished: {why}")
                payload["error"] = why + payload.pop("undone", "")
            except Fenced:
                raise
            except PromptDockError as error:
                log.get().warning("What the task made could not be kept", why=str(error))
        return payload

    async def _receipt(self, how: str, summary: str, tidy: bool = False) -> Payload:
        assert self._tree is not None and self._proof is not None and self._aware is not None
        undone = await self._undo()
        # Tidy, its checks were run last, on what is committed, and what they left was taken away; unless a worker
        # that went on from there began to bring it up to date.
        if not tidy or await self._tree.git.merging():
            await self._proof.commit(self.ticket.title, summary, "end" if self._proof.rounds() else "final")
        tokens = self._usage.input + self._usage.output
        made = await self._proof.receipt(summary, tokens)
        made = await self.ticket.proved(made, await self._tree.git.head())
        await self._tree.remove(force=True)
        self._tree = None
        if how == "completed" and not made.commits and self._repo and not await self._was_merged():
            source = await self.resources.repos.source(self._repo)
            await source.delete_branch(made.branch, force=True)  # it holds nothing of its own
        return (
            self.ticket.card(how)
            | undone
            | {
                "summary": made.summary,
                "unknown": self._unknown(),
                "branch": made.branch,
                "commits": [commit.sha for commit in made.commits],
                "files_changed": made.files_changed,
                "diff_stat": made.diff_stat,
                "commands": [command.model_dump() for command in made.commands],
                "tokens": tokens,
                "cost": self._usage.cost,
                "verified": made.verified,
                "proof": receipt.describe(made),
                "receipt": made.model_dump(),
            }
        )

    async def _undo(self) -> dict[str, str]:
        """Take back a merge in which conflicts were left, so that no marks of them are committed."""
        if self._renewing is None or self._repo is None or not (left := await self._renewing.end()):
            return {}
        tree = self._tree = self._renewing.tree
        self._proof = Verifier(
            self.turn, self.agent, tree, self.resources.repos, self._repo, self.ticket.asked
        )
        into = self._repo.default_branch
        return {"undone": f" The merge of {into} was undone: conflicts were left in {', '.join(left[:10])}."}

    def _unknown(self) -> list[str]:
        """What was under way when a worker died: nobody knows whether it took effect."""
        results = [record.content for record in self.turn.records.results()]
        return [content["unknown"] for content in results if isinstance(content.get("unknown"), str)]

    async def _close(self, payload: Payload, dead: str = "") -> None:
        if self._saying is not None:
            await self._saying  # before the end is told
        if self._tree is not None:
            await self._tree.release()
        if self._aware is not None:
            await self._aware.end()
        await executing.forget(self._scratch())
        payload = await self.ticket.judged(payload)
        kind: Any = "error" if payload.get("error") else "response"
        await self.engine.replies.deliver(self.request, kind, payload)
        await self.ticket.news(str(payload["status"]))
        state = "complete" if kind == "response" else "error"
        more = await self.ticket.ends(payload)
        await closing.close(
            self.resources.approvals,
            self.resources.model.name,
            self.agent,
            self.turn,
            state,
            payload.get("error"),
            dead,
            more=more,
        )
        told = log.get().warning if payload["status"] in ("failed", "timeout") else log.get().info
        told(f"Task {payload['task_id']} {payload['status']}", commits=len(payload.get("commits", [])))

    async def _say(self, text: str, always: bool = False) -> None:
        if always or time.monotonic() - self._news > _NEWS:
            self._news = time.monotonic()
            try:
                await self.engine.replies.progress(self.request, text)
            except PromptDockError as error:
                log.get().debug("Progress was not sent", why=str(error))
