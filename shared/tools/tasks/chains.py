"""Tools of category system: how tasks hang together: parents and children, what waits for what, what is stuck."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from shared.guard.permissions.touching import touching
from shared.store.records import Project, Task, TaskDependency
from shared.tasks import graph, states
from shared.tools import lookup
from shared.tools.categories import tier
from shared.tools.context import Context
from shared.tools.registry import Result
from shared.tools.tasks import format

category = tier("system")

MOST = 500
STUCK = ("BLOCKED", "FAILED")


def _task(arguments: dict[str, Any]) -> str:
    return str(arguments.get("task_id") or "")


@category.tool(effect="pure", touches=touching("records"))
async def list_active_tasks_all_projects(here: Context, include_completed: bool = False) -> Result:
    """List active tasks across ALL projects, grouped by project."""
    where: dict[str, Any] = {"archived": False}
    if not include_completed:
        where["status"] = ("ne", "COMPLETED")
    order = [("priority", "asc"), ("created_at", "asc")]
    rows = await here.store.select(Task, where, order=order, limit=MOST)  # type: ignore[arg-type]
    groups: dict[str, list[dict[str, Any]]] = {}
    names = await lookup.projects(here.store)
    for task in rows:
        slug = names.get(task.project_id, "")
        groups.setdefault(slug, []).append(format.line(task, slug))
    result: Result = {
        "projects": [
            {"project_id": slug, "tasks": tasks, "count": len(tasks)}
            for slug, tasks in sorted(groups.items())
        ],
        "total": await here.store.count(Task, where),
    }
    return result | ({"warning": f"only {MOST} are listed"} if result["total"] > MOST else {})


@category.tool(effect="pure", detail=_task, touches=touching("records"))
async def get_task_tree(
    here: Context, task_id: str, compact: bool = False, max_depth: Annotated[int, Field(ge=0, le=50)] = 10
) -> Result:
    """Get the subtask hierarchy for a specific parent task, rendered as a tree with box-drawing characters."""
    top = await lookup.task(here.store, task_id)
    family, level = [top], [top]
    for _ in range(max_depth + 1):
        found = [await here.store.select(Task, {"parent_id": task.id}, limit=MOST) for task in level]
        known = {task.id for task in family}
        level = [task for group in found for task in group if task.id not in known][: MOST - len(family)]
        family += level
        if not level:
            break
    text = format.tree(family, [top], max_depth, compact)
    return {"task_id": top.slug, "tree": text, "count": len(text.splitlines())}


@category.tool(effect="pure", detail=_task, touches=touching("records"))
async def get_task_dependencies(here: Context, task_id: str) -> Result:
    """Get the full dependency graph for a specific task: what it depends on (upstream) and blocks (downstream)."""
    task = await lookup.task(here.store, task_id)
    up = await graph.tasks(here.store, await graph.closure(here.store, task.id, upstream=True))
    down = await graph.tasks(here.store, await graph.closure(here.store, task.id, upstream=False))
    return {
        "task_id": task.slug,
        "status": task.status,
        "upstream": _brief(up),
        "downstream": _brief(down),
        "waits": any(other.status != "COMPLETED" for other in up),
    }


def _brief(tasks: list[Task]) -> list[dict[str, Any]]:
    return [{"id": task.slug, "title": task.title, "status": task.status} for task in tasks[:MOST]]


@category.tool(effect="idempotent", detail=_task, touches=touching("records"))
async def add_dependency(here: Context, task_id: str, depends_on: str) -> Result:
    """Add a dependency: task_id will wait until depends_on is completed. Circles are refused."""
    task, needs = await lookup.task(here.store, task_id), await lookup.task(here.store, depends_on)
    key = here.step_id or f"{task.slug}:{task.version}"
    task = await graph.connect(here.store, task, needs, here.agent, key)
    return {"task_id": task.slug, "depends_on": needs.slug, "status": task.status}


@category.tool(effect="idempotent", detail=_task, touches=touching("records"))
async def remove_dependency(here: Context, task_id: str, depends_on: str) -> Result:
    """Remove a dependency: task_id will no longer wait for depends_on."""
    task, needs = await lookup.task(here.store, task_id), await lookup.task(here.store, depends_on)
    key = here.step_id or f"{task.slug}:{task.version}"
    edge = {"task_id": task.id, "depends_on_id": needs.id}
    cut = task.status == "DEFINED" and not await here.store.count(TaskDependency, edge)
    if cut and not await states.waits_for(here.store, task):
        # A crash came between the two halves: the edge is gone, and nobody has made the task ready.
        task = await states.free(here.store, task, here.agent, key) or task
        return {"task_id": task.slug, "removed": needs.slug, "status": task.status}
    task = await graph.disconnect(here.store, task, needs, here.agent, key)
    return {"task_id": task.slug, "removed": needs.slug, "status": task.status}


@category.tool(
    effect="pure", detail=lambda arguments: str(arguments.get("task_id") or ""), touches=touching("records")
)
async def get_chain_health(
    here: Context, task_id: str | None = None, project_id: str | None = None
) -> Result:
    """Check dependency chain health: which tasks are stuck because one that they need is blocked or failed."""
    if task_id:
        task = await lookup.task(here.store, task_id)
        stuck = await _downstream(here, task) if task.status in STUCK else []
        return {
            "task_id": task.slug,
            "status": task.status,
            "stuck_downstream": _brief(stuck),
            "stuck_count": len(stuck),
        }
    project: Project = await lookup.project_for(here, project_id)
    where = {"project_id": project.id, "status": ("in", list(STUCK)), "archived": False}
    chains = []
    for task in await here.store.select(Task, where, limit=MOST):
        if stuck := await _downstream(here, task):
            chains.append({**_brief([task])[0], "stuck": _brief(stuck), "stuck_count": len(stuck)})
    return {"project_id": project.slug, "stuck_chains": chains, "total_stuck_chains": len(chains)}


async def _downstream(here: Context, task: Task) -> list[Task]:
    ids = await graph.closure(here.store, task.id, upstream=False)
    return [other for other in await graph.tasks(here.store, ids) if other.status != "COMPLETED"]
