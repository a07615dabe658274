"""A budget that is spent: the person is asked to raise it, to split the work, or to stop, and answers in a word."""

from __future__ import annotations

import contextlib
from typing import Any

from shared import people, plain
from shared.bus import messages
from shared.errors import PromptDockError, StoreUnavailable, ToolError
from shared.store.base import Store
from shared.store.records import Project, Setting, Task
from shared.store.row import derived
from shared.tasks import states
from shared.tasks.budgets import ASKED as _KEY
from shared.tasks.budgets import OPTIONS, question
from shared.turns.routing import unsigned
from shared.worker.budgets.ledger import Ledger

_LONG = 20_000  # characters of a task's description that its splitting is told
Asked = dict[str, Any]  # scope, name, dollars: the budget; task: the task that is paused for it; user_id

_SPLIT = (
    "[The person wants this split: propose smaller pieces in their order, each of use by itself, "
    "and do only the first.]"
)
_SPLIT_TASK = (
    "[The person wants the task {slug} ({title}) split, for which the money did not suffice; it is ended. Make "
    "smaller tasks of what is left of it with create_task, in its project ({project}), in their order, each of use "
    "by itself; each later one depends_on the one before it. {made} The task was:]\n{description}"
)
_NOTHING_LEFT = (
    "Of this budget nothing is left, so that not even a first piece could be begun. Answer raise, or stop."
)
_SHARED = ("day", "project", "session")  # budgets that every piece would have to be paid from too
_RAISED = "[The person raised {budget} by {dollars}. Go on with what was left.]"


async def ask(store: Store, session: str, user: str, budget: Asked) -> dict[str, Any]:
    """Keep what is asked, until the person's next word; the fields of the output that asks."""
    value = {**budget, "user_id": user}
    id = derived("setting", f"session:{session}", _KEY)
    await store.upsert([Setting(id=id, scope=f"session:{session}", key=_KEY, value=value)])
    return {"question": question(budget), "options": OPTIONS}


async def answered(
    store: Store, ledger: Ledger, approvers: frozenset[str], session: str, said: messages.Said
) -> tuple[str, str] | None:
    """`(note, closing)` where these words answer the question: a note for the model, or the whole answer.

    None where nothing was asked; a PromptDockError where this person may not raise it.
    """
    word = said.content.strip().strip(".!").casefold()
    if word not in OPTIONS:
        return None
    where = {"scope": f"session:{session}", "key": _KEY}
    try:
        found = await store.select(Setting, where, limit=1)
    except StoreUnavailable:
        return None  # words like any other
    if not found:
        return None
    asked = found[0].value
    who = str(asked.get("user_id") or "")
    allowed = people.sees(said.user_id, who) or set(said.roles or ()) & approvers
    if not allowed:
        raise PromptDockError("You cannot decide about this budget", f"{people.called(who)} was asked")
    if word != "stop" and unsigned(said):
        raise PromptDockError(
            "This is not signed, so it decides about no budget",
            "nobody knows who sent it",
            "use promptdock budget, sign it as docs/wire.md says, or let everybody do it: UNSIGNED_MAY=approve",
        )
    if word == "split" and asked.get("scope") in _SHARED and asked.get("answer") is None:
        return "", _NOTHING_LEFT
    # A question is answered once; the same words again, after a crash, are the same answer.
    if asked.get("answer") not in (None, said.id):
        return None
    changes = {"value": {**asked, "answer": said.id}, "version": found[0].version + 1}
    if not await store.update(Setting, changes, {"id": found[0].id, "version": found[0].version}):
        return None
    if word == "raise":
        return await _raise(store, ledger, asked, said)
    if word == "stop":
        return "", await _stop(store, asked, said)
    return (await _split(store, asked, said)) or _SPLIT, ""


async def _split(store: Store, asked: Asked, said: messages.Said) -> str:
    """End the task that is to be split; what Chatter is told of it. "" where it was no task's question."""
    slug = str(asked.get("task") or "")
    for task in await store.select(Task, {"slug": slug}, limit=1) if slug else []:
        await _stop(store, asked, said)
        made = f"What it made until now is on its branch {task.branch}." if task.branch else ""
        projects = await store.select(Project, {"id": task.project_id}, limit=1)
        where = f"project_id {projects[0].slug}" if projects else "the active one"
        told = {"slug": slug, "title": task.title, "project": where, "made": made}
        return _SPLIT_TASK.format(**told, description=task.description[:_LONG])
    return ""


async def _raise(store: Store, ledger: Ledger, asked: Asked, said: messages.Said) -> tuple[str, str]:
    scope, name, dollars = str(asked["scope"]), str(asked["name"]), float(asked["dollars"])
    if scope in ("day", "session"):
        await ledger.allow(scope, name, dollars, key=str(said.id))
    elif scope == "project":
        for row in await store.select(Project, {"slug": name}, limit=1):
            changes = {"budget": max(row.budget or 0, 2 * dollars), "version": row.version + 1}
            await store.update(Project, changes, {"id": row.id})
    elif scope == "task":
        for task in await store.select(Task, {"slug": name}, limit=1):
            changes = {"budget": max(task.budget or 0, 2 * dollars), "version": task.version + 1}
            await store.update(Task, changes, {"id": task.id})
    if slug := asked.get("task"):
        await _resume(store, str(slug), said)
        return "", f"The budget is raised by {plain.dollars(dollars)}. Task {slug} goes on."
    return _RAISED.format(budget=f"the budget of the {scope}", dollars=plain.dollars(dollars)), ""


async def _resume(store: Store, slug: str, said: messages.Said) -> None:
    for task in await store.select(Task, {"slug": slug}, limit=1):
        if task.status == "PAUSED":
            with contextlib.suppress(ToolError):  # the scheduler saw the money first
                await states.move(store, task.id, "resumed", said.user_id, f"raise:{said.id}")


async def _stop(store: Store, asked: Asked, said: messages.Said) -> str:
    slug = asked.get("task")
    if not slug:
        return "Stopped. What was done until then stays as it is."
    for task in await store.select(Task, {"slug": str(slug)}, limit=1):
        if task.status == "PAUSED":
            key = f"stop:{said.id}"
            await states.override(store, task, "BLOCKED", said.user_id, said.user_id, key)
    return f"Task {slug} is stopped. What it made stays on its branch."
