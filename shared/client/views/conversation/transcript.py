"""A conversation as people read it, a page of it at a time: whatever surface it came by, with what became of it.

It is read from the messages that passed, not from the window that the model is shown: nothing of it is summarised.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

from shared.bus.keys import CHATTER
from shared.client.client import Client
from shared.client.text import times
from shared.client.views.permissions import approvals
from shared.errors import PromptDockError, UsageError
from shared.store.base import Store
from shared.store.query import IN_LIMIT
from shared.store.records import Approval, Message, TurnRow, TurnStep

PAGE = 40  # entries that are read at once
_PERSON = "user"  # who a person is in the messages of the Store
_KINDS = (
    "message", "amend", "complete", "error", "awaiting_input", "awaiting_approval", "task_update",
)  # fmt: skip
_AGAIN = ".away."  # in the id of what Chatter says again, which stands above already
_CONSULT = "consult_"
_ANSWER = 20_000  # characters of what an agent answered that are shown

EntryKind = Literal["said", "answer", "error", "question", "approval", "update"]


@dataclass(frozen=True)
class CallRecord:
    """One call of a turn: whom Chatter asked, or which tool it used, what came of it, and how long it took."""

    tool: str
    agent: str  # who was asked; "" where it was another tool
    asked: str
    answered: str
    failed: bool
    ms: int
    request: str = ""


@dataclass(frozen=True)
class Permission:
    """A request for permission as it stands: `state` is pending, or what was decided, by whom."""

    id: str
    agent: str
    does: str
    facts: tuple[str, ...]
    action: str
    why: str
    reason: str
    task: str
    always: str
    pattern: str
    state: str = "pending"
    told: str = ""  # what became of it, in words

    @property
    def open(self) -> bool:
        return self.state == "pending"


@dataclass(frozen=True)
class TranscriptEntry:
    """One entry. `turn` links to its trace; `seconds`, tokens and cost are those of the turn that it closes."""

    id: str
    at: datetime
    kind: EntryKind
    text: str
    who: str = ""
    source: str = ""
    turn: str = ""
    demo: bool = False
    model: str = ""
    question: str = ""
    options: tuple[str, ...] = ()
    open: bool = False  # a question that waits for its answer
    permission: Permission | None = None
    task: str = ""
    task_state: str = ""
    verified: str = ""
    diff_stat: str = ""
    calls: tuple[CallRecord, ...] = ()
    seconds: float | None = None
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0


@dataclass(frozen=True)
class TranscriptPage:
    """A page of a conversation, the oldest first; `before` is the cursor of what comes above it, "" where it begins."""

    session: str
    entries: list[TranscriptEntry] = field(default_factory=list)
    before: str = ""


async def transcript(client: Client, session: str, before: str = "", limit: int = PAGE) -> TranscriptPage:
    """The newest entries of a conversation, or those before a cursor. Reads the Store."""
    store = await client.store()
    rows, more = await _rows(store, session, before, limit)
    turns = [turn for row in rows if (turn := _turn(row))]
    calls, ran = await _calls(store, turns), await _turns(store, turns)
    permissions = await _permissions(client, rows)
    entries = [_entry(row, calls, ran, permissions) for row in rows]
    return TranscriptPage(session, _closed(entries), rows[0].created_at.isoformat() if more and rows else "")


async def entries_of(client: Client, session: str, turn: str) -> list[TranscriptEntry]:
    """What one turn came to: the person's words that opened it, and all that was said to them in it."""
    store = await client.store()
    ids = [turn, f"{turn}.end"]
    rows = await store.select(
        Message, {"session_id": session, "message_id": ("in", ids)}, order=[("created_at", "asc")]
    )
    rows = [row for row in rows if _is_persons(row)]
    calls, ran = await _calls(store, [turn]), await _turns(store, [turn])
    entries = [_entry(row, calls, ran, await _permissions(client, rows)) for row in rows]
    if rows and rows[-1].type == "awaiting_input":
        later = {"session_id": session, "type": "message", "created_at": ("gt", rows[-1].created_at)}
        entries[-1] = replace(entries[-1], open=not await store.count(Message, later))
    return entries


