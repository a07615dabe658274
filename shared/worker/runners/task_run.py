"""A task as its worker sees it: the row in the Store, the states that it goes through, and what is left of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Literal
from uuid import UUID

from shared import log
from shared.bus.messages import AgentMessage
from shared.errors import Lasting, PromptDockError, StoreUnavailable, ToolError
from shared.guard.permissions import marks
from shared.store.base import Store
from shared.store.origin import Origin
from shared.store.records import Project, Repo, Task, TaskResult
from shared.store.row import derived, now
from shared.tasks import scheduler, states
from shared.tasks.defaults import KINDS, Kinds, best_for, named
from shared.tasks.events import TaskEvents
from shared.tasks.worktree import bases, message
from shared.tasks.worktree.receipt import CheckRun, Receipt, verdict
from shared.turns.outbox import RowChange
from shared.turns.turn import Turn
from shared.worker.budgets.ledger import tomorrow
from shared.worker.connection import Connection

Payload = dict[str, Any]
_TRIED = 50  # attempts of a task that are looked at
_RESUMES = timedelta(hours=8)  # after which a task that waits for an answer is tried again without it


def _checked(result: TaskResult) -> list[Payload]:
    return [run for run in result.commands if run.get("check")]


async def apply_tasks(store: Store, changes: list[Payload]) -> None:
    """Carry tasks over, from the outbox: one that cannot be is no other's fault."""
    for values in changes:
        try:
            await states.move(
                store,
                UUID(values["task"]),
                values["event"],
                values["actor"],
                values["key"],
                values["epoch"],
                values.get("detail"),  # none in the outbox of a release before
                **values["changes"],
            )
        except StoreUnavailable:
            raise
        except (PromptDockError, KeyError) as error:
            # What its state or a later epoch does not allow was decided otherwise meanwhile, e.g. by a person.
            overtaken = isinstance(error, ToolError)
            told = log.get().warning if overtaken else log.get().error
            told("A change of a task could not be stored", change=values.get("event"), why=str(error))


