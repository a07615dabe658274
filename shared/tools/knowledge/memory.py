"""Tools of categories core and memory: search what is known of a project, and keep its profile.

Recall is by the full text that the Store keeps with each row. What needs a model (to write a profile anew, to merge
memories) is not there yet, and its tools say so. Vectors found no more than words do (docs/memory.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, get_args
from uuid import UUID

from pydantic import Field

from shared.guard.permissions.touching import touching
from shared.memory import recall, scope, upkeep
from shared.store.origin import MADE, mark, marked
from shared.store.query import IN_LIMIT
from shared.store.records import Memory, MemoryKind, Note, Project, ProjectProfile, Task, TaskResult
from shared.tools import lookup
from shared.tools.categories import tier
from shared.tools.context import Context
from shared.tools.registry import Result

core = tier("core")
category = tier("memory")

TASKS = 500  # the newest tasks of a project whose outcomes are searched
SHOWN = 1500  # characters of one hit
HISTORY = 50  # completed tasks from which a profile can be written anew
MemoryText = Annotated[str, Field(max_length=200_000)]


def _project(arguments: dict[str, Any]) -> str:
    return str(arguments.get("project_id") or "")


@dataclass(frozen=True)
class _Text:
    """Something that is known: what kind it is, what it is about, what it says, when and whence."""

    kind: str
    title: str
    body: str
    at: str
    source: str
    score: float
    foreign: str = ""


Hits = tuple[list[_Text], int]  # and how many there are in all


@core.tool(effect="pure", detail=_project, touches=touching("records"))
async def memory_search(
    here: Context,
    project_id: str,
    query: Annotated[str, Field(min_length=1, max_length=4000)],
    top_k: Annotated[int, Field(ge=1, le=100)] = 10,
) -> Result:
    """Search project memory: memories, notes, the profile, outcomes of tasks, what was said."""
    project = await lookup.project(here.store, project_id)
    parts = [
        await _memories(here, project, query, top_k),
        await _notes(here, project, query, top_k),
        await _profile(here, project, query),
        await _outcomes(here, project, query),
        await _said(here, query, top_k),
    ]
    found = sorted((text for texts, _ in parts for text in texts), key=lambda text: -text.score)[:top_k]
    return {
        "project_id": project.slug,
        "results": [_hit(text) for text in found],
        "total": sum(total for _, total in parts),
        "method": "full text",
        **next(({MADE: text.foreign} for text in found if text.foreign), {}),
    }


def _hit(text: _Text) -> dict[str, Any]:
    result: dict[str, Any] = {"kind": text.kind, "title": text.title, "text": text.body[:SHOWN]}
    result |= {"score": float(f"{text.score:.4g}"), "at": text.at}
    result |= {"source": text.source} if text.source else {}
    result |= {MADE: text.foreign} if text.foreign else {}
    return result | ({"truncated": True} if len(text.body) > SHOWN else {})


async def _memories(here: Context, project: Project, query: str, top_k: int) -> Hits:
    """The valid memories of the person, in the project and everywhere, and what others share in it."""
    texts: list[_Text] = []
    total = 0
    for where in await _valid(here, project):
        found = await here.store.search(Memory, query, where, top_k)
        total += found.total
        for row, score in found.rows:
            if row.kind == "turn" and row.session_id == here.session_id:
                continue  # the conversation itself is searched too
            body, at = f"{row.body}\n{row.context}".strip(), _at(row.created_at)
            texts.append(_Text(row.kind, row.subject, body, at, row.source or "", score, mark(row)))
    return texts, total


async def _own(here: Context, project: Project) -> list[dict[str, Any]]:
    """Conditions of which no memory fulfils two: the person's own, what is shared with them, and what is nobody's."""
    nobody: list[dict[str, Any]] = [
        {"user_id": None, "project_id": project.id, "scope": "project"},
        {"user_id": None, "scope": "global"},
    ]
    person = here.owner[0]
    return [*nobody, *((await scope.of(here.store, person, project.slug)).conditions() if person else ())]


async def _valid(here: Context, project: Project) -> list[dict[str, Any]]:
    """The same for what is neither corrected nor put away."""
    valid: dict[str, Any] = {"archived": False, "valid_to": None}
    return [{**valid, **where} for where in await _own(here, project)]


async def _notes(here: Context, project: Project, query: str, top_k: int) -> Hits:
    found = await here.store.search(Note, query, {"project_id": project.id}, top_k)
    return [
        _Text("note", row.title, row.body, _at(row.updated_at), f"notes/{row.slug}.md", score, mark(row))
        for row, score in found.rows
    ], found.total


async def _profile(here: Context, project: Project, query: str) -> Hits:
    found = await here.store.search(ProjectProfile, query, {"project_id": project.id}, 1)
    return [
        _Text("profile", project.name, row.body, _at(row.updated_at), "view_profile", score, mark(row))
        for row, score in found.rows
    ], found.total


async def _outcomes(here: Context, project: Project, query: str) -> Hits:
    """What the project's newest tasks were to do, and what they came to."""
    order: Any = [("created_at", "desc")]
    tasks = {
        task.id: task
        for task in await here.store.select(Task, {"project_id": project.id}, order=order, limit=TASKS)
    }
    asked = await here.store.search(Task, query, {"project_id": project.id}, TASKS)
    scores = {task.id: score for task, score in asked.rows if task.id in tasks}
    ids = list(tasks)
    for at in range(0, len(ids), IN_LIMIT):
        where = {"task_id": ("in", ids[at : at + IN_LIMIT])}
        came = await here.store.search(TaskResult, query, where, IN_LIMIT)
        newest = await _newest(here, {row.task_id for row, _ in came.rows})
        for row, score in came.rows:
            if (last := newest.get(row.task_id)) and last.id == row.id:  # an earlier attempt is no outcome
                scores[row.task_id] = scores.get(row.task_id, 0.0) + score
    said = await _newest(here, scores)
    return [
        _Text(
            "task",
            tasks[id].title,
            f"{tasks[id].description}\n{_outcome(said.get(id))}".strip(),
            _at(tasks[id].updated_at),
            tasks[id].slug,
            scores[id],
            mark(tasks[id], said.get(id)),
        )
        for id in scores
    ], len(scores)


