"""What is to be done next: a pure function of a snapshot, without a clock, a store or a model call.

Of the projects that have work and may begin it, one that had nothing done in the window comes first, then the
one whose share of the tokens is furthest below its weight; of a project's tasks the one of the lowest priority
number, then the oldest. A task that has waited for longer than PATIENCE goes before all priorities, so that
none waits for ever behind newer ones.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from shared.tasks.defaults import KINDS, Kinds

PATIENCE = 6 * 3600.0  # seconds that a task gives way to newer ones of a lower priority number
SPOKEN_FOR = 60.0  # seconds in which whoever made a task for an agent posts it there
INPUT = 24 * 3600.0  # seconds that a task waits for a person's word
RUNNING = ("ASSIGNED", "IN_PROGRESS", "WAITING_INPUT")
_BY_ITSELF = frozenset({"DEFINED", "FAILED", "PAUSED", "WAITING_INPUT", "ASSIGNED", "IN_PROGRESS"})
TaskId = str  # of a task or project; not a UUID, which is slow as a key

BACKOFF = 30.0


class SchedulerTask(NamedTuple):
    """A task that is not completed, as the scheduler sees it. Times are seconds since 1970."""

    id: TaskId
    project: TaskId
    status: str
    priority: int = 100
    since: float = 0.0  # when it was made
    at: float = 0.0  # when it changed last
    wants: str = ""  # the agent that must do it, or "" for whoever takes tasks of its kind
    kind: str = "both"  # frontend | backend | both: the repository that it is about; or plan
    attempts: int = 0
    retries: int = 3
    resume: float | None = None
    asked: bool = False  # somebody is about to post it, or did
    archived: bool = False
    cost: float = 0.0  # dollars that it is expected to need
    tokens: float = 0.0
    broke: bool = False  # paused until its project or the day has money again


@dataclass(frozen=True)
class Share:
    """What a project may take, and what it took."""

    id: TaskId
    weight: float = 1.0
    cap: int = 2  # tasks at once
    paused: bool = False
    left: float | None = None  # dollars of its budget, what runs not counted; None is without a budget
    used: float = 0.0  # tokens in the window
    done: int = 0  # pieces of work in the window


@dataclass(frozen=True)
class AgentSlot:
    """An agent that takes tasks, and how many more it takes now."""

    agent: str
    room: int
    takes: Kinds = KINDS  # kinds of tasks that name nobody


@dataclass(frozen=True)
class SchedulerSnapshot:
    """Everything that a decision may depend on."""

    now: float
    work: Sequence[SchedulerTask]
    shares: Sequence[Share]
    slots: Sequence[AgentSlot]
    needs: Mapping[TaskId, Sequence[TaskId]] = field(default_factory=dict)  # what each task waits for
    lost: frozenset[TaskId] = frozenset()  # assigned or begun, and nobody has them any more
    paused: bool = False
    left: float | None = None  # dollars of the day's budget
    backoff: float = BACKOFF  # seconds before the first retry; each further one waits twice as long


class Step(NamedTuple):
    """A transition that is due by itself."""

    task: TaskId
    event: str
    attempts: int | None = None


class Assignment(NamedTuple):
    """A task, and the agent that is to do it."""

    task: TaskId
    agent: str


@dataclass(frozen=True)
class Decision:
    """What to do now, in this order, and when at the latest to look again by the clock alone."""

    steps: tuple[Step, ...] = ()
    assign: tuple[Assignment, ...] = ()
    again: float | None = None


def decide(snapshot: SchedulerSnapshot) -> Decision:
    """The transitions that are due, and the tasks that begin."""
    timers = _Timers(snapshot.now)
    open_ = {work.id for work in snapshot.work}
    waiting = {id for id, needs in snapshot.needs.items() if not open_.isdisjoint(needs)}
    moving = (work for work in snapshot.work if work.status in _BY_ITSELF)
    steps = [step for work in moving if (step := _due(snapshot, work, waiting, timers))]
    assign = () if snapshot.paused else tuple(_assign(snapshot, waiting, timers))
    return Decision(tuple(steps), assign, timers.next)


def retry_at(failed: float, attempts: int, backoff: float = BACKOFF) -> float:
    """When a task that failed at this time is tried again; the first time `attempts` is 0."""
    return failed + backoff * 2.0**attempts


class _Timers:
    """Gathers when something becomes due."""

    def __init__(self, now: float) -> None:
        self.now = now
        self.next: float | None = None

    def reached(self, when: float) -> bool:
        if when <= self.now:
            return True
        self.next = when if self.next is None else min(self.next, when)
        return False


def _due(
    snapshot: SchedulerSnapshot, work: SchedulerTask, waiting: set[TaskId], timers: _Timers
) -> Step | None:
    match work.status:
        case "DEFINED" if work.id not in waiting:
            return Step(work.id, "dependencies_met")
        case "FAILED" if not work.archived:
            if work.attempts >= work.retries:
                return Step(work.id, "retries_spent")
            if timers.reached(retry_at(work.at, work.attempts, snapshot.backoff)):
                return Step(work.id, "retried", work.attempts + 1)
        case "PAUSED" if work.resume is not None and _affordable(snapshot, work):
            return Step(work.id, "resumed") if work.broke or timers.reached(work.resume) else None
        case "WAITING_INPUT":
            return Step(work.id, "unanswered") if timers.reached(work.at + INPUT) else None
        case "ASSIGNED" | "IN_PROGRESS" if work.id in snapshot.lost:
            if work.attempts >= work.retries:
                spent = "retries_spent" if work.status == "IN_PROGRESS" else "assignment_timeout"
                return Step(work.id, spent)
            return Step(work.id, "lost", work.attempts + 1)
    return None


def _affordable(snapshot: SchedulerSnapshot, work: SchedulerTask) -> bool:
    lefts = [share.left for share in snapshot.shares if share.id == work.project]
    return all(left is None or left > 0 for left in (snapshot.left, *lefts))


class _Project:
    """A project while tasks are given out."""

    def __init__(self, share: Share) -> None:
        self.share, self.used, self.done, self.left = share, share.used, share.done, share.left
        self.running = 0
        self.queues: defaultdict[tuple[str, str], list[tuple[bool, float, float, TaskId, SchedulerTask]]] = (
            defaultdict(list)
        )

    def takes(self, work: SchedulerTask) -> None:
        """Count a task that runs."""
        self.running += 1
        self.done += 1
        self.used += work.tokens
        if self.left is not None:
            self.left -= work.cost

    def next(
        self, slots: Mapping[tuple[str, str], str], left: float | None
    ) -> tuple[SchedulerTask, str] | None:
        """The task to begin, with its agent; those that cost more than is left are dropped for this time."""
        best: tuple[bool, float, float, TaskId, SchedulerTask] | None = None
        for wants, queue in self.queues.items():
            if wants not in slots:
                continue
            while queue and not _fits(queue[0][-1].cost, self.left, left):
                heapq.heappop(queue)
            if queue and (best is None or queue[0] < best):
                best = queue[0]
        return (best[-1], slots[best[-1].wants, best[-1].kind]) if best else None


def _fits(cost: float, *lefts: float | None) -> bool:
    return all(left is None or (left > 0 and cost <= left) for left in lefts)


def _assign(snapshot: SchedulerSnapshot, waiting: set[TaskId], timers: _Timers) -> Iterator[Assignment]:
    projects = {share.id: _Project(share) for share in snapshot.shares}
    left = _sort(snapshot, projects, waiting, timers)
    rooms = {slot.agent: slot.room for slot in snapshot.slots if slot.room > 0}
    weights = sum(max(0.0, project.share.weight) for project in projects.values() if project.queues)
    while rooms:
        total = sum(project.used for project in projects.values())
        turns = sorted(
            (project for project in projects.values() if _open(project)),
            key=lambda project: (project.done > 0, -_behind(project, weights, total), project.share.id),
        )
        for project in turns:
            found = project.next(_places(snapshot, project, rooms), left)
            if found is None:
                continue
            work, agent = found
            heapq.heappop(project.queues[work.wants, work.kind])
            project.takes(work)
            left = None if left is None else left - work.cost
            rooms[agent] -= 1
            if not rooms[agent]:
                del rooms[agent]
            yield Assignment(work.id, agent)
            break
        else:
            return


def _sort(
    snapshot: SchedulerSnapshot, projects: dict[TaskId, _Project], waiting: set[TaskId], timers: _Timers
) -> float | None:
    """Put what is ready into the projects' queues, and count what runs; what is left of the day's money."""
    left, oldest = snapshot.left, snapshot.now - PATIENCE
    for work in snapshot.work:
        if work.status == "READY":
            project = projects.get(work.project)
            if project is None or project.share.paused or work.archived or work.id in waiting:
                continue
            if work.asked and not timers.reached(work.at + SPOKEN_FOR):
                continue
            since = work.since
            late = since <= oldest
            place = (not late, 0.0 if late else work.priority, since, work.id, work)
            project.queues[work.wants, work.kind].append(place)
        elif work.status in RUNNING and work.id not in snapshot.lost and work.project in projects:
            projects[work.project].takes(work)
            left = None if left is None else left - work.cost
    for project in projects.values():
        for queue in project.queues.values():
            heapq.heapify(queue)
    return left


def _open(project: _Project) -> bool:
    return bool(project.queues) and project.running < project.share.cap and project.left != 0


def _behind(project: _Project, weights: float, total: float) -> float:
    """How far the project's share of the tokens is below its share of the weights."""
    due = max(0.0, project.share.weight) / weights if weights else 0.0
    return due - (project.used / total if total else 0.0)


def _places(
    snapshot: SchedulerSnapshot, project: _Project, rooms: dict[str, int]
) -> dict[tuple[str, str], str]:
    """Who would take each kind of task of a project: the named agent, else the one with the most room."""
    found: dict[tuple[str, str], str] = {}
    for wants, kind in project.queues:
        if wants:
            fitting = [wants] if wants in rooms else []
        else:
            fitting = [s.agent for s in snapshot.slots if s.agent in rooms and kind in s.takes]
        if fitting:
            found[wants, kind] = max(fitting, key=lambda agent: (rooms[agent], agent))
    return found