class TaskRun:
    """One task of one turn. Its row may be missing: a program that is none of ours may send tasks too."""

    def __init__(
        self,
        connection: Connection,
        store: Store,
        demo: bool,
        agent: str,
        turn: Turn,
        request: AgentMessage,
        kinds: Kinds = KINDS,
    ) -> None:
        self._kinds = kinds  # of the repositories in which the agent works
        self._connection, self._store, self._demo = connection, store, demo
        self._agent, self._turn = agent, turn
        self._payload: Payload = request.payload
        self.id = str(self._payload.get("task_id") or request.id)
        self._command = str(self._payload.get("command_file") or "")
        self.title = message.title(self._command, str(self._payload.get("title") or ""))
        self.project = str(self._payload.get("project") or "default")
        self.row: Task | None = None
        self.epoch = states.turn_epoch(self._payload.get("epoch"), turn.epoch)

    def card(self, how: str) -> Payload:
        """What every message about the task says of it."""
        return {
            "task_id": self.id,
            "title": self._payload.get("title"),
            "status": how,
            "repo": self._payload.get("repo"),
            "demo": self._demo or None,
        }

    def left(self, how: str, why: str) -> Payload:
        """What is said of it where it ended before it was done."""
        return self.card(how) | {"error": why, "commits": [], "summary": why}

    @property
    def asked(self) -> str:
        """What is to be done, in the words of who asked for it."""
        return (self.row.description if self.row is not None else "") or self._command

    async def load(self) -> None:
        """Read the row; without a Store the task is done all the same."""
        try:
            found = await self._store.select(Task, {"slug": self.id}, limit=1)
        except PromptDockError as error:
            log.get().warning("The task's row cannot be read", why=str(error))
            return
        self.row = found[0] if found else None

    async def repo(self) -> Repo:
        """The repository that is meant; Lasting where that is not clear."""
        name = self._payload.get("repo")
        store = self._store
        projects = await store.select(Project, {"slug": self.project}, limit=1)
        repos = await store.select(Repo, {"project_id": projects[0].id}) if projects else []
        fitting = named(repos, str(name)) if name else best_for(repos, self._kinds)
        if len(fitting) != 1:
            names = [row.name for row in fitting or repos]
            first = "" if names else "register one with promptdock repo add PATH, then: "
            raise Lasting(
                f"it is not clear which repository is meant ({name or 'none named'})",
                f"there are: {', '.join(names) or 'none'}",
                f"{first or 'say which: '}promptdock tasks restart {self.id} --repo {names[0] if names else 'NAME'}",
            )
        return fitting[0]

    @property
    def began(self) -> str:
        """The commit on which an attempt before began; "" where there was none."""
        return (self.row.base_commit or "") if self.row is not None else ""

    async def needs(self, repo: Repo) -> tuple[str, ...]:
        """The branches that the work begins with; without a Store, as without a row, none."""
        if self.row is None:
            return ()
        try:
            return await bases.branches(self._store, self.row, repo)
        except StoreUnavailable as error:
            log.get().warning("What the task builds on cannot be read", why=str(error))
            return ()

    async def move(self, event: str, key: str = "", **changes: Any) -> None:
        """Best tried: the end of the turn carries the final state with it, whatever the Store does now."""
        if self.row is None:
            return
        if event in ("assigned", "started") and self._turn.records.answers:
            return  # a worker before us did
        if event == "assigned" and self.row.status == "ASSIGNED":
            return  # whoever sent it did
        try:
            await states.move(
                self._store,
                self.row.id,
                event,
                self._agent,
                f"{self._turn.id}{key}",
                self.epoch,
                **changes,
            )
        except PromptDockError as error:
            # A worker before us had begun it, and we go on: nothing is missing.
            begun = event in ("assigned", "started") and self.row.status == "IN_PROGRESS"
            told = log.get().debug if begun else log.get().warning
            told("The task's state could not be written", change=event, why=str(error))

    async def proved(self, made: Receipt, head: str) -> Receipt:
        """With what is proved of its commit, where this attempt made none: `head` is that of an attempt before.

        Where it ran no checks, the last that ran on that commit count.
        """
        ran = any(run.check for run in made.commands)
        if self.row is None or (ran and made.commits):
            return made
        order: list[tuple[str, Literal["asc", "desc"]]] = [("created_at", "desc")]
        try:
            tried = await self._store.select(TaskResult, {"task_id": self.row.id}, order=order, limit=_TRIED)
        except StoreUnavailable as error:
            log.get().warning("What was checked before cannot be read", why=str(error))
            return made
        since = 0 if ran else next((at for at, one in enumerate(tried) if _checked(one)), len(tried))
        # An attempt that made no commit left the branch where the one before it had brought it.
        commits: list[str] = next((one.commits for one in tried[since:] if one.commits), [])
        if not commits or commits[-1] != head:
            return made
        if ran:
            return made.model_copy(update={"verified": verdict(made.commands, committed=True)})
        checks = [CheckRun.model_validate(run) for run in _checked(tried[since])]
        return made.model_copy(
            update={"commands": [*made.commands, *checks], "verified": tried[since].verified}
        )

    async def news(self, state: str, **more: Any) -> None:
        """Tell what is done with the task."""
        async with TaskEvents(self._connection.bus, self._connection.names) as events:
            events.news(self.id, state, self._agent, **more)

    def outcome(self, payload: Payload) -> str:
        """What the state machine makes of a task that came out so."""
        how = str(payload["status"])
        if how == "failed" and payload.get("unproved"):
            return "unproved for good" if payload.get("lasting") else "unproved"
        if how == "failed" and payload.get("lasting"):
            return "lasting"
        asked = self.row is not None and states.to_review(self.row, str(payload.get("verified") or ""))
        return states.REVIEW if how == "completed" and asked else how

    async def judged(self, payload: Payload) -> Payload:
        """How a task came out, as its asker is told: work that waits for a person's review is not completed."""
        if self.row is None:
            await self.load()
        how = self.outcome(payload)
        if (
            how in ("failed", "unproved")
            and self.row is not None
            and self.row.attempts < self.row.max_retries
        ):
            payload = payload | {"again_in": round(scheduler.retry_at(0, self.row.attempts))}
        return payload | {"status": states.REVIEW} if how == states.REVIEW else payload

    @property
    def only_tells(self) -> bool:
        """Whether it is a task that looks and tells, so that nothing of what it finds is measured by checks."""
        type = self.row.type if self.row is not None else self._payload.get("task_type")
        return type in ("research", "plan")

    async def held(self) -> bool:
        """Whether it is a pause, not an end, for which a person stopped it: then the row has its time."""
        await self.load()
        return self.row is not None and self.row.resume_at is not None

    async def ends(self, payload: Payload) -> list[Any]:
        """What the end of the turn leaves in the Store: the result, and the transitions."""
        if self.row is None:
            await self.load()
        if self.row is None:
            return []
        how = self.outcome(payload)
        changes = {"error": str(payload.get("error") or ""), "ended_at": now(), "owner": None}
        detail = {}
        if payload.get("unchanged"):
            changes["branch"] = payload.get("branch")  # none where there is nothing on it
            detail = {"unchanged": True}
        if how == "held":
            changes |= {"ended_at": None, "resume_at": self.row.resume_at, "error": ""}
        if how == "planned":
            changes |= {"ended_at": None, "plan": payload.get("plan") or {}}
        if how == "spent":
            changes |= {"ended_at": None, "resume_at": tomorrow(), "question": payload.get("question", "")}
        if how == "paused":
            changes |= {
                "ended_at": None,
                "resume_at": now() + _RESUMES,
                "question": payload.get("question", ""),
            }
        return [
            self._result(self.row, payload),
            *(self._change(self.row, e, changes, detail) for e in states.OUTCOMES[how]),
        ]

    def _result(self, task: Task, payload: Payload) -> TaskResult:
        read = marks.mark(self._turn.records)
        ran = [run for run in payload.get("commands", []) if run.get("by") == "harness"]
        return TaskResult(
            id=derived("task-result", self._turn.id),
            task_id=task.id,
            attempt=task.attempts + 1,
            epoch=self.epoch,
            agent=self._agent,
            summary=str(payload.get("summary", "")),
            branch=payload.get("branch"),
            base_commit=(payload.get("receipt") or {}).get("base"),
            commits=payload.get("commits", []),
            files_changed=payload.get("files_changed", []),
            diff_stat=payload.get("diff_stat", ""),
            commands=payload.get("commands", []),
            tests={"passed": sum(run["exit_code"] == 0 for run in ran), "run": len(ran)} if ran else {},
            tokens_used=payload.get("tokens", 0),
            cost=payload.get("cost", 0.0),
            verified=payload.get("verified", "unverified"),
            error=str(payload.get("error") or ""),
            receipt=payload.get("receipt") or {},
            origin=Origin(self._agent, task.user_id or "", task.session_id or "", foreign=read).kept(),
        )

    def _change(
        self, task: Task, event: str, changes: dict[str, Any], detail: dict[str, Any] | None = None
    ) -> RowChange:
        values = {"task": str(task.id), "event": event, "actor": self._agent, "key": self._turn.id}
        return RowChange("task", {**values, "epoch": self.epoch, "changes": changes, "detail": detail or {}})
