"""A turn after the fact: its steps, and those of the agents that it asked, with what each took and cost."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from shared.bus.activity import act
from shared.bus.keys import CHATTER
from shared.bus.messages import COMMANDS
from shared.client.client import Client
from shared.client.types import Card
from shared.client.views import lookup
from shared.errors import UsageError
from shared.store.base import Store
from shared.store.records import ConversationMessage, Task, TokenUsage, TurnRow, TurnStep

_RECENT = 500  # turns among which the beginning of an id is looked for
_DEEP = 5  # how far questions are followed; a circle of them ends at four
_LOOKED = 50  # of them at once
_ASIDE = (COMMANDS, "approval:", "asks:")  # sessions in which no words are said
_SHOWN = ("model", "result", "ask", "decided", "note", "memory", "plan", "step")


async def trace(client: Client, name: str, user: str) -> list[Card]:
    """The turns that belong to an id of a message, a turn or a task, asker before asked; "" is this person's last."""
    store = await client.store()
    found: list[Card] = []
    turns, depth = await _named(client, name, user), 0
    while turns and depth < _DEEP:
        children: list[str] = []
        for turn in turns:
            card, asked = await _card(store, turn, depth)
            found.append(card)
            children += asked
        turns = await store.select(TurnRow, {"turn_id": ("in", children)}) if children else []
        depth += 1
    return sorted(found, key=lambda card: str(card["started_at"]))


async def _named(client: Client, name: str, user: str) -> Sequence[TurnRow]:
    store = await client.store()
    if not name:
        mine = await _own(store, user)
        if not mine:
            raise UsageError(
                f"there is no turn of {user} yet", "", "name a message or a task: promptdock tasks list"
            )
        return mine
    if tasks := await store.select(Task, {"slug": name}, limit=1):
        return await _of_task(store, tasks[0])
    exact = await store.select(TurnRow, {"turn_id": name})
    recent = exact or await store.select(TurnRow, order=[("created_at", "desc")], limit=_RECENT)
    fitting = exact or [turn for turn in recent if turn.turn_id.startswith(name)]
    if not fitting:
        return await _of_task(store, await _part(client, name))
    if len({turn.turn_id.split(".")[0] for turn in fitting}) != 1:
        raise _nothing(name, "several begin so")
    top = min(len(turn.turn_id) for turn in fitting)
    return [turn for turn in fitting if len(turn.turn_id) == top]


def _nothing(name: str, why: str) -> UsageError:
    fix = "the id of a message, as ask --json prints it, or of a task"
    return UsageError(f"there is no turn {name!r}", why, fix)


async def _part(client: Client, name: str) -> Task:
    """The task of whose name a part was typed."""
    try:
        slug = await lookup.task(client, name)
    except UsageError as error:
        if error.why:  # those that may be meant
            raise
        raise _nothing(name, "no turn that is stored, and no task, is called so") from None
    store = await client.store()
    return (await store.select(Task, {"slug": slug}, limit=1))[0]


async def _of_task(store: Store, task: Task) -> Sequence[TurnRow]:
    turns = await store.select(TurnRow, {"task_id": task.id})
    if task.request_id and not turns:
        turns = await store.select(TurnRow, {"turn_id": task.request_id})
    if turns:
        return turns
    raise UsageError(
        f"no turn of {task.slug} is stored yet", f"it is {task.status}", "promptdock tasks watch ID"
    )


async def _own(store: Store, user: str) -> Sequence[TurnRow]:
    """The last turn that this person's words opened: none of a command, or of the news of a task."""
    where = {"user_id": user, "agent": CHATTER}
    found = await store.select(TurnRow, where, order=[("created_at", "desc")], limit=_RECENT)
    turns = [turn for turn in found if not (turn.session_id or "").startswith(_ASIDE)]
    for at in range(0, len(turns), _LOOKED):
        part = turns[at : at + _LOOKED]
        rows = await store.select(ConversationMessage, {"turn_id": ("in", [turn.turn_id for turn in part])})
        said = {row.turn_id for row in rows if row.user_id}
        for turn in part:
            # What failed or was stopped may have left no words: it was opened by some, unless it noted others'.
            left = any(row.turn_id == turn.turn_id for row in rows)
            if turn.turn_id in said or (not left and turn.state not in ("complete", "awaiting_input")):
                return [turn]
    return []


async def _card(store: Store, turn: TurnRow, depth: int) -> tuple[Card, list[str]]:
    """A turn, and the ids of the requests that it may have made."""
    steps = await store.select(
        TurnStep, {"turn_id": turn.turn_id, "agent": turn.agent}, order=[("number", "asc")]
    )
    used = await store.select(TokenUsage, {"turn_id": turn.turn_id, "agent": turn.agent})
    models = [step for step in steps if step.kind == "model"]
    asked = [
        f"{turn.turn_id}.{number}.{call}"
        for number, step in enumerate(models, 1)
        for call in range(1, 1 + len(_calls(step)))
    ]
    asked += [f"{turn.turn_id}.plan" for step in steps if step.kind == "plan" and step.detail.get("by")]
    card = {
        "turn": turn.turn_id,
        "depth": depth,
        "agent": turn.agent,
        "session": turn.session_id,
        "user": turn.user_id,
        "state": turn.state,
        "model": turn.model,
        "error": turn.error,
        "started_at": turn.started_at.isoformat(),
        "ms": _between(turn.started_at, turn.ended_at),
        "input": sum(use.input for use in used),
        "output": sum(use.output for use in used),
        "cost": sum(use.cost for use in used),
        "steps": [_step(step, turn.started_at) for step in steps if step.kind in _SHOWN],
    }
    return card, asked


def _calls(step: TurnStep) -> list[Card]:
    content = step.detail.get("content")
    return [block for block in content or [] if isinstance(block, dict) and block.get("type") == "tool_use"]


def _step(step: TurnStep, began: datetime) -> Card:
    return {
        "number": step.number,
        "kind": step.kind,
        "what": _what(step),
        "after_ms": _between(began, step.started_at),
        "ms": step.ms,
        "failed": step.is_error,
        "usage": step.detail.get("usage") if step.kind == "model" else None,
    }


def _what(step: TurnStep) -> str:
    if step.kind == "result":
        return act("tool_result", step.detail)
    if step.kind == "model":
        calls = ", ".join(str(call.get("name")) for call in _calls(step))
        return f"asks for {calls}" if calls else "answers"
    return step.description


def _between(began: datetime, ended: datetime | None) -> int | None:
    return max(0, int((ended - began).total_seconds() * 1000)) if ended else None
