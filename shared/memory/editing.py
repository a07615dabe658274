"""What a person looks at and changes of their own memory, named by an id or the beginning of one."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from shared.errors import Missing
from shared.memory import keeping
from shared.memory.bundle import success
from shared.store.base import Store
from shared.store.origin import Origin, marked
from shared.store.records import Memory, MemoryKind, Project, derived
from shared.store.row import now

SHOWN = 50  # characters of what is near, in words about what is not there
_RECENT = 1000  # rows among which the beginning of an id is looked for
_LEAST = 4  # characters of it


async def listed(
    store: Store,
    user_id: str,
    *,
    kind: MemoryKind | None = None,
    project: UUID | None = None,
    everything: bool = False,
    limit: int = 20,
) -> list[Memory]:
    """A person's own memories, the newest first; `everything` also what was corrected or put away."""
    where: dict[str, Any] = {"user_id": user_id}
    where |= {"kind": kind} if kind else {}
    where |= {"project_id": project} if project else {}
    where |= {} if everything else {"archived": False, "valid_to": None}
    return await store.select(Memory, where, order=[("created_at", "desc")], limit=limit)


async def named(store: Store, user_id: str, typed: str) -> Memory:
    """The person's own memory of this id, or of one that begins so; Missing for none, several, or another's."""
    text = typed.strip().casefold()
    try:
        found = await store.select(Memory, {"id": UUID(text), "user_id": user_id}, limit=1)
    except ValueError:
        found = []
        if len(text) >= _LEAST:
            rows = await store.select(
                Memory, {"user_id": user_id}, order=[("created_at", "desc")], limit=_RECENT
            )
            found = [row for row in rows if str(row.id).startswith(text)]
    if len(found) != 1:
        why = f"{len(found)} of yours begin so" if found else "none of yours has that id, or begins so"
        raise Missing(f"there is no memory {typed[:SHOWN]!r}", why, "promptdock memory list shows them")
    return found[0]


async def correct(store: Store, row: Memory, text: str, origin: Origin, call: str) -> Memory:
    """Put `text` in its place: the old one ends and names the new one. One call corrects once."""
    new = Memory(
        **row.model_dump(
            include={"kind", "scope", "project_id", "session_id", "user_id", "subject", "source"}
        ),
        id=corrected_id(row, call),
        body=text,
        confidence=0.95 if row.kind == "fact" else row.confidence,
        uses=row.uses,
        successes=row.successes,
        detail={**row.detail, "corrected_by": origin.by or row.user_id},
        origin=origin.kept(),
    )
    if not await store.count(Memory, {"id": new.id}):
        await store.upsert([new])
    await keeping.supersede(store, [row], new)
    return new


def corrected_id(row: Memory, call: str) -> UUID:
    """The id of what a call puts in its place."""
    return derived("memory", "correction", str(row.id), call)


async def forget(store: Store, row: Memory) -> None:
    """Delete it for good; the conversation in which it was said stays."""
    await store.delete(Memory, {"id": row.id})


async def card(store: Store, row: Memory) -> dict[str, Any]:
    """One memory as people and tools are shown it."""
    projects = await store.select(Project, {"id": row.project_id}, limit=1) if row.project_id else []
    told: dict[str, Any] = {
        "id": str(row.id),
        "kind": row.kind,
        "subject": row.subject,
        "text": row.body,
        "project": projects[0].slug if projects else "default",
        "at": row.created_at.isoformat(timespec="seconds"),
        "state": state(row),
        "session_id": row.session_id,
        "message_id": row.detail.get("message_id") if row.kind == "turn" else row.source,
    }
    if row.kind == "fact":
        told["confidence"] = row.confidence
    if row.kind == "strategy":
        told |= {"uses": row.uses, "success": round(success(row), 2)}
    for name in ("drawn_by", "corrected_by"):
        told |= {name: row.detail[name]} if row.detail.get(name) else {}
    told |= {"superseded_by": str(row.superseded_by)} if row.superseded_by else {}
    return told | marked([row])


def state(row: Memory) -> str:
    """What became of it, in a word."""
    if row.valid_to is not None and row.valid_to <= now():
        return "corrected" if row.superseded_by else "ended"
    return "archived" if row.archived else "valid"