async def _newest(here: Context, tasks: Iterable[UUID]) -> dict[UUID, TaskResult]:
    """The newest result of each task that has one."""
    ids = list(tasks)
    order: Any = [("created_at", "asc")]
    said: dict[UUID, TaskResult] = {}
    for at in range(0, len(ids), IN_LIMIT):
        where = {"task_id": ("in", ids[at : at + IN_LIMIT])}
        for result in await here.store.select(TaskResult, where, order=order):
            said[result.task_id] = result
    return said


async def _said(here: Context, query: str, top_k: int) -> Hits:
    """What was said in this conversation, also what the model is not shown any more."""
    if not here.session_id:
        return [], 0
    found = await recall.search_session(here.store, query, here.session_id, top_k)
    return [
        _Text("conversation", item.subject, item.text, _at(item.at), f"message {item.message_id}", item.score)
        for item in found
    ], len(found)


def _at(time: Any) -> str:
    return str(time.isoformat(timespec="seconds"))


async def _searchable(here: Context, project: Project) -> int:
    """How many texts a search of this project looks through, without the conversation."""
    own: dict[str, Any] = {"project_id": project.id}
    counts = [await here.store.count(Memory, where) for where in await _valid(here, project)]
    counts += [await here.store.count(kind, own) for kind in (Note, ProjectProfile)]
    return sum(counts) + min(TASKS, await here.store.count(Task, own))


async def _count(here: Context, own: list[dict[str, Any]], **more: Any) -> int:
    return sum([await here.store.count(Memory, {**where, **more}) for where in own])


def _outcome(result: TaskResult | None) -> str:
    return f"{result.summary} {result.error}".strip() if result else ""


