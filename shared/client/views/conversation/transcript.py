"""A conversation as people read it, a page of it at a time: whatever surface it came by, with what became of it.

Nothing of it is summarised; to what was said (`conversation/reading.py`) come the calls, the cost and the decisions.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

from shared.bus.images import Image
from shared.bus.keys import CHATTER
from shared.client.client import Client
from shared.client.text import times
from shared.client.views.permissions import approvals
from shared.conversation import reading
from shared.conversation.reading import HistoryItem
from shared.errors import PromptDockError, UsageError
from shared.store.base import Store
from shared.store.query import IN_LIMIT
from shared.store.records import Approval, ConversationMessage, Message, TurnRow, TurnStep

PAGE = 40  # entries that are read at once
_CLOSES = ("complete", "error", "awaiting_input")
_CONSULT = "consult_"
_ANSWER = 20_000  # characters of what an agent answered that are shown
_ASIDE = {"clear_context": "Cleared here.", "restore_context": "What was saved goes on here."}

# mark: what was done with the conversation here, as clearing it
EntryKind = Literal["said", "answer", "error", "question", "approval", "update", "mark"]


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
    pattern: str  # "" where it cannot be allowed for good
    state: str = "pending"
    told: str = ""  # what became of it, in words
    expires: datetime | None = None  # when it is too late to answer

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
    footer: tuple[str, ...] = ()  # lines beside an answer: how it came about
    images: int = 0  # pictures that came with the words


@dataclass(frozen=True)
class TranscriptPage:
    """A page of a conversation, the oldest first; `before` is the cursor of what comes above it, "" where it begins."""

    session: str
    entries: list[TranscriptEntry] = field(default_factory=list)
    before: str = ""


async def transcript(client: Client, session: str, before: str = "", limit: int = PAGE) -> TranscriptPage:
    """The newest entries of a conversation, or those before a cursor. Reads the Store."""
    store = await client.store()
    if before and times.parsed(before) is None:
        raise UsageError(f"{before[:80]!r} is no cursor of a conversation")
    found = await reading.page(store, session, times.parsed(before), limit)
    above = found.before.isoformat() if found.before else ""
    return TranscriptPage(session, _closed(await _entries(client, store, found.items)), above)


async def entries_of(client: Client, session: str, turn: str) -> list[TranscriptEntry]:
    """What one turn came to: the person's words that opened it, and all that was said to them in it."""
    store = await client.store()
    ids = [turn, f"{turn}.end"]
    rows = await store.select(
        Message, {"session_id": session, "message_id": ("in", ids)}, order=[("created_at", "asc")]
    )
    rows = [row for row in rows if reading.is_read(row)]
    entries = await _entries(client, store, [HistoryItem(row) for row in rows])
    if rows and rows[-1].type == "awaiting_input":
        later = {"session_id": session, "type": "message", "created_at": ("gt", rows[-1].created_at)}
        entries[-1] = replace(entries[-1], open=not await store.count(Message, later))
    return entries


async def _entries(client: Client, store: Store, items: Sequence[HistoryItem]) -> list[TranscriptEntry]:
    rows = [item.row for item in items if isinstance(item.row, Message)]
    turns = {one.turn: one.who for row in rows if row.type in _CLOSES and (one := HistoryItem(row))}
    calls, ran = await _calls(store, turns), await _turns(store, turns)
    permissions = await _permissions(client, rows)
    found: list[TranscriptEntry] = []
    for item in items:
        if isinstance(item.row, ConversationMessage):
            found.append(_kept(item, item.row))
            continue
        entry = _entry(item, item.row, calls, ran, permissions)
        found += [entry, *_marks(entry)]
    return found


def _kept(item: HistoryItem, row: ConversationMessage) -> TranscriptEntry:
    """What did not pass here: it came from another conversation, or a file, or it is old."""
    kind: EntryKind = "mark" if item.mark else "answer" if row.role == "assistant" else "said"
    return TranscriptEntry(item.id, item.at, kind, item.text, item.who or CHATTER, row.source or "")


def _marks(entry: TranscriptEntry) -> Iterator[TranscriptEntry]:
    """Where a turn of the model's did something with the conversation."""
    for number, call in enumerate(entry.calls):
        if call.tool in _ASIDE and not call.failed and entry.kind != "mark":
            yield TranscriptEntry(f"{entry.id}.mark{number}", entry.at, "mark", _ASIDE[call.tool])


async def _turns(store: Store, turns: Mapping[str, str]) -> dict[str, TurnRow]:
    found: dict[str, TurnRow] = {}
    for some in _parts(turns):
        for row in await store.select(TurnRow, {"turn_id": ("in", some)}):
            if row.agent == turns[row.turn_id]:
                found[row.turn_id] = row
    return found


async def _calls(store: Store, turns: Mapping[str, str]) -> dict[str, tuple[CallRecord, ...]]:
    found: dict[str, list[CallRecord]] = {}
    for some in _parts(turns):
        where = {"turn_id": ("in", some), "kind": "result"}
        for step in await store.select(TurnStep, where, order=[("number", "asc")]):
            if step.agent == turns[step.turn_id]:
                found.setdefault(step.turn_id, []).append(_call(step))
    return {turn: tuple(calls) for turn, calls in found.items()}


def _parts(turns: Iterable[str]) -> Iterable[list[str]]:
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
        pattern=str(card.get("pattern") or "") if approvals.lasts(card) else "",
        expires=times.parsed(str(card.get("expires_at") or "")),
    )


def _entry(
    item: HistoryItem,
    row: Message,
    calls: dict[str, tuple[CallRecord, ...]],
    ran: dict[str, TurnRow],
    permissions: dict[str, Permission],
) -> TranscriptEntry:
    payload = row.payload
    if row.from_agent == reading.PERSON:
        source, turn = str(payload.get("source") or "redis-cli"), row.message_id or ""
        images = len(_images(payload))
        return TranscriptEntry(
            item.id, item.at, "said", item.text, item.who, source, turn=turn, images=images
        )
    turn = item.turn if row.type in _CLOSES else ""
    kind: EntryKind = {
        "error": "error", "awaiting_input": "question", "awaiting_approval": "approval", "task_update": "update",
    }.get(row.type, "mark" if item.mark else "answer")  # type: ignore[assignment]  # fmt: skip
    usage, task = _object(payload.get("usage")), _object(payload.get("task"))
    receipt = _object(task.get("receipt"))
    card = payload.get("approval")
    turned = ran.get(turn)
    return TranscriptEntry(
        id=item.id,
        at=item.at,
        kind=kind,
        text=item.text,
        who=item.who,
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
        footer=tuple(map(str, payload.get("footer") or ())),
    )


async def image_of(client: Client, session: str, message: str, number: int) -> Image | None:
    """One picture of a message of that conversation."""
    where = {"session_id": session, "message_id": message, "type": "message"}
    rows = await (await client.store()).select(Message, where, limit=1)
    found = _images(rows[0].payload) if rows else []
    try:
        return Image.model_validate(found[number])
    except (IndexError, ValueError):
        return None


def _images(payload: dict[str, Any]) -> list[Any]:
    images = payload.get("images")
    return images if isinstance(images, list) else []


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
