"""The scheduler at work: one worker at a time, under a lease, reads, decides, and carries out what was decided.

Everything it does is a conditional write, and every request it sends has a name of its own, so that a holder
that was only frozen, or one that died half-way, does no harm: the next one finds what is left to be done.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from pathlib import Path
from typing import Any

from shared import failpoints, log
from shared.bus import messages
from shared.bus.keys import CHATTER, CHATTER_OUTPUT, is_agent
from shared.errors import Conflict, PromptDockError, ToolError
from shared.plain import dollars
from shared.store.base import Store
from shared.store.records import Task, TaskEvent
from shared.tasks import command, graph, states
from shared.tasks.events import TaskEvents
from shared.tasks.scheduler import RUNNING, Assignment, Decision, SchedulerSnapshot, Step, decide
from shared.tools import lookup
from shared.turns.lease import Lease
from shared.worker.budgets.ledger import Ledger, today
from shared.worker.changes import Changes
from shared.worker.connection import Connection
from shared.worker.runners.missed import news
from shared.worker.services.snapshot import READ, SnapshotReader
from shared.worker.services.task_log import BATCH, TaskLog

ACTOR = "scheduler"
_PAUSE = 0.5  # seconds between two looks while a task could begin as soon as an agent or money is there
_IDLE = 60.0  # seconds between two looks where nothing is heard: what was to be said may be lost
_REST = 0.03  # seconds between two looks at least: of many changes at once, all are looked at together
_SHARE = 4.0  # times as long as a look kept the processor until the next one
_GRACE = 5.0  # leases in which the end of a turn may be on its way to the Store
_TOLD = {
    "retries_spent": (
        "failed too often and is blocked. What happened: promptdock tasks show {slug}. "
        "Try it again: promptdock tasks restart {slug}, or go on without it: promptdock tasks skip {slug}."
    ),
    "assignment_timeout": (
        "was begun by nobody and is blocked. When its agent is up: promptdock tasks restart {slug}."
    ),
    "unanswered": (
        "waits for an answer that did not come, and is paused. Go on with it: promptdock tasks resume {slug}."
    ),
}


class SchedulerService:
    """One worker's part in scheduling; `run` never ends."""

    def __init__(
        self,
        connection: Connection,
        store: Store,
        lease: Lease,
        changes: Changes,
        home: Path,
        day_budget: float | None,
        ledger: Ledger | None = None,
    ) -> None:
        self._connection, self._store, self._lease, self._changes = connection, store, lease, changes
        self._lease_ms = lease.ms
        self._watch = changes.watch(*READ, TaskEvent)
        self._overview = SnapshotReader(
            *(
                connection,
                store,
                ledger or Ledger(connection.bus, connection.names),
                self._watch,
                home,
                day_budget,
            )
        )
        self._tail = TaskLog(store, ACTOR)
        self._epoch = 0
        self._look_at = self._trust_until = float("-inf")  # by the monotonic clock
        self._told: set[tuple[str, float | None]] = set()  # projects without money, with their budgets
        self._ended: dict[str, float] = {}  # tasks whose turn is over while their rows say that they run

    async def run(self) -> None:
        """Take the lease whenever it is free, and schedule as long as it is ours."""
        quiet = True
        try:
            while True:
                ours, used = 0, time.thread_time()
                try:
                    if ours := await self._lease.take():
                        await self._look(ours)
                        quiet = True
                except PromptDockError as error:
                    if quiet:
                        log.get().warning("Nothing is scheduled now", why=str(error))
                    quiet = False
                    self._look_at = time.monotonic() + _PAUSE
                await self._pause(bool(ours), quiet, time.thread_time() - used)
        finally:
            with contextlib.suppress(PromptDockError, TimeoutError):
                async with asyncio.timeout(1):
                    await self._lease.drop()
                    await self._changes.free()

    async def _look(self, epoch: int) -> None:
        """A look, if there is a reason to: something changed, or it is time to look again."""
        now = time.monotonic()
        if epoch != self._epoch or now >= self._trust_until:
            self._watch.all()  # another one scheduled until now, or what was said may have been lost
            self._trust_until = now + _IDLE
        self._epoch = epoch
        if self._watch.changed or now >= self._look_at:
            self._look_at = float("inf")
            await self.tick()

    async def _pause(self, ours: bool, well: bool, took: float) -> None:
        """Until something is heard; a look at a large board takes much, so that it is not looked at all the time."""
        until = min(self._look_at, self._trust_until) - time.monotonic()
        most = max(0.0, min(until if ours or not well else _IDLE, self._lease_ms / 3000))
        rest = min(_PAUSE, max(_REST, _SHARE * took)) if well else _PAUSE
        await self._watch.pause(max(rest, most), rest, ours)

    async def tick(self) -> int:
        """One look; how many tasks were moved."""
        backoff = 2.5 * self._lease_ms / 1000
        with self._watch.reading(TaskEvent) as changed:
            if changed:
                await self._publish()
        snapshot = await self._overview.snapshot(await self._lost(), backoff)
        decision = decide(snapshot)
        self._look_at = time.monotonic() + self._rest(snapshot, decision)
        await self._broke(snapshot)
        for step in decision.steps:
            await self._step(step)
        for assignment in decision.assign:
            await self._assign(assignment)
        return len(decision.steps) + len(decision.assign)

    def _rest(self, snapshot: SchedulerSnapshot, decision: Decision) -> float:
        """Seconds until the next look where nothing is heard: agents, queues and money change without a word."""
        rest = _IDLE if decision.again is None else max(0.0, decision.again - snapshot.now)
        if any(work.status in RUNNING for work in snapshot.work):
            rest = min(rest, self._lease_ms / 3000)  # whoever has one may be gone
        if any(work.broke or (work.status == "READY" and not work.archived) for work in snapshot.work):
            rest = min(rest, _PAUSE)
        return rest

    async def _step(self, step: Step) -> None:
        task = self._overview.tasks[step.task]
        changes: dict[str, Any] = {} if step.attempts is None else {"attempts": step.attempts}
        moved = await self._move(task, step.event, **changes)
        if moved is not None:
            log.get().info(f"Task {task.slug}: {step.event.replace('_', ' ')}", state=moved.status)
            if step.event in _TOLD:
                words = _TOLD[step.event].format(slug=task.slug)
                stuck = self._overview.behind(step.task) if moved.status == "BLOCKED" else []
                waiting = f" It holds up: {', '.join(stuck)}." if stuck else ""
                await self._tell(moved, f"Task {task.slug} ({task.title}) {words}{waiting}")

    async def _assign(self, assignment: Assignment) -> None:
        task = self._overview.tasks[assignment.task]
        epoch = states.next_epoch(task)
        key = f"task:{task.slug}:{epoch >> 32}"
        moved = await self._move(task, "assigned", epoch, assignee=assignment.agent, request_id=key)
        if moved is None:
            return
        failpoints.point("assigned", task.slug)
        expected = self._overview.expected(task, assignment.agent)
        log.get().info(f"Task {task.slug} goes to {assignment.agent}", expected=expected.as_dict())
        await self._send(moved)

    async def _move(self, task: Task, event: str, epoch: int | None = None, **changes: Any) -> Task | None:
        """The task as it now is; None where somebody else was first."""
        key = f"{ACTOR}:{task.slug}:{task.version}"
        try:
            return await states.move(self._store, task.id, event, ACTOR, key, epoch, **changes)
        except (ToolError, Conflict) as error:
            log.get().debug("A task was moved by somebody else", task=task.slug, why=str(error))
            return None

    async def _send(self, task: Task) -> None:
        project = self._overview.projects.get(str(task.project_id))
        route = command.TaskRoute(
            self._connection.queue(str(task.assignee)),
            self._connection.queue(CHATTER),
            self._connection.signer,
            project.slug if project else "",
        )
        await command.send(self._store, route, task)

    async def _lost(self) -> set[str]:
        """Tasks whose request nobody has any more. One that was assigned but never sent is sent now."""
        await self._overview.refresh()
        lost, running = set(), {}
        for id, task in self._overview.tasks.items():
            if task.status not in ("ASSIGNED", "IN_PROGRESS") or not task.assignee or not task.request_id:
                continue
            if not is_agent(task.assignee):  # it was given to nobody who could be asked
                continue
            state = await self._connection.queue(task.assignee).state(task.request_id)
            if state == "accepted":
                continue
            if not state and task.status == "ASSIGNED" and task.request_id.startswith("task:"):
                await self._send(task)
                continue
            running[id] = self._ended.get(id, time.monotonic())
            if time.monotonic() - running[id] > _GRACE * self._lease_ms / 1000:
                lost.add(id)
        self._ended = running
        return lost

    async def _publish(self) -> None:
        """Every transition, whoever made it, is an event on the bus."""
        while fresh := await self._tail.new():
            await self._say(fresh)
            if len(fresh) < BATCH:
                return

    async def _say(self, fresh: list[TaskEvent]) -> None:
        known = {row.id: row for row in await graph.tasks(self._store, {row.task_id for row in fresh})}
        projects = await lookup.projects(self._store)
        async with TaskEvents(self._connection.bus, self._connection.names) as events:
            for row in fresh:
                project = projects.get(row.project_id) if row.project_id else None
                events.transition(row, known.get(row.task_id), project)

    async def _broke(self, snapshot: SchedulerSnapshot) -> None:
        """Tell, once for each budget, that tasks wait for money of their project, or of the day."""
        await self._broke_today(snapshot)
        for share in snapshot.shares:
            project = self._overview.projects[share.id]
            told = (share.id, project.budget)
            if share.left is None or told in self._told:
                continue
            waiting = [work for work in snapshot.work if work.project == share.id and work.status == "READY"]
            if waiting and (share.left <= 0 or min(work.cost for work in waiting) > share.left):
                self._told.add(told)
                words = (
                    f"Of the budget of project {project.slug} ({dollars(project.budget or 0)}) {dollars(share.left)} "
                    f"is left: too little for its next task (expected: {dollars(waiting[0].cost)}), which waits."
                )
                remedy = f"Raise it: promptdock budget project {project.slug} DOLLARS."
                await self._tell(self._overview.tasks[waiting[0].id], f"{words} {remedy}")

    async def _broke_today(self, snapshot: SchedulerSnapshot) -> None:
        waiting = [work for work in snapshot.work if work.status == "READY" and not work.archived]
        told = (today(), self._overview.day_budget)
        if snapshot.left is None or told in self._told or not waiting:
            return
        first = min(waiting, key=lambda work: work.cost)
        if snapshot.left <= 0 or first.cost > snapshot.left:
            self._told.add(told)
            words = (
                f"Of today's budget {dollars(max(0.0, snapshot.left))} is left: too little for the next task "
                f"(expected: {dollars(first.cost)}), which waits. Raise it: promptdock budget day DOLLARS."
            )
            await self._tell(self._overview.tasks[first.id], words)

    async def _tell(self, task: Task, text: str) -> None:
        """Say to the person what no worker says."""
        output = messages.Output(
            user_id=task.user_id or "",
            content=text,
            status="task_update",
            id=f"task:{task.slug}:{task.version}:{len(text)}",
            session_id=task.session_id or command.SESSION,
            in_reply_to=None,
            answers=[],
            task={"task_id": task.slug, "status": task.status.lower(), "error": task.error or None},
        )
        channel = self._connection.names.channel(CHATTER_OUTPUT)
        keep = await news(self._connection)
        queue = self._connection.queue(CHATTER)
        output = await queue.placed(output)
        await queue.announce(channel, output.text(channel), output.session_id, keep)
