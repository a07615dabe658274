"""Tasks, repositories and projects, as the Store has them; works with the cluster down."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from shared.errors import PromptDockError, ToolError, UsageError
from shared.store.base import Store
from shared.store.origin import PERSON, Origin
from shared.store.records import Project, Repo, Task, TaskEvent, TaskResult
from shared.visitor.visitor import Visitor

if TYPE_CHECKING:
    from shared.tasks.repos import Repos

Card = dict[str, Any]
_FATES = ("merged", "discarded")


async def tasks(visitor: Visitor, limit: int = 50, everything: bool = False) -> list[Card]:
    """The newest tasks first; those that are archived only with `everything`."""
    store = await visitor.store()
    where = {} if everything else {"archived": False}
    rows = await store.select(Task, where, order=[("created_at", "desc")], limit=limit)
    slugs = {row.id: row.slug for row in await store.select(Project)}
    became = await _became(store, [row.id for row in rows])
    return [_card(row, slugs, became.get(row.id)) for row in rows]


async def _became(store: Store, tasks: list[UUID]) -> dict[UUID, str]:
    """What became of the work of each: merged or discarded; those that began again since are left out."""
    if not tasks:
        return {}
    where = {"task_id": ("in", tasks), "event": ("in", [*_FATES, "started"])}
    events = await store.select(TaskEvent, where, order=[("created_at", "asc")])
    last = {event.task_id: event.event for event in events}
    return {id: event for id, event in last.items() if event in _FATES}


def _card(row: Task, projects: dict[UUID, str], became: str | None) -> Card:
    return {
        "id": row.slug,
        "title": row.title,
        "status": row.status,
        "work": became,
        "assignee": row.assignee,
        "project": projects.get(row.project_id, ""),
        "branch": row.branch,
        "error": row.error or None,
        "made": _made(row) or None,
        "created_at": row.created_at.isoformat(),
        "ended_at": row.ended_at.isoformat() if row.ended_at else None,
    }


def _made(row: Task) -> str:
    """Who made it, and after reading what: `made by planner after reading view`."""
    made = Origin.of(row.origin)
    by = f"made by {made.by}" if made.by not in ("", PERSON) else ""
    read = f"after reading {made.foreign}" if made.foreign else ""
    return f"{by or 'made'} {read}".strip() if by or read else ""


def state(card: Card) -> str:
    """A task's state, with what became of its work: `COMPLETED, merged`."""
    return f"{card['status']}, {card['work']}" if card["work"] else str(card["status"])


async def _find(visitor: Visitor, name: str) -> Task:
    store = await visitor.store()
    found = await store.select(Task, {"slug": name}, limit=1)
    if not found:
        raise UsageError(f"there is no task {name!r}", "", "promptdock tasks list shows them")
    return found[0]


async def task(visitor: Visitor, name: str) -> Card:
    """A task with its history, and what each attempt did as the harness recorded it."""
    row = await _find(visitor, name)
    store = await visitor.store()
    events = await store.select(TaskEvent, {"task_id": row.id}, order=[("created_at", "asc")])
    results = await store.select(TaskResult, {"task_id": row.id}, order=[("created_at", "asc")])
    slugs = {project.id: project.slug for project in await store.select(Project)}
    became = await _became(store, [row.id])
    return _card(row, slugs, became.get(row.id)) | {
        "description": row.description,
        "history": [
            {
                "at": event.created_at.isoformat(),
                "event": event.event,
                "from": event.from_status,
                "to": event.to_status,
                "actor": event.actor,
            }
            for event in events
        ],
        "results": [_result(result) for result in results],
    }


def _result(row: TaskResult) -> Card:
    return {
        "agent": row.agent,
        "summary": row.summary,
        "branch": row.branch,
        "base": row.base_commit,
        "commits": row.commits,
        "files_changed": row.files_changed,
        "diff_stat": row.diff_stat,
        "commands": row.commands,
        "tokens": row.tokens_used,
        "cost": row.cost,
        "verified": row.verified,
        "clashes": row.receipt.get("clashes") or [],
        "error": row.error or None,
    }


async def repos(visitor: Visitor) -> list[Card]:
    """The registered repositories."""
    store = await visitor.store()
    slugs = {row.id: row.slug for row in await store.select(Project)}
    return [
        {
            "name": row.name,
            "project": slugs.get(row.project_id, ""),
            "kind": row.kind,
            "url": row.url,
            "path": row.path,
            "default_branch": row.default_branch,
        }
        for row in await store.select(Repo, order=[("name", "asc")])
    ]


async def diff(visitor: Visitor, name: str) -> str:
    """What a task changed, by git, between the base and the last commit of its receipt."""
    row = await _find(visitor, name)
    store = await visitor.store()
    results = await store.select(TaskResult, {"task_id": row.id}, order=[("created_at", "desc")], limit=1)
    if not results or not results[0].commits or not results[0].base_commit:
        raise UsageError(f"the task {name} has made no commit", f"it is {row.status}")
    made = results[0]
    for repo in await _candidates(visitor, row):
        try:
            git = await _repos(visitor).source(repo)
            if await git.commit_of(made.commits[-1]):
                return await git.diff(str(made.base_commit), to=made.commits[-1])
        except ToolError as error:
            raise PromptDockError(f"the changes of {name} cannot be shown", str(error)) from error
    raise UsageError(
        f"the commits of {name} are in no repository here",
        f"its branch is {made.branch}",
        "fetch it where it was made",
    )


async def _candidates(visitor: Visitor, row: Task) -> list[Repo]:
    store = await visitor.store()
    where: dict[str, Any] = {"id": row.repo_id} if row.repo_id else {"project_id": row.project_id}
    return await store.select(Repo, where)


def _repos(visitor: Visitor) -> Repos:
    """The repositories as they lie on this home; git is only read here."""
    from shared.guard.homeid import home_id
    from shared.guard.sandbox import Sandbox
    from shared.tasks.repos import Repos

    home = visitor.settings.home
    return Repos(
        home,
        home_id(home),
        Sandbox.probe(visitor.settings.sandbox, [home]),
        hosts=visitor.settings.allowed_hosts,
    )
