"""Tasks: which there are, what each did, and a person's word on what becomes of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import Field

from gateways.web.access import Line, Visitor
from gateways.web.api.fields import Body, Limit, Long, Name, NamePart, Offset
from gateways.web.calls import call, given
from shared.client.types import Card
from shared.client.views import visible
from shared.client.views.tasks import tasks as views
from shared.client.views.visible import Sight

router = APIRouter(prefix="/api/tasks", tags=["tasks"])

_MOST = 2000  # tasks of which those that somebody sees are chosen
# What a person can do with a task that needs no words.
_DEEDS: dict[str, str] = {
    "merge": "merge_task",
    "unmerge": "unmerge_task",
    "discard": "discard_task",
    "stop": "stop_task",
    "restart": "restart_task",
    "skip": "skip_task",
    "resume": "resume_task",
    "archive": "archive_tasks",
    "restore": "restore_task",
}
Deed = Literal["merge", "unmerge", "discard", "stop", "restart", "skip", "resume", "archive", "restore"]


class NewTask(Body):
    """A task that a person makes."""

    title: NamePart
    description: Annotated[str, Field(max_length=100_000)] = ""
    project: NamePart | None = None
    repository: NamePart | None = None
    requires_approval: bool = False
    depends_on: Annotated[list[NamePart], Field(max_length=50)] = Field(default_factory=list)


class Feedback(Body):
    """What shall be different."""

    feedback: Long


class TaskAnswer(Body):
    """The answer to what a task asks."""

    answer: Long


class Pause(Body):
    """For how long it rests."""

    hours: Annotated[float, Field(gt=0, le=24 * 366)] = 24


@router.get("")
async def listing(
    client: Line,
    visitor: Visitor,
    status: Annotated[list[str], Query(max_length=20)] = [],  # noqa: B006 - FastAPI copies it
    project: Annotated[str | None, Query(max_length=200)] = None,
    user: Annotated[str | None, Query(max_length=200)] = None,
    archived: bool = False,
    limit: Limit = 50,
    offset: Offset = 0,
) -> dict[str, Any]:
    """Tasks, the newest first: by state, project and person; `next` is the offset of the next page."""
    sight = visitor.sight
    wanted = views.Filter(status, project, user, archived, limit, offset)
    if not sight.everything:  # only what they see is cut into pages
        wanted = replace(wanted, limit=_MOST, offset=0)
    found = await views.tasks(client, wanted)
    if not sight.everything:
        seen = [card for card in found if _seen(card, sight)]
        found = seen[offset : offset + limit]
    return {"tasks": found, "next": offset + limit if len(found) == limit else None}


def _seen(card: Card, sight: Sight) -> bool:
    return sight.sees(card["user_id"]) or card["project"] in sight.projects


@router.get("/{task}")
async def one(task: Name, client: Line, visitor: Visitor) -> Card:
    """A task with its history, and the receipt of each attempt."""
    row = await visible.task(client, visitor.sight, task)
    return await views.task(client, row.slug)


@router.get("/{task}/diff")
async def diff(task: Name, client: Line, visitor: Visitor) -> dict[str, str]:
    """What it changed, as git tells it."""
    row = await visible.task(client, visitor.sight, task)
    return {"id": row.slug, "diff": await views.diff(client, row.slug)}


@router.get("/{task}/receipt")
async def receipt(task: Name, client: Line, visitor: Visitor) -> dict[str, Any]:
    """What its attempts did, from commits and commands that ran."""
    row = await visible.task(client, visitor.sight, task)
    return {"id": row.slug, "results": (await views.task(client, row.slug))["results"]}


@router.get("/{task}/review")
async def review(task: Name, client: Line, visitor: Visitor) -> dict[str, Any]:
    """What it changed by file, and whether it can be merged."""
    row = await visible.task(client, visitor.sight, task)
    return await call(client, visitor, "review_task", {"task_id": row.slug})


@router.post("", status_code=201)
async def create(asked: NewTask, client: Line, visitor: Visitor) -> dict[str, Any]:
    """Make one."""
    if asked.project:
        await visible.project(client, visitor.sight, asked.project)
    words = given(
        title=asked.title,
        description=asked.description,
        project_id=asked.project,
        repo_id=asked.repository,
        requires_approval=asked.requires_approval,
        depends_on=asked.depends_on or None,
    )
    return await call(client, visitor, "create_task", words)


@router.post("/{task}/approve")
async def approve(task: Name, client: Line, visitor: Visitor) -> dict[str, Any]:
    """Let it begin, where its plan waits; else its work is approved."""
    row = await visible.task(client, visitor.sight, task)
    tool = "approve_plan" if row.status == "AWAITING_PLAN_APPROVAL" else "approve_task"
    return await call(client, visitor, tool, {"task_id": row.slug})


@router.post("/{task}/changes")
async def changes(task: Name, asked: Feedback, client: Line, visitor: Visitor) -> dict[str, Any]:
    """Back to its worker, who reads this; a plan goes back to its planner."""
    row = await visible.task(client, visitor.sight, task)
    tool = "reject_plan" if row.status == "AWAITING_PLAN_APPROVAL" else "reopen_with_feedback"
    return await call(client, visitor, tool, {"task_id": row.slug, "feedback": asked.feedback})


@router.post("/{task}/answer")
async def answer(task: Name, asked: TaskAnswer, client: Line, visitor: Visitor) -> dict[str, Any]:
    """Answer what it asks."""
    row = await visible.task(client, visitor.sight, task)
    return await call(client, visitor, "answer_task", {"task_id": row.slug, "answer": asked.answer})


@router.post("/{task}/pause")
async def pause(task: Name, client: Line, visitor: Visitor, asked: Pause | None = None) -> dict[str, Any]:
    """Let it rest."""
    row = await visible.task(client, visitor.sight, task)
    return await call(client, visitor, "pause_task", {"task_id": row.slug, "hours": (asked or Pause()).hours})


@router.post("/{task}/{deed}")
async def do(task: Name, deed: Deed, client: Line, visitor: Visitor) -> dict[str, Any]:
    """Merge its branch, throw it away, stop it, begin anew, and so on."""
    row = await visible.task(client, visitor.sight, task)
    return await call(client, visitor, _DEEDS[deed], {"task_id": row.slug})
