"""Tools of categories core and memory: search what is known of a project, and keep its profile.

Recall is by full text, computed at each search. What needs a model (to write a profile anew, to merge
memories) or embeddings is not there yet, and its tools say so.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from shared.conversation import prompt
from shared.guard.touching import touching
from shared.store.origin import MADE, mark, marked
from shared.store.query import IN_LIMIT
from shared.store.records import ConversationMessage, Memory, Note, Project, ProjectProfile, Task, TaskResult
from shared.store.row import now
from shared.tools import ranking, rows
from shared.tools.context import Context
from shared.tools.registry import Result
from shared.tools.tiers import tier

core = tier("core")
category = tier("memory")

READ = 5000  # the newest memories of a project that one search looks through
SAID = 2000  # the newest messages of a conversation, likewise
SHOWN = 1500  # characters of one hit
HISTORY = 50  # completed tasks from which a profile can be written anew
Profile = Annotated[str, Field(max_length=200_000)]


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
    foreign: str = ""


@core.tool(effect="pure", detail=_project, touches=touching("records"))
async def memory_search(
    here: Context,
    project_id: str,
    query: Annotated[str, Field(min_length=1, max_length=4000)],
    top_k: Annotated[int, Field(ge=1, le=100)] = 10,
) -> Result:
    """Search project memory: memories, notes, the profile, outcomes of tasks, what was said."""
    project = await rows.project(here.store, project_id)
    texts = await _texts(here, project) + await _said(here)
    found = ranking.rank(query, [f"{text.title}\n{text.title}\n{text.body}" for text in texts])
    return {
        "project_id": project.slug,
        "results": [_hit(texts[place], score) for place, score in found[:top_k]],
        "total": len(found),
        "method": "full text",
        **next(({MADE: texts[at].foreign} for at, _ in found[:top_k] if texts[at].foreign), {}),
    }


def _hit(text: _Text, score: float) -> dict[str, Any]:
    told = {"kind": text.kind, "title": text.title, "text": text.body[:SHOWN], "score": score, "at": text.at}
    told |= {"source": text.source} if text.source else {}
    told |= {MADE: text.foreign} if text.foreign else {}
    return told | ({"truncated": True} if len(text.body) > SHOWN else {})


async def _texts(here: Context, project: Project) -> list[_Text]:
    texts = [
        _Text(
            *(row.kind, row.subject, f"{row.body}\n{row.context}".strip(), _at(row.created_at)),
            source=row.source or "",
            foreign=mark(row),
        )
        for row in await _memories(here, project)
    ]
    for note in await here.store.select(Note, {"project_id": project.id}):
        at = _at(note.updated_at)
        texts.append(_Text("note", note.title, note.body, at, f"notes/{note.slug}.md", mark(note)))
    if profile := await rows.first(here.store, ProjectProfile, project_id=project.id):
        at = _at(profile.updated_at)
        texts.append(_Text("profile", project.name, profile.body, at, "view_profile", mark(profile)))
    return texts + await _outcomes(here, project)


async def _said(here: Context) -> list[_Text]:
    """What was said in this conversation, also what the model is not shown any more."""
    if not here.session_id:
        return []
    where: dict[str, Any] = {"session_id": here.session_id}
    order: Any = [("seq", "desc")]
    found = await here.store.select(ConversationMessage, where, order=order, limit=SAID)
    words = [(row, prompt.spoken(row.content)) for row in found]
    return [
        _Text(
            "conversation",
            row.user_name or row.user_id or row.role,
            text,
            _at(row.created_at),
            f"message {row.seq}",
        )
        for row, text in words
        if text.strip()
    ]


def _at(time: Any) -> str:
    return str(time.isoformat(timespec="seconds"))


async def _memories(here: Context, project: Project) -> list[Memory]:
    """The valid memories of the project and of all projects, the newest first."""
    order: Any = [("created_at", "desc")]
    valid: dict[str, Any] = {"archived": False, "valid_to": None}
    own = await here.store.select(Memory, {**valid, "project_id": project.id}, order=order, limit=READ)
    shared = await here.store.select(Memory, {**valid, "scope": "global"}, order=order, limit=READ)
    return list({row.id: row for row in (*own, *shared)}.values())


async def _outcomes(here: Context, project: Project) -> list[_Text]:
    """What the project's newest tasks came to."""
    order: Any = [("created_at", "desc")]
    tasks = await here.store.select(Task, {"project_id": project.id}, order=order, limit=500)
    said: dict[Any, TaskResult] = {}
    for at in range(0, len(tasks), IN_LIMIT):
        ids = [task.id for task in tasks[at : at + IN_LIMIT]]
        for result in await here.store.select(
            TaskResult, {"task_id": ("in", ids)}, order=[("created_at", "asc")]
        ):
            said[result.task_id] = result
    return [
        _Text(
            "task",
            task.title,
            f"{task.description}\n{_outcome(said.get(task.id))}".strip(),
            _at(task.updated_at),
            task.slug,
            mark(task, said.get(task.id)),
        )
        for task in tasks
    ]


