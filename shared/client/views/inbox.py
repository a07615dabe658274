"""All that waits for a person, over all conversations: one list, each thing with the command that answers it."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Literal
from uuid import UUID

from shared import people
from shared.bus.keys import CHATTER, HUMAN_INPUT
from shared.bus.messages import default_session
from shared.client.client import Client
from shared.client.local.typed import runnable
from shared.client.text import times
from shared.client.text.safe import line
from shared.client.views import questions as asked
from shared.client.views.permissions import approvals
from shared.errors import PromptDockError
from shared.guard.permissions import about
from shared.store.base import Store
from shared.store.query import IN_LIMIT
from shared.store.records import Approval, Project, Task, TaskDependency
from shared.tasks import questions
from shared.tasks.fate import fates

InboxKind = Literal["permission", "question", "plan", "review", "budget", "blocked", "dead"]
_REACH = 3.0  # seconds that asking the cluster may take
_MOST = 200  # tasks of one state that are looked at
_BUDGET = "the budget"  # how the words begin with which a task says that its money is spent
_WAITING = ("WAITING_INPUT", "AWAITING_PLAN_APPROVAL", "AWAITING_APPROVAL", "PAUSED", "BLOCKED")
_DONE = ("COMPLETED",)


@dataclass(frozen=True)
class Item:
    """One thing that waits. `answer` is a command; `session` and `project` say where it comes from."""

    kind: InboxKind
    id: str
    what: str
    answer: str
    since: str = ""  # ISO 8601
    session: str = ""
    project: str = ""
    options: tuple[str, ...] = ()

    def card(self) -> dict[str, Any]:
        """As JSON tells it."""
        return {**asdict(self), "options": list(self.options)}

    def lines(self) -> list[str]:
        """For people: what waits and since when, what it can be answered with, and the command that does."""
        age = f"{times.since(self.since)} old" if self.since else ""
        place = ", ".join(
            part for part in (age, self.session, self.project and f"project {self.project}") if part
        )
        return [
            f"{self.kind:10}  {line(self.what, 300)}" + (f"  ({line(place, 200)})" if place else ""),
            *asked.numbered(self.options, 12, 200),
            f"{'':12}{runnable(self.answer)}",
        ]


async def inbox(client: Client, user_id: str) -> list[Item]:
    """What waits for this person: requests, questions, tasks, of each the oldest first; with the cluster down, as it
    is stored.
    """
    return [item for part in _PARTS for item in await part(client, user_id)]


async def known(client: Client, user_id: str) -> list[Item]:
    """The same, as far as it can be known now: where the Store is away, the requests alone."""
    found: list[Item] = []
    for part in _PARTS:
        with contextlib.suppress(PromptDockError):
            found += await part(client, user_id)
    return found


async def _permissions(client: Client, user_id: str) -> list[Item]:
    try:
        async with asyncio.timeout(_REACH):
            cards = await approvals.mine(client, user_id)
    except (PromptDockError, TimeoutError):
        store = await client.store()
        where: dict[str, Any] = {"state": "pending", "user_id": ("in", people.seen_by(user_id))}
        rows = await store.select(Approval, where, order=[("created_at", "asc")], limit=_MOST)
        cards = [approvals.of_row(row) for row in rows]
    return [
        Item(
            "permission",
            card.id[: about.SHORT],
            f"{card.agent.capitalize()} asks for permission: {about.does(card)}",
            f"promptdock approvals allow {card.id[: about.SHORT]}",
            datetime.fromtimestamp(card.at / 1000, UTC).isoformat(timespec="seconds"),
            card.session,
            card.project,
        )
        for card in cards
    ]


async def _questions(client: Client, user_id: str) -> list[Item]:
    """What Chatter asked; that a task's money is spent is told with the task."""
    items = []
    for one in await asked.questions(client, user_id):
        if not one.task:
            named = (
                "" if one.session == default_session(user_id) else f" --session {shlex.quote(one.session)}"
            )
            what, answer = f"Chatter asks: {one.asked}", f'promptdock ask "…"{named}'
            at = one.at.isoformat(timespec="seconds")
            items.append(Item("question", one.id, what, answer, at, one.session, "", one.options))
    return items


async def _tasks(client: Client, user_id: str) -> list[Item]:
    store = await client.store()
    rows: list[Task] = []
    for states in (_WAITING, _DONE):  # apart: many that are done hide none that wait
        where: dict[str, Any] = {"archived": False, "status": ("in", list(states))}
        found = await store.select(Task, where, order=[("updated_at", "desc")], limit=_MOST)
        rows += [row for row in found if row.user_id in (*people.seen_by(user_id), None)]
    done = await fates(store, [row.id for row in rows if row.status == "COMPLETED"])
    projects = {row.id: row.slug for row in await store.select(Project)}
    brings = await _brings(store, [row for row in rows if _reviewed(row, merged=row.id in done)])
    within = {piece.id for pieces in brings.values() for piece in pieces}
    items = []
    for row in sorted(rows, key=lambda row: row.updated_at):
        if row.id in within:
            continue
        open_now = await questions.of(store, row)
        project = projects.get(row.project_id, "")
        if told := _needs(row, open_now, project, merged=row.id in done):
            kind, what, answer = told
            if pieces := brings.get(row.id):
                what += f"; it brings {', '.join(piece.slug for piece in pieces)} with it"
            where_from = (row.session_id or "", project)
            options = tuple(open_now.options) if open_now else ()
            at = row.updated_at.isoformat(timespec="seconds")
            items.append(Item(kind, row.slug, what, answer, at, *where_from, options))
    return items


