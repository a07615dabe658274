"""Plans as rows: what a plan may be, and its tasks written once, by whoever plans or by a person's approval."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from shared.errors import Conflict, ToolError
from shared.guard.permissions.requests import fingerprint
from shared.store.base import Store
from shared.store.records import (
    Project,
    Repo,
    Task,
    TaskDependency,
    TaskResult,
    derived,
    project_key,
)
from shared.tasks.create import create, there
from shared.tasks.defaults import Kinds, best_for, for_all, named
from shared.tools.context import Context
from shared.tools.lookup import one_line, projects, works_on


class PlannedTask(BaseModel):
    """One task of a plan; `depends_on` are indexes of earlier tasks of the same plan, from 0."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    title: str = Field(min_length=1, max_length=200)
    description: str = Field(min_length=1, max_length=50_000)
    agent: str = Field(min_length=1, max_length=64)
    depends_on: list[int] = Field(default_factory=list, max_length=100)
    acceptance: list[str] = Field(min_length=1, max_length=50)
    priority: int = Field(100, ge=0, le=1000)
    checks: list[str] = Field(default_factory=list, max_length=20)
    repo: str = Field("", max_length=200)

    @property
    def plain(self) -> dict[str, Any]:
        """As it is told again: without what was left out."""
        return self.model_dump(exclude={name for name in ("checks", "repo") if not getattr(self, name)})


def validate(tasks: list[PlannedTask]) -> None:
    """ToolError that lists every dependency that does not lead to an earlier task, and titles given twice.

    Since a task depends only on earlier ones there can be no cycle, and the given order is one to work in.
    """
    wrong: list[str] = [] if tasks else ["it has no tasks"]
    titles: dict[str, int] = {}
    for index, task in enumerate(tasks):
        for other in task.depends_on:
            if not 0 <= other < len(tasks):
                wrong.append(f"task {index} depends on {other}, and there are tasks 0 to {len(tasks) - 1}")
            elif other == index:
                wrong.append(f"task {index} depends on itself")
            elif other > index:
                cycle = (
                    " and that one on it, a cycle" if _reaches(tasks, other, index) else ", which comes later"
                )
                wrong.append(f"task {index} depends on {other}{cycle}")
        if (earlier := titles.setdefault(task.title.strip().casefold(), index)) != index:
            wrong.append(f"tasks {earlier} and {index} have the same title")
        if not all(item.strip() for item in task.acceptance):
            wrong.append(f"task {index} has an empty acceptance criterion")
    if wrong:
        raise ToolError(
            "this plan cannot be used", "; ".join(wrong[:20]), "correct it and call submit_plan again"
        )


async def workers(context: Context, tasks: list[PlannedTask]) -> dict[str, Kinds]:
    """The kinds of repositories in which each agent of a plan works; ToolError for one that takes no tasks."""
    found = dict[str, Kinds]()
    for agent in dict.fromkeys(task.agent for task in tasks):
        found[agent] = await works_on(context, agent) or frozenset()
    if wrong := [agent for agent, kinds in found.items() if not kinds]:
        raise ToolError(
            "this plan cannot be used",
            f"no coding agent is called {' or '.join(wrong)}",
            "name a coding agent in each task and call submit_plan again",
        )
    return found


def _reaches(tasks: list[PlannedTask], start: int, goal: int) -> bool:
    """Whether `start` depends on `goal`, also through others."""
    open_, seen = [start], set[int]()
    while open_:
        index = open_.pop()
        if index == goal:
            return True
        if index not in seen and 0 <= index < len(tasks):
            seen.add(index)
            open_ += tasks[index].depends_on
    return False


async def write(
    context: Context, tasks: list[PlannedTask], parent: Task | None = None
) -> list[dict[str, Any]]:
    """Write what is not there yet: the ids follow from the step, so that a replay finds what it wrote before.

    Rows that are there are left alone, since they may be worked on by now. Those of a plan that was approved lie
    below its task (`parent`), and what waits for that task waits for them too.
    """
    project = parent.project_id if parent else await _project(context)
    origin = await _origin(context, parent)
    step = context.step_id or context.turn_id
    ids = [derived("plan", step, index) for index in range(len(tasks))]
    known_repos = await context.store.select(Repo, {"project_id": project}, order=[("name", "asc")])
    written = await there(context.store, Task, ids)  # then nothing is left to be refused
    repos: list[Repo | None] = [None] * len(tasks)
    if not written:
        repos = _repos(tasks, known_repos, await workers(context, tasks))
    edges = [*_edges(ids, tasks), *(await _waiting(context.store, parent, ids) if parent else [])]
    planned = [
        _row(context, project, task, id, bool(task.depends_on)).model_copy(
            update={
                "repo_id": repo.id if repo else None,
                "parent_id": parent.id if parent else None,
                "origin": origin,
            }
        )
        for id, task, repo in zip(ids, tasks, repos, strict=True)
    ]
    rows = await create(context.store, context.agent, planned, edges)
    names = {repo.id: repo.name for repo in known_repos}
    return [_told(index, row, names) for index, row in enumerate(rows)]


