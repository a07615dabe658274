"""Tasks as a board shows them: columns by what they wait for, each card with what tells it apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, get_args
from uuid import UUID

from shared.client.client import Client
from shared.store.records import Project, Task, TaskResult, project_key
from shared.tasks.fate import fates, waiting

_ENDED = 30  # tasks that are done which a board shows
_OPEN = 500  # tasks that are not which it shows
_BY_ID = 50

ColumnName = Literal["ready", "running", "needs you", "review", "done"]
_STATES: Mapping[str, ColumnName] = {
    "DEFINED": "ready", "READY": "ready", "ASSIGNED": "running", "IN_PROGRESS": "running", "VERIFYING": "running",
    "WAITING_INPUT": "needs you", "PAUSED": "needs you", "AWAITING_PLAN_APPROVAL": "needs you", "BLOCKED": "needs you",
    "FAILED": "needs you", "AWAITING_APPROVAL": "review", "COMPLETED": "done",
}  # fmt: skip


@dataclass(frozen=True)
class BoardCard:
    """One task. `work` says what became of it: merged, discarded, to merge, to review."""

    id: str
    title: str
    status: str
    assignee: str
    project: str
    work: str
    says: str  # its question, or what went wrong
    since: datetime
    added: int = 0
    removed: int = 0
    files: int = 0
    cost: float = 0.0


@dataclass(frozen=True)
class BoardColumn:
    """Cards in one column, the newest first; of those that are done not all."""

    name: ColumnName
    cards: list[BoardCard] = field(default_factory=list)


async def board(client: Client, project: str = "") -> list[BoardColumn]:
    """All columns, empty ones too. Reads the Store."""
    store = await client.store()
    where: dict[str, Any] = {"archived": False}
    if project:
        where["project_id"] = project_key(project)
    newest: Any = [("updated_at", "desc")]
    rows = await store.select(Task, where | {"status": ("ne", "COMPLETED")}, order=newest, limit=_OPEN)
    rows += await store.select(Task, where | {"status": "COMPLETED"}, order=newest, limit=_ENDED)
    became = await fates(store, [row.id for row in rows])
    slugs = {row.id: row.slug for row in await store.select(Project)}
    results: dict[UUID, TaskResult] = {}
    ids = [row.id for row in rows]
    for at in range(0, len(ids), _BY_ID):
        some = {"task_id": ("in", ids[at : at + _BY_ID])}
        for result in await store.select(TaskResult, some, order=[("created_at", "asc")]):
            results[result.task_id] = result
    columns = {name: BoardColumn(name) for name in get_args(ColumnName)}
    for row in rows:
        card = _card(row, became.get(row.id) or "", slugs.get(row.project_id, ""), results.get(row.id))
        columns[_column(row, card.work)].cards.append(card)
    return list(columns.values())


def _column(row: Task, work: str) -> ColumnName:
    return "review" if work in ("to merge", "to review") else _STATES[row.status]


def _card(row: Task, became: str, project: str, result: TaskResult | None) -> BoardCard:
    work = became or waiting(row.status, row.branch, row.error, became or None)
    says = row.question if row.status in ("WAITING_INPUT", "PAUSED") else row.error
    since = (row.ended_at if row.status == "COMPLETED" else None) or row.started_at or row.created_at
    added, removed, files = changed(result.diff_stat) if result else (0, 0, 0)
    return BoardCard(
        *(row.slug, row.title, row.status, row.assignee or "", project, work, says, since.astimezone(UTC)),
        added=added,
        removed=removed,
        files=files,
        cost=result.cost if result else 0.0,
    )


def changed(stat: str) -> tuple[int, int, int]:
    """Lines that came and went, and files, of the last line of what `git diff --stat` says."""
    last = stat.strip().rpartition("\n")[2]
    counts = {"insertion": 0, "deletion": 0, "file": 0}
    for part in last.split(","):
        number, _, word = part.strip().partition(" ")
        for name in counts:
            if word.startswith(name) and number.isdecimal():
                counts[name] = int(number)
    return counts["insertion"], counts["deletion"], counts["file"]
