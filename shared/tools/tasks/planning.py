"""Tools of category planning: hand in an ordered plan, and write it as tasks."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from shared.errors import ToolError
from shared.guard.permissions.touching import touching
from shared.tools import lookup
from shared.tools.context import Context
from shared.tools.registry import Category, Result
from shared.tools.tasks import plans
from shared.tools.tasks.plans import PlannedTask

category = Category("planning", "Hand in plans, and write them as tasks")

PLAN = "plan_work"
Strategy = Literal["direct", "step_by_step", "reason_act", "reflect_and_revise"]
StepTitle = Annotated[str, Field(min_length=1, max_length=400)]


@category.tool(effect="pure", touches=touching("records"))
async def plan_work(
    context: Context, strategy: Strategy, steps: Annotated[list[StepTitle], Field(max_length=12)]
) -> Result:
    """Say how this request is worked on: the strategy, and its steps in order. Nothing is written or assigned by it."""
    if strategy == "direct":
        return {"strategy": strategy, "steps": []}
    if not steps:
        raise ToolError(
            f"the strategy {strategy} needs steps", "none is named", "name them, or choose direct"
        )
    return {"strategy": strategy, "steps": [" ".join(step.split()) for step in steps]}


@category.tool(effect="keyed", touches=touching("records"))
async def submit_plan(
    context: Context,
    summary: str,
    tasks: list[PlannedTask],
    risks: tuple[str, ...] = (),
    write: bool = False,
) -> Result:
    """Hand in a plan: its tasks in the order in which they are to be done; call it once, at the end.

    `checks` are commands whose success shows that a task is done, beside those that the repository names.
    Each task names its agent, what must hold when it is done (`acceptance`), and by index the earlier tasks
    that it depends on (`depends_on`, from 0). `write` also writes the tasks, so that they are scheduled; then
    `repo` names the repository of a task where more than one fits its agent.
    """
    plans.validate(tasks)
    await plans.workers(context, tasks)
    plan: dict[str, Any] = {
        "summary": summary,
        "tasks": [{"index": index, **task.plain} for index, task in enumerate(tasks)],
        "risks": list(risks),
    }
    answer: Result = {"plan": plan, "order": list(range(len(tasks)))}
    if write and _is_approved_later(context):
        answer["note"] = "the person approves this plan first: its tasks are written then"
    elif write:
        answer["written"] = await plans.write(context, tasks)
        if why := lookup.resting(await lookup.project(context.store, context.project_id)):
            answer["warning"] = why
    return answer


def _is_approved_later(context: Context) -> bool:
    """Whether it is the work of a task to plan: what comes of it waits for the person."""
    return context.task is not None and context.task.type == "plan"