async def approved(context: Context, task: Task) -> list[dict[str, Any]]:
    """Write the tasks of a plan that was approved, for whom it was planned; approved twice, it is written once."""
    try:
        planned = [
            PlannedTask.model_validate({name: value for name, value in one.items() if name != "index"})
            for one in task.plan["tasks"]
        ]
    except (ValidationError, AttributeError, TypeError) as error:
        fix = f"send it back: promptdock tasks reject {task.slug} WHY"
        raise ToolError(f"the plan of {task.slug} cannot be written", str(error)[:300], fix) from None
    validate(planned)
    names = await projects(context.store)
    here = replace(
        context,
        step_id=f"plan:{task.id}:{fingerprint(task.plan)[:16]}",
        project_id=names.get(task.project_id, context.project_id),
        on_behalf=(task.user_id or "", task.session_id or ""),
    )
    return await write(here, planned, task)


async def _origin(context: Context, parent: Task | None) -> dict[str, Any]:
    """Who made the tasks: a person's approval makes them no words of theirs, so that the planner's mark stays."""
    if parent is None:
        return context.origin.kept()
    order: Any = [("created_at", "desc")]
    rows = await context.store.select(TaskResult, {"task_id": parent.id}, order=order, limit=1)
    return rows[0].origin if rows and rows[0].origin else parent.origin


async def _waiting(store: Store, parent: Task, ids: list[UUID]) -> list[TaskDependency]:
    """What waits for the task that planned, waits for what was planned."""
    after = await store.select(TaskDependency, {"depends_on_id": parent.id})
    return [
        TaskDependency(id=derived("edge", str(edge.task_id), str(id)), task_id=edge.task_id, depends_on_id=id)
        for edge in after
        for id in ids
    ]


def _told(index: int, row: Task, names: dict[UUID, str]) -> dict[str, Any]:
    where = {"repo": names[row.repo_id]} if row.repo_id in names else {}
    return {"index": index, "task_id": row.slug, "status": row.status, **where}


def _repos(tasks: list[PlannedTask], known: list[Repo], kinds: Mapping[str, Kinds]) -> list[Repo | None]:
    """The repository of each task; ToolError that names the tasks of which it is not clear.

    None where there is no repository for it yet: one may be registered before the task begins.
    """
    found: list[Repo | None] = []
    wrong = []
    for index, task in enumerate(tasks):
        fitting = named(known, task.repo) if task.repo else best_for(known, kinds[task.agent])
        if task.repo and not fitting:
            there = ", ".join(repo.name for repo in known) or "none"
            wrong.append(f"task {index} names {task.repo!r}, and there are: {there}")
        elif len(fitting) > 1:
            several = ", ".join(repo.name for repo in fitting)
            wrong.append(f"several fit task {index} ({task.agent}): {several}")
        found.append(fitting[0] if fitting else None)
    wrong += _spread(tasks, found, known, kinds)
    if wrong:
        raise ToolError(
            "it is not clear in which repository this plan is to be done",
            "; ".join(wrong[:20]),
            "name it in the `repo` of these tasks; where nobody said which, ask the person, who can say: "
            "in the repository NAME",
        )
    return found


def _spread(
    tasks: list[PlannedTask], found: list[Repo | None], known: list[Repo], kinds: Mapping[str, Kinds]
) -> list[str]:
    """Why tasks that name no repository may not be spread over several: because one could take them all.

    Where none could, it is the kinds of the repositories that part them, which the person gave.
    """
    unnamed = [(task.agent, repo) for task, repo in zip(tasks, found, strict=True) if repo and not task.repo]
    names = sorted({repo.name for _, repo in unnamed})
    alone = [repo.name for repo in for_all(known, [kinds[agent] for agent, _ in unnamed])]
    if len(names) < 2 or not alone:
        return []
    return [
        f"the tasks would be spread over {' and '.join(names)}, and {' or '.join(alone)} could take them all"
    ]


def _edges(ids: list[UUID], tasks: list[PlannedTask]) -> list[TaskDependency]:
    return [
        TaskDependency(id=derived("edge", str(id), str(ids[other])), task_id=id, depends_on_id=ids[other])
        for id, task in zip(ids, tasks, strict=True)
        for other in sorted(set(task.depends_on))
    ]


async def _project(context: Context) -> UUID:
    rows = await context.store.select(Project, {"slug": context.project_id}, limit=1)
    if rows:
        return rows[0].id
    if context.project_id != "default":
        raise ToolError(f"there is no project {context.project_id!r}", "", "create it, or plan without write")
    with suppress(Conflict):  # another process made it meanwhile
        await context.store.insert(Project(slug="default", name="Default"))
    return project_key("default")


def _row(context: Context, project: UUID, task: PlannedTask, id: UUID, waits: bool) -> Task:
    person, conversation = context.owner
    return Task(
        id=id,
        slug="",
        project_id=project,
        title=one_line(task.title),
        description=task.description,
        acceptance=task.acceptance,
        status="DEFINED" if waits else "READY",
        priority=task.priority,
        plan={"checks": task.checks} if task.checks else {},
        assignee=task.agent,
        session_id=conversation,
        user_id=person,
        origin=context.origin.kept(),
    )