@category.tool(effect="pure", detail=_project, touches=touching("records"))
async def memory_stats(here: Context, project_id: str) -> Result:
    """Get memory index statistics for a project."""
    project = await lookup.project(here.store, project_id)
    own = await _own(here, project)
    kinds = {kind: await _count(here, own, kind=kind, archived=False) for kind in get_args(MemoryKind)}
    profile = await lookup.first(here.store, ProjectProfile, project_id=project.id)
    return {
        "project_id": project.slug,
        "memories": {kind: count for kind, count in kinds.items() if count},
        "archived": await _count(here, own, archived=True),
        "superseded": await _count(here, own, valid_to=("ne", None)),
        "notes": await here.store.count(Note, {"project_id": project.id}),
        "tasks": await here.store.count(Task, {"project_id": project.id}),
        "profile_bytes": len(profile.body.encode()) if profile else 0,
        "searchable": await _searchable(here, project),
        "method": "full text",
        "embeddings": False,
    }


@category.tool(effect="pure", detail=_project, touches=touching("records"))
async def memory_reindex(here: Context, project_id: str) -> Result:
    """Force a full reindex of a project's memory."""
    project = await lookup.project(here.store, project_id)
    return {
        "project_id": project.slug,
        "reindexed": await _searchable(here, project),
        "message": "the Store keeps the full text with each row: there is no index that could be out of date",
    }


@category.tool(effect="idempotent", detail=_project, touches=touching("records"))
async def compact_memory(here: Context, project_id: str) -> Result:
    """Trigger memory compaction: what was superseded, and what says the same again, is archived."""
    project = await lookup.project(here.store, project_id)
    done = upkeep.Upkept()
    for where in await _own(here, project):
        done += await upkeep.consolidate(here.store, where)
    return {
        "project_id": project.slug,
        "archived": done.archived,
        "kept": done.kept,
        "message": "what was corrected, what says the same again and what faded was archived; nothing is deleted",
    }


@category.tool(effect="pure", detail=_project, touches=touching("records"))
async def view_profile(here: Context, project_id: str) -> Result:
    """View the project profile: what is understood of its architecture, conventions, decisions and pitfalls."""
    project = await lookup.project(here.store, project_id)
    profile = await lookup.first(here.store, ProjectProfile, project_id=project.id)
    if profile is None:
        message = "there is no profile yet: write one with edit_project_profile"
        return {"project_id": project.slug, "content": "", "message": message}
    result = {"content": profile.body, "version": profile.version, "modified": _at(profile.updated_at)}
    return {"project_id": project.slug, **result, **marked([profile])}


@category.tool(effect="idempotent", detail=_project, touches=touching("records"))
async def edit_project_profile(here: Context, project_id: str, content: MemoryText) -> Result:
    """Replace the project profile with new content."""
    project = await lookup.project(here.store, project_id)
    profile = await lookup.first(here.store, ProjectProfile, project_id=project.id)
    if profile is None or profile.body != content:
        if profile is not None and here.by_person:
            profile = profile.model_copy(update={"origin": here.origin.kept()})  # nothing else is left of it
        await lookup.keep_profile(here.store, project, profile, content, here.origin)
    return {"updated": project.slug, "size_bytes": len(content.encode())}


@category.tool(effect="pure", detail=_project, touches=touching("records"))
async def regenerate_profile(here: Context, project_id: str) -> Result:
    """Force LLM regeneration of the project profile. Not run by itself yet: it hands you the task history for it."""
    project = await lookup.project(here.store, project_id)
    order: Any = [("ended_at", "desc")]
    where = {"project_id": project.id, "status": "COMPLETED"}
    history = []
    foreign: dict[str, Any] = {}
    for task in await here.store.select(Task, where, order=order, limit=HISTORY):
        results = await here.store.select(
            TaskResult, {"task_id": task.id}, order=[("created_at", "desc")], limit=1
        )
        foreign = foreign or marked([task, *results])
        history.append(
            {
                "task_id": task.slug,
                "title": task.title,
                "summary": _outcome(results[0] if results else None)[:500],
            }
        )
    return {
        "project_id": project.slug,
        "regenerated": False,
        "message": "no model writes it by itself yet: write it from this history with edit_project_profile",
        "history": history,
        **foreign,
    }