async def _rows(store: Store, session: str, before: str, limit: int) -> tuple[list[Message], bool]:
    """Rows of that page, the oldest first, and whether there are earlier ones."""
    where: dict[str, Any] = {"session_id": session, "type": ("in", list(_KINDS))}
    if before:
        if (moment := times.parsed(before)) is None:
            raise UsageError(f"{before[:80]!r} is no cursor of a conversation")
        where["created_at"] = ("lt", moment)
    found = await store.select(Message, where, order=[("created_at", "desc")], limit=limit)
    if len(found) == limit:  # several may have come in one moment, which no cursor parts
        last = found[-1].created_at
        known = {row.id for row in found}
        same = await store.select(Message, where | {"created_at": last}, order=[("id", "desc")])
        found += [row for row in same if row.id not in known]
        more = await store.count(Message, where | {"created_at": ("lt", last)}) > 0
    else:
        more = False
    return [row for row in reversed(found) if _is_persons(row)], more


def _is_persons(row: Message) -> bool:
    again = _AGAIN in (row.message_id or "")
    return _PERSON in (row.from_agent, row.to_agent) and row.type in _KINDS and not again


def _turn(row: Message) -> str:
    """The turn that an output belongs to."""
    if row.type not in ("complete", "error", "awaiting_input"):
        return ""
    return (row.message_id or "").removesuffix(".end")


async def _turns(store: Store, turns: Sequence[str]) -> dict[str, TurnRow]:
    found: dict[str, TurnRow] = {}
    for some in _parts(turns):
        for row in await store.select(TurnRow, {"turn_id": ("in", some), "agent": CHATTER}):
            found[row.turn_id] = row
    return found


async def _calls(store: Store, turns: Sequence[str]) -> dict[str, tuple[CallRecord, ...]]:
    found: dict[str, list[CallRecord]] = {}
    for some in _parts(turns):
        where = {"turn_id": ("in", some), "agent": CHATTER, "kind": "result"}
        for step in await store.select(TurnStep, where, order=[("number", "asc")]):
            found.setdefault(step.turn_id, []).append(_call(step))
    return {turn: tuple(calls) for turn, calls in found.items()}


def _parts(turns: Sequence[str]) -> Iterable[list[str]]:
    unique = list(dict.fromkeys(turns))
    return (unique[at : at + IN_LIMIT] for at in range(0, len(unique), IN_LIMIT))


def _call(step: TurnStep) -> CallRecord:
    tool = str(step.detail.get("tool") or "")
    arguments = _object(step.detail.get("arguments"))
    content = step.detail.get("content")
    answer = content.get("answer") or content.get("error") if isinstance(content, dict) else content
    agent = ""
    if tool.startswith(_CONSULT):
        agent = str(arguments.get("agent") or tool.removeprefix(_CONSULT))
    asked = str(arguments.get("question") or "") if agent else _told(arguments)
    return CallRecord(tool, agent, asked, str(answer or "")[:_ANSWER], step.is_error, step.ms or 0)


def _told(arguments: dict[str, Any]) -> str:
    return ", ".join(f"{name}: {value}" for name, value in arguments.items() if value not in (None, "", []))[
        :500
    ]


async def _permissions(client: Client, rows: Iterable[Message]) -> dict[str, Permission]:
    asked = {
        str(card["id"]): card
        for row in rows
        if row.type == "awaiting_approval"
        and isinstance(card := row.payload.get("approval"), dict)
        and "id" in card
    }
    store, known = await client.store(), dict[str, Approval]()
    for some in _parts(list(asked)):
        for row in await store.select(Approval, {"approval_id": ("in", some)}):
            known[row.approval_id] = row
    return {id: await _permission(client, card, known.get(id)) for id, card in asked.items()}


