"""Tools of category core: make, find, read and change tasks."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, Field

from shared import failpoints
from shared.errors import ToolError
from shared.guard.permissions.touching import touching
from shared.store.origin import marked
from shared.store.records import (
    Project,
    Repo,
    Task,
    TaskResult,
    TaskStatus,
    TaskType,
    Verification,
    Workspace,
)
from shared.tasks import graph, states
from shared.tasks.create import create
from shared.tools import lookup
from shared.tools.categories import tier
from shared.tools.context import Context
from shared.tools.detail import dollars, words
from shared.tools.registry import Result
from shared.tools.tasks import format

category = tier("core")

MOST = 200
Title = Annotated[str, Field(min_length=1, max_length=300), AfterValidator(lookup.one_line)]
TaskText = Annotated[str, Field(max_length=100_000)]
Priority = Annotated[int, Field(ge=0, le=100_000)]
StatusOverride = Literal["DEFINED", "READY", "IN_PROGRESS", "COMPLETED", "FAILED", "BLOCKED"]
_HELD = (
    "it does not begin by itself: {who} did not answer in this conversation. Only the person can let it begin "
    "(approve_plan); or consult first, and make it then"
)
RESULT = {"summary", "commits", "files_changed", "diff_stat", "commands", "verified", "error", "tokens_used"}


@category.tool(
    effect="keyed",
    detail=lambda arguments: lookup.one_line(arguments.get("title", ""))[:200],
    touches=touching("records"),
)
async def create_task(
    here: Context,
    title: Title,
    description: TaskText = "",
    project_id: str | None = None,
    priority: Priority = 100,
    repo_id: str | None = None,
    requires_approval: bool = False,
    task_type: TaskType | None = None,
    profile_id: str | None = None,
    preferred_workspace_id: str | None = None,
    attachments: Annotated[list[Annotated[str, Field(max_length=500)]], Field(max_length=50)] | None = None,
    depends_on: list[str] | None = None,
    parent_id: str | None = None,
) -> Result:
    """Create a task. Its description must be complete in itself; lower priority numbers go first.

    `attachments` are paths in its repository that its agent is to read first. A workspace stands for its repository.
    A task with a `parent_id` stands below that one in trees.
    """
    project = await lookup.project_for(here, project_id, repo_id)
    repo = await lookup.repo(here, repo_id, project.slug) if repo_id else None
    parent = await lookup.task(here.store, parent_id) if parent_id else None
    profile = await lookup.profile(here.store, profile_id) if profile_id else None
    space = (
        await lookup.workspace(here, preferred_workspace_id, project.slug) if preferred_workspace_id else None
    )
    if space is not None and repo is None:
        repo = await _repo_of(here, space)
    needs = [await lookup.task(here.store, slug) for slug in dict.fromkeys(depends_on or [])]
    person, conversation = here.owner
    waits = any(task.status != "COMPLETED" for task in needs)
    # Else it would begin by itself, and `assign_task` be refused in vain.
    held = here.unasked() if here.talks and not failpoints.without("unplanned-task") else []
    task = Task(
        id=lookup.identity(here, "task"),
        slug="",
        project_id=project.id,
        title=title,
        description=description,
        status="AWAITING_PLAN_APPROVAL" if held else "DEFINED" if waits else "READY",
        priority=priority,
        type=task_type,
        profile_id=profile.id if profile else project.default_profile_id,
        repo_id=repo.id if repo else None,
        workspace_id=space.id if space else None,
        parent_id=parent.id if parent else None,
        attachments=[{"path": path} for path in attachments or []],
        requires_approval=requires_approval,
        session_id=conversation,
        user_id=person,
        origin=here.origin.kept(),
    )
    [task] = await create(here.store, here.agent, [task])
    for other in needs:
        task = await graph.connect(here.store, task, other, here.agent, f"{here.step_id}:{other.slug}")
    result: Result = {"created": task.slug, "title": task.title, "project_id": project.slug}
    result |= {"status": task.status, "depends_on": [other.slug for other in needs]} if needs else {}
    result |= {"repo_id": repo.name} if repo else {}
    result |= {"parent": parent.slug} if parent else {}
    result |= {"requires_approval": True} if requires_approval else {}
    if why := lookup.resting(project):
        result["warning"] = why
    if task.status == "AWAITING_PLAN_APPROVAL":
        result |= {"status": task.status, "warning": _HELD.format(who=" and ".join(held))}
    return result


async def _repo_of(here: Context, space: Workspace) -> Repo:
    """The repository that a workspace is a checkout of: a task works in a worktree of that, never in the workspace."""
    if space.repo_id and (found := await lookup.first(here.store, Repo, id=space.repo_id)):
        return found
    raise ToolError(
        f"no task can work in the workspace {space.name!r}",
        "it belongs to no registered repository",
        "give repo_id",
    )


@category.tool(effect="pure", touches=touching("records"))
async def list_tasks(
    here: Context,
    project_id: str | None = None,
    status: TaskStatus | None = None,
    show_all: bool = False,
    include_completed: bool = False,
    completed_only: bool = False,
    display_mode: format.Display = "flat",
    show_dependencies: bool = False,
) -> Result:
    """List tasks, all or by project or status. Completed ones only when asked for; else `left_out` counts them."""
    where: dict[str, Any] = {} if show_all else {"archived": False}
    if project_id:
        where["project_id"] = (await lookup.project(here.store, project_id)).id
    if status or completed_only:
        where["status"] = status or "COMPLETED"
    left: Result = {}
    if not (status or completed_only or show_all or include_completed):
        done = await here.store.count(Task, {**where, "status": "COMPLETED"})
        left = {"left_out": {"completed": done, "see": "include_completed"}} if done else {}
        where["status"] = ("ne", "COMPLETED")
    rows = await here.store.select(Task, where, order=[("created_at", "desc")], limit=MOST)
    total = await here.store.count(Task, where)
    if display_mode != "flat":
        ids = {task.id for task in rows}
        tops = [task for task in rows if task.parent_id not in ids]
        text = format.compact(rows) if display_mode == "compact" else format.tree(rows, tops)
        return {"display": text, "total": total} | left | _cut(total) | marked(rows)
    names = await lookup.projects(here.store)
    tasks = [format.line(task, names.get(task.project_id, "")) for task in rows]
    if show_dependencies:
        for told, task in zip(tasks, rows, strict=True):
            whole = await format.full(here.store, task, "")
            told["depends_on"] = whole.get("depends_on", [])
    return {"tasks": tasks, "total": total} | left | _cut(total) | marked(rows)


def _edited(arguments: dict[str, Any]) -> str:
    """The task, and a budget or a status where one is given."""
    budget, status = arguments.get("budget", ""), arguments.get("status")
    return words(
        arguments.get("task_id", ""),
        *(("budget", dollars(budget)) if budget != "" else ()),
        *(("status", status) if status else ()),
    )


def _cut(total: int) -> Result:
    return {"warning": f"only the newest {MOST} are listed"} if total > MOST else {}


@category.tool(
    effect="idempotent",
    detail=_edited,
    touches=touching("records", budget="money", status="approval"),
)
async def edit_task(
    here: Context,
    task_id: str,
    project_id: str | None = None,
    title: Title | None = None,
    description: TaskText | None = None,
    priority: Priority | None = None,
    task_type: TaskType | Literal["None"] | None = None,
    status: StatusOverride | None = None,
    max_retries: Annotated[int, Field(ge=0, le=100)] | None = None,
    verification_type: Verification | None = None,
    profile_id: str | None = "",
    budget: Annotated[float, Field(ge=0, le=1_000_000)] | Literal[""] | None = "",
) -> Result:
    """Edit a task: only what is given changes. A status overrides; null clears profile_id or budget (dollars).

    Verification by auto_test: completed where all its checks passed, else a person looks at it; by human: a person
    always does.
    """
    if verification_type == "qa_agent":
        raise ToolError(
            "no agent checks the work of others yet",
            "qa_agent would wait for ever",
            "choose auto_test or human",
        )
    task = await lookup.task(here.store, task_id)
    if status not in (None, task.status):
        lookup.need_word(here, task)
    plain = {
        "title": title,
        "description": description,
        "priority": priority,
        "max_retries": max_retries,
        "verification": verification_type,
    }
    changes: dict[str, Any] = {name: value for name, value in plain.items() if value is not None}
    if task_type is not None:
        changes["type"] = None if task_type == "None" else task_type
    if profile_id != "":
        changes["profile_id"] = (await lookup.profile(here.store, profile_id)).id if profile_id else None
    if budget != "":
        changes["budget"] = budget
    if project_id is not None:
        changes |= await _moved(here, task, project_id)
    if not changes and status is None:
        raise ToolError("nothing is to be changed", "no field was given", "give at least one")
    if changes:
        task = await lookup.change(here.store, task, **changes, origin=here.origin.over(task.origin).kept())
    if status is not None and status != task.status:
        await states.override(here.store, task, status, here.agent, here.user_id, _key(here, task))
    fields = [{"type": "task_type", "verification": "verification_type"}.get(name, name) for name in changes]
    return {"updated": task.slug, "fields": [*fields, *(["status"] if status else [])]}


async def _moved(here: Context, task: Task, project_id: str) -> dict[str, Any]:
    """What changes when a task goes to another project: it leaves the repository and workspace of the old one."""
    project: Project = await lookup.project(here.store, project_id)
    if project.id == task.project_id:
        return {"project_id": project.id}
    if task.status in ("ASSIGNED", "IN_PROGRESS"):
        raise ToolError(
            f"{task.slug} cannot be moved", f"it is {task.status}", "stop it first with stop_task"
        )
    gone: dict[str, UUID | None] = {"repo_id": None, "workspace_id": None}
    return {"project_id": project.id, **gone}


def _key(here: Context, task: Task) -> str:
    return here.step_id or f"{task.slug}:{task.version}"


@category.tool(effect="pure", touches=touching("records"))
async def get_task(here: Context, task_id: str) -> Result:
    """Get a task in full: its description and, once it has one, its result."""
    task = await lookup.task(here.store, task_id)
    project = (await lookup.projects(here.store)).get(task.project_id, "")
    told = await format.full(here.store, task, project)
    if task.repo_id and (repo := await lookup.first(here.store, Repo, id=task.repo_id)):
        told["repo"] = repo.name
    order: list[tuple[str, Literal["asc", "desc"]]] = [("created_at", "desc")]
    results = await here.store.select(TaskResult, {"task_id": task.id}, order=order, limit=1)
    if results:
        told["result"] = results[0].model_dump(mode="json", include=RESULT)
    return told | marked([task, *results])
