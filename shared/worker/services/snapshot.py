"""The snapshot that the scheduler decides on, read from the Store, from presence and from the money spent."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from shared import log
from shared.bus.keys import CHATTER
from shared.errors import ConfigurationError
from shared.profiles import profile
from shared.profiles.profile import Profile
from shared.store.base import Store
from shared.store.records import Agent, ProfileRow, Project, Repo, Setting, Task, TaskDependency, TaskType
from shared.tasks import budgets, command
from shared.tasks.defaults import KINDS
from shared.tasks.estimate import Estimate, PastTask, estimate, recall
from shared.tasks.scheduler import RUNNING, AgentSlot, SchedulerSnapshot, SchedulerTask, Share
from shared.worker.budgets.ledger import Ledger, Window
from shared.worker.changes import ChangeWatch
from shared.worker.connection import Connection

READ = (Task, TaskDependency, Project, Repo, ProfileRow, Agent, Setting)  # the tables that it reads
_PAST = 60.0  # seconds that an estimate may rest on older results
_OPEN = (
    "DEFINED", "READY", "ASSIGNED", "IN_PROGRESS", "WAITING_INPUT", "PAUSED", "VERIFYING",
    "AWAITING_PLAN_APPROVAL", "AWAITING_APPROVAL", "FAILED", "BLOCKED",
)  # fmt: skip
PLAN: TaskType = "plan"  # what tasks of this type are about: no repository


class SnapshotReader:
    """Reads what changed since the last time; the rows stay at hand for what is decided."""

    def __init__(
        self,
        connection: Connection,
        store: Store,
        ledger: Ledger,
        watch: ChangeWatch,
        home: Path,
        day_budget: float | None,
    ) -> None:
        self._connection, self._store, self._ledger, self._watch = connection, store, ledger, watch
        self._home = home  # that holds the agents' profiles
        self._set_budget = day_budget  # dollars, where no person set another
        self.tasks: dict[str, Task] = {}
        self.projects: dict[str, Project] = {}
        self.day_budget: float | None = None
        self._needs: dict[str, list[str]] = {}
        self._repos: dict[UUID, str] = {}
        self._profiles: dict[UUID, str] = {}
        self._stopped: set[str] = set()  # agents that are paused
        self._shipped: dict[str, Profile | None] = {}  # of agents whose heartbeats do not say
        self._planner = ""  # who plans, as far as it was ever here
        self._paused = False
        self._past: list[PastTask] = []
        self._past_at = float("-inf")

    async def snapshot(self, lost: Iterable[str] = (), backoff: float = 30.0) -> SchedulerSnapshot:
        """How things stand now."""
        await self.refresh()
        window = await self._ledger.window()
        slots = await self._slots()
        return SchedulerSnapshot(
            now=time.time(),
            work=[self._work(task) for task in self.tasks.values()],
            shares=[self._share(project, window) for project in self.projects.values()],
            slots=slots,
            needs=self._needs,
            lost=frozenset(lost),
            paused=self._paused,
            left=self._left(window),
            backoff=backoff,
        )

    async def refresh(self) -> None:
        """Read again what changed."""
        store, reading = self._store, self._watch.reading
        with reading(
            Task, TaskDependency
        ) as changed:  # both: no task may begin before what it waits for is known
            if changed:
                rows = await store.select(Task, {"status": ("in", list(_OPEN))})
                self.tasks = {str(row.id): row for row in rows}
                needs: dict[str, list[str]] = {}
                for edge in await store.select(TaskDependency):
                    needs.setdefault(str(edge.task_id), []).append(str(edge.depends_on_id))
                self._needs = needs
        with reading(Project) as changed:
            if changed:
                self.projects = {str(row.id): row for row in await store.select(Project)}
        with reading(Repo) as changed:
            if changed:
                self._repos = {row.id: row.kind for row in await store.select(Repo)}
        with reading(ProfileRow) as changed:
            if changed:
                self._profiles = {row.id: row.slug for row in await store.select(ProfileRow)}
        with reading(Agent) as changed:
            if changed:
                self._stopped = {row.name for row in await store.select(Agent, {"state": "paused"})}
        with reading(Setting) as changed:
            if changed:
                self._paused = await command.paused(store)
                self.day_budget = await budgets.day(store, self._set_budget)
        begins = any(task.status in ("READY", *RUNNING) for task in self.tasks.values())
        if begins and time.monotonic() - self._past_at > _PAST:
            await self._history()

    def behind(self, task: str) -> list[str]:
        """The open tasks that cannot begin before this one has ended well, by their names."""
        found: set[str] = set()
        fresh = {task}
        while fresh:
            fresh = {id for id, needs in self._needs.items() if fresh.intersection(needs)} - found
            found |= fresh
        return sorted(self.tasks[id].slug for id in found if id in self.tasks)

    async def _history(self) -> None:
        self._past = await recall(self._store)
        self._past_at = time.monotonic()

    def _work(self, task: Task) -> SchedulerTask:
        wants = task.assignee or self._named(task) or ""
        plans = task.type == PLAN
        who = wants or (self._planner if plans else "")
        needs = estimate(self._past, task.project_id, who) if task.status in ("READY", *RUNNING) else None
        begun = task.status == "READY" and task.started_at is not None
        return SchedulerTask(
            id=str(task.id),
            project=str(task.project_id),
            status=task.status,
            priority=task.priority,
            since=task.created_at.timestamp(),
            at=task.updated_at.timestamp(),
            wants=wants,
            kind=PLAN if plans else self._repos.get(task.repo_id, "both") if task.repo_id else "both",
            attempts=task.attempts,
            retries=task.max_retries,
            resume=_stamp(task.resume_at),
            asked=task.request_id is not None,
            archived=task.archived,
            broke=task.status == "PAUSED" and budgets.waits_for_money(task.question),
            # One that was begun goes on as long as there is money: for that a person raised it.
            cost=min(needs.cost, task.budget or needs.cost) if needs and not begun else 0.0,
            tokens=needs.tokens if needs else 0.0,
        )

    def expected(self, task: Task, agent: str) -> Estimate:
        """What a task will probably need."""
        return estimate(self._past, task.project_id, agent)

    def _named(self, task: Task) -> str | None:
        """The agent of the task's profile; a profile and its agent have one name."""
        return self._profiles.get(task.profile_id) if task.profile_id else None

    def _share(self, project: Project, window: Window) -> Share:
        key = str(project.id)
        left = None if project.budget is None else project.budget - window.projects.get(key, 0.0)
        return Share(
            id=key,
            weight=project.credit_weight,
            cap=project.max_concurrent_agents,
            paused=project.status != "ACTIVE",
            left=left,
            used=window.tokens.get(key, 0.0),
            done=window.calls.get(key, 0),
        )

    def _left(self, window: Window) -> float | None:
        limit = self.day_budget
        return None if limit is None else limit + window.raised - window.cost

    async def _slots(self) -> list[AgentSlot]:
        """The agents that are here, with the room that they have; paused ones have none."""
        rooms: dict[str, int] = {}
        takes: dict[str, frozenset[str]] = {}
        chats = {CHATTER}
        for card in await self._connection.presence.here():
            name = str(card["agent"])
            drains = card.get("status") == "draining"
            rooms[name] = rooms.get(name, 0) + (0 if drains else int(card.get("takes", 1)))
            takes[name] = takes.get(name, frozenset()) | self._taken(name, card)
            if PLAN in takes[name]:
                self._planner = name
            if card.get("kind") == "chat":
                chats.add(name)
        wanted = {task.assignee for task in self.tasks.values() if task.status == "READY" and task.assignee}
        for name in wanted - rooms.keys():  # a program that only listens takes one at a time
            if await self._connection.bus.listeners(self._connection.names.agent(name)):
                rooms[name] = 1
        return [
            AgentSlot(
                name,
                room - await self._connection.queue(name).size(),
                takes.get(name, frozenset()),
            )
            for name, room in sorted(rooms.items())
            if name not in self._stopped | chats
        ]

    def _profile(self, agent: str) -> Profile | None:
        folder = profile.find(self._home, agent)
        try:
            return profile.load(folder) if folder else None
        except ConfigurationError as error:
            log.get().warning("An agent's profile does not say which tasks it takes", why=str(error))
            return None

    def _taken(self, agent: str, card: Mapping[str, Any]) -> frozenset[str]:
        """The kinds of tasks that name nobody, and that come to the agent of this heartbeat.

        A bridge and a worker of a release before say none: they take those of the agent whose name they have.
        """
        plans, given = card.get("plans"), card.get("repositories")
        if plans is None:
            if agent not in self._shipped:
                self._shipped[agent] = self._profile(agent)
            if said := self._shipped[agent]:
                plans, given = said.plans, said.repositories
        works = card.get("kind") == "coding"
        kinds = (
            (frozenset(map(str, given)) if isinstance(given, list) else KINDS) if works else frozenset[str]()
        )
        return kinds | (frozenset({PLAN}) if plans else frozenset())


def _stamp(value: datetime | None) -> float | None:
    return value.timestamp() if value else None