def _outcome(result: TaskResult | None) -> str:
    return f"{result.summary} {result.error}".strip() if result else ""


@category.tool(effect="pure", detail=_project, touches=touching("records"))
async def memory_stats(here: Context, project_id: str) -> Result:
    """Get memory index statistics for a project."""
    project = await rows.project(here.store, project_id)
    kept = await here.store.select(Memory, {"project_id": project.id})
    profile = await rows.first(here.store, ProjectProfile, project_id=project.id)
    return {
        "project_id": project.slug,
        "memories": dict(Counter(row.kind for row in kept if not row.archived)),
        "archived": sum(row.archived for row in kept),
        "superseded": sum(row.valid_to is not None for row in kept),
        "notes": await here.store.count(Note, {"project_id": project.id}),
        "tasks": await here.store.count(Task, {"project_id": project.id}),
        "profile_bytes": len(profile.body.encode()) if profile else 0,
        "searchable": len(await _texts(here, project)),
        "method": "full text",
        "embeddings": False,
    }


@category.tool(effect="pure", detail=_project, touches=touching("records"))
async def memory_reindex(here: Context, project_id: str) -> Result:
    """Force a full reindex of a project's memory."""
    project = await rows.project(here.store, project_id)
    return {
        "project_id": project.slug,
        "reindexed": len(await _texts(here, project)),
        "message": "full text is computed at each search: there is no index that could be out of date",
    }


@category.tool(effect="idempotent", detail=_project, touches=touching("records"))
async def compact_memory(here: Context, project_id: str) -> Result:
    """Trigger memory compaction: what was superseded, and what says the same again, is archived."""
    project = await rows.project(here.store, project_id)
    order: Any = [("created_at", "desc")]
    kept = await here.store.select(Memory, {"project_id": project.id, "archived": False}, order=order)
    seen: set[tuple[str, str, str]] = set()
    gone = []
    for row in kept:
        key = (row.kind, row.subject.casefold(), " ".join(row.body.casefold().split()))
        if key in seen or (row.valid_to is not None and row.valid_to <= now()):
            gone.append(row.id)
        else:
            seen.add(key)
    for at in range(0, len(gone), IN_LIMIT):
        await here.store.update(Memory, {"archived": True}, {"id": ("in", gone[at : at + IN_LIMIT])})
    return {
        "project_id": project.slug,
        "archived": len(gone),
        "kept": len(kept) - len(gone),
        "message": "memories are not merged by a model yet: only repetitions and corrected ones were archived",
    }


@category.tool(effect="pure", detail=_project, touches=touching("records"))
async def view_profile(here: Context, project_id: str) -> Result:
    """View the project profile: what is understood of its architecture, conventions, decisions and pitfalls."""
    project = await rows.project(here.store, project_id)
    profile = await rows.first(here.store, ProjectProfile, project_id=project.id)
    if profile is None:
        message = "there is no profile yet: write one with edit_project_profile"
        return {"project_id": project.slug, "content": "", "message": message}
    told = {"content": profile.body, "version": profile.version, "modified": _at(profile.updated_at)}
    return {"project_id": project.slug, **told, **marked([profile])}


@category.tool(effect="idempotent", detail=_project, touches=touching("records"))
async def edit_project_profile(here: Context, project_id: str, content: Profile) -> Result:
    """Replace the project profile with new content."""
    project = await rows.project(here.store, project_id)
    profile = await rows.first(here.store, ProjectProfile, project_id=project.id)
    if profile is None or profile.body != content:
        if profile is not None and here.by_person:
            profile = profile.model_copy(update={"origin": here.origin.kept()})  # nothing else is left of it
        await rows.keep_profile(here.store, project, profile, content, here.origin)
    return {"updated": project.slug, "size_bytes": len(content.encode())}


@category.tool(effect="pure", detail=_project, touches=touching("records"))
async def regenerate_profile(here: Context, project_id: str) -> Result:
    """Force LLM regeneration of the project profile. Not run by itself yet: it hands you the task history for it."""
    project = await rows.project(here.store, project_id)
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
