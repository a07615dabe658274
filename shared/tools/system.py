"""Token usage, config, diagnostics, task lifecycle."""

from __future__ import annotations

from shared.errors import ToolError
from shared.store.records import Task
from shared.tasks import machine
from shared.tools.context import Context
from shared.tools.registry import Category, Result

category = Category("system", "Token usage, config, diagnostics, task lifecycle ops, prompts")


@category.tool(effect="idempotent")
async def stop_task(here: Context, task_id: str) -> Result:
    """Stop a task that is waiting for its worker or in progress. What was made is kept on its branch."""
    found = await here.store.select(Task, {"slug": task_id}, limit=1)
    if not found:
        raise ToolError(f"there is no task called {task_id!r}", "", "list_tasks shows them")
    task = found[0]
    if here.cluster is None or not task.assignee or not task.request_id:
        raise ToolError(f"the task {task_id} cannot be stopped", f"it is {task.status} and no worker has it")
    how = await here.cluster.stop(task.assignee, task.request_id)
    if how == "gone":
        raise ToolError(f"the task {task_id} does not run", f"it is {task.status}")
    if how == "withdrawn":
        await machine.move(here.store, task.id, "stopped", here.agent, here.step_id)
    return {"stopped": task_id, "was": "waiting" if how == "withdrawn" else "running"}