def _reviewed(row: Task, merged: bool) -> bool:
    """Whether its person has to look at what it made; of one that failed and was skipped nobody merges anything."""
    done = row.status == "COMPLETED" and bool(row.branch) and not merged and not row.error
    return done or row.status == "AWAITING_APPROVAL"


async def _brings(store: Store, rows: list[Task]) -> dict[UUID, list[Task]]:
    """Of those that wait for a review: whoever was built on others brings them with it, in one merge, one decision."""
    known = {row.id: row for row in rows}
    needs: dict[UUID, list[UUID]] = {}
    ids = list(known)
    for at in range(0, len(ids), IN_LIMIT):
        for edge in await store.select(TaskDependency, {"task_id": ("in", ids[at : at + IN_LIMIT])}):
            if (
                edge.depends_on_id in known
                and known[edge.depends_on_id].repo_id == known[edge.task_id].repo_id
            ):
                needs.setdefault(edge.task_id, []).append(edge.depends_on_id)
    return {id: [known[one] for one in _below(id, needs)] for id in needs}


def _below(id: UUID, needs: Mapping[UUID, Iterable[UUID]]) -> list[UUID]:
    found: dict[UUID, None] = {}
    level = list(needs.get(id, ()))
    while level:
        found.update(dict.fromkeys(level))
        level = [below for one in level for below in needs.get(one, ()) if below not in found]
    return list(found)


def _needs(
    row: Task, asked: questions.Open | None, project: str, merged: bool
) -> tuple[InboxKind, str, str] | None:
    """What a task waits for of its person, and the command; None where it waits for nobody."""
    name, title = row.slug, f"{row.slug} ({row.title})"
    match row.status:
        case "WAITING_INPUT":
            words = asked.asked if asked else row.question
            return "question", f"{title} asks: {words}", f'promptdock tasks answer {name} "…"'
        case "AWAITING_PLAN_APPROVAL":
            what = (
                f"{title} waits until you approve its plan"
                if row.plan
                else f"{title} waits until you let it begin"
            )
            return "plan", what, f"promptdock tasks approve {name}"
        case "AWAITING_APPROVAL":
            return "review", f"{title} is done and waits for your review", f"promptdock tasks review {name}"
        case "COMPLETED" if _reviewed(row, merged):
            return "review", f"{title} is done and not merged yet", f"promptdock tasks review {name}"
        case "PAUSED" if row.question.startswith(_BUDGET):
            return "budget", f"{title} stopped: {row.question} is spent", _raises(row, project)
        case "PAUSED" if row.question:
            what = f"{title} rests, since nobody answered: {row.question}"
            return "question", what, f"promptdock tasks resume {name}"
        case "BLOCKED":
            why = f": {row.error}" if row.error else ""
            return "blocked", f"{title} is blocked{why}", f"promptdock tasks restart {name}"
    return None


def _raises(row: Task, project: str) -> str:
    """The command after which a task has money again."""
    if row.question.startswith("the budget for today"):
        return "promptdock budget day DOLLARS"
    if row.question.startswith("the budget of the project"):
        return f"promptdock budget project {project} DOLLARS"
    return f"promptdock budget task {row.slug} DOLLARS; promptdock tasks resume {row.slug}"


async def _dead(client: Client, _user_id: str) -> list[Item]:
    try:
        async with asyncio.timeout(_REACH):
            await client.reach()
            count = int(await client.bus.command("XLEN", client.names.keys(CHATTER).dead_letters))
    except (PromptDockError, TimeoutError):
        return []
    told = f"{count} message{'s' * (count != 1)} could not be answered"
    return [Item("dead", "dead", told, "promptdock dead list")] if count else []


async def changes(client: Client, changed: Callable[[], None]) -> None:
    """Say, until cancelled, that the list may have changed: rows did, or somebody said or decided something."""

    def take(_channel: str, _data: bytes) -> None:
        changed()

    async def ready() -> None:
        changed()  # what happened before we listened

    # By a pattern: who listens so is not counted among those who acknowledge nothing.
    await client.subscribe([], [client.names.board, client.names.channel(HUMAN_INPUT)], take, ready)


_PARTS = (_permissions, _questions, _tasks, _dead)


def lines(items: Iterable[Item], most: int) -> list[str]:
    """One line for each, at most so many."""
    items = list(items)
    told = [f"{item.what}: {item.answer}" for item in items[:most]]
    return [*told, f"and {len(items) - most} more: promptdock inbox"] if len(items) > most else told