async def _permission(client: Client, card: dict[str, Any], row: Approval | None) -> Permission:
    """A request with what became of it: Redis knows first, the Store for longer."""
    made = permission_of(card)
    if row is not None and row.state != "pending":
        told = {"allow_once": "allowed once", "always": "allowed for good", "deny": "denied"}.get(
            row.state, row.state
        )
        by = f" by {row.decided_by}" if row.decided_by else ""
        why = f" ({row.reason})" if row.reason else ""
        return _decided(made, row.state, f"{told}{by}{why}")
    with contextlib.suppress(PromptDockError):
        if became := await approvals.became(client, made.id):
            return _decided(made, became.how, became.told())
    return made


def _decided(card: Permission, state: str, told: str) -> Permission:
    return replace(card, state=state, told=told)


def permission_of(card: dict[str, Any]) -> Permission:
    """A request from the card that an output carries, whoever sent it."""
    about = _object(card.get("about"))
    facts = about.get("facts")
    return Permission(
        id=str(card.get("id") or ""),
        agent=str(card.get("agent") or ""),
        does=str(about.get("does") or f"use {card.get('tool') or 'a tool'}"),
        facts=tuple(map(str, facts)) if isinstance(facts, list) else (),
        action=str(card.get("action") or ""),
        why=str(card.get("why") or ""),
        reason=str(about.get("reason") or ""),
        task=str(about.get("task") or ""),
        always=str(about.get("always") or ""),
        pattern=str(card.get("pattern") or ""),
    )


def _entry(
    row: Message,
    calls: dict[str, tuple[CallRecord, ...]],
    ran: dict[str, TurnRow],
    permissions: dict[str, Permission],
) -> TranscriptEntry:
    payload, turn = row.payload, _turn(row)
    text = str(payload.get("content") or "")
    if row.from_agent == _PERSON:
        who = str(payload.get("user_name") or row.user_id or "")
        source = str(payload.get("source") or "redis-cli")
        return TranscriptEntry(
            row.message_id or str(row.id),
            row.created_at,
            "said",
            text,
            who,
            source,
            turn=row.message_id or "",
        )
    kind: EntryKind = {
        "error": "error", "awaiting_input": "question", "awaiting_approval": "approval", "task_update": "update",
    }.get(row.type, "answer")  # type: ignore[assignment]  # fmt: skip
    usage, task = _object(payload.get("usage")), _object(payload.get("task"))
    receipt = _object(task.get("receipt"))
    card = payload.get("approval")
    turned = ran.get(turn)
    return TranscriptEntry(
        id=row.message_id or str(row.id),
        at=row.created_at,
        kind=kind,
        text=text,
        who=CHATTER,
        turn=turn or str(payload.get("in_reply_to") or ""),
        demo=bool(payload.get("demo")),
        model=str(payload.get("model") or ""),
        question=str(payload.get("question") or ""),
        options=tuple(map(str, payload.get("options") or ())) if kind == "question" else (),
        permission=permissions.get(str(card.get("id"))) if isinstance(card, dict) else None,
        task=str(task.get("task_id") or ""),
        task_state=str(task.get("status") or ""),
        verified=str(receipt.get("verified") or ""),
        diff_stat=str(receipt.get("diff_stat") or ""),
        calls=calls.get(turn, ()),
        seconds=_seconds(turned),
        tokens_in=int(usage.get("input") or 0),
        tokens_out=int(usage.get("output") or 0),
        cost=float(usage.get("cost") or 0),
    )


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _seconds(turn: TurnRow | None) -> float | None:
    return (turn.ended_at - turn.started_at).total_seconds() if turn and turn.ended_at else None


def _closed(entries: list[TranscriptEntry]) -> list[TranscriptEntry]:
    """A question is open as long as nobody has said anything behind it."""
    said = True
    found = []
    for entry in entries:
        found.append(entry)
    for at in range(len(found) - 1, -1, -1):
        if found[at].kind == "said":
            said = False
        elif found[at].kind == "question":
            found[at], said = replace(found[at], open=said), False
    return found
