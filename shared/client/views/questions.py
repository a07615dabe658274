"""What Chatter asked a person who has not answered yet: found in what is stored, on whatever surface they come back."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from shared import people
from shared.bus.keys import CHATTER
from shared.bus.messages import Output
from shared.client.client import Client
from shared.client.text.safe import line
from shared.errors import PromptDockError
from shared.store.base import Store
from shared.store.records import ConversationMessage, Session, Setting, TurnRow
from shared.tasks import budgets
from shared.tasks.questions import beyond as beyond
from shared.tasks.questions import chosen as chosen

_TOOL = "escalate_to_human"  # the call that ends a turn with a question
_MOST = 200  # turns that ended with a question
_DAYS = 30  # after which nobody is reminded of it
_REACH = 3.0  # seconds that asking the cluster may take
_WAITING = 1000  # messages that wait for Chatter, of which one may be the answer


@dataclass(frozen=True)
class Question:
    """`turn` is the turn that ended with it; `task` is set where a task's money is asked for."""

    turn: str
    session: str
    asked: str
    options: tuple[str, ...]
    context: str
    at: datetime
    task: str = ""

    @property
    def id(self) -> str:
        """Of the output that put it."""
        return f"{self.turn}.end"

    def output(self, user_id: str) -> Output:
        """As it was put."""
        return Output(
            user_id=user_id,
            content="\n\n".join(part for part in (self.asked, self.context) if part),
            status="awaiting_input",
            id=self.id,
            session_id=self.session,
            question=self.asked,
            options=list(self.options),
            answers=[self.turn],
            timestamp=self.at.isoformat(),
        )


def unsaid(output: Output) -> str:
    """The question that an output puts, where its text does not hold it; "" elsewhere."""
    asked = output.question if output.status == "awaiting_input" else None
    return asked if asked and asked not in output.content else ""


def numbered(options: Iterable[str], indent: int = 2, width: int = 0) -> list[str]:
    """What a question can be answered with, a line each, cut to so many characters where a width is given."""
    return [
        f"{'':{indent}}{number}. {line(option, width) if width else option}"
        for number, option in enumerate(options, 1)
    ]


async def questions(client: Client, user_id: str, session: str = "") -> list[Question]:
    """Those that are open, in that session or in any, the oldest first. Reads the Store."""
    store = await client.store()
    where: dict[str, Any] = {
        "user_id": ("in", people.seen_by(user_id)),
        "agent": CHATTER,
        "state": "awaiting_input",
    }
    where["created_at"] = ("gt", datetime.now(UTC) - timedelta(days=_DAYS))
    if session:
        where["session_id"] = session
    newest: dict[str, TurnRow] = {}
    for turn in await store.select(TurnRow, where, order=[("created_at", "desc")], limit=_MOST):
        newest.setdefault(turn.session_id or "", turn)
    found = [one for turn in newest.values() if (one := await _open(store, turn))]
    if found:
        answered = await _answering(client)
        found = [one for one in found if one.session not in answered]
    return sorted(found, key=lambda one: one.at)


async def _open(store: Store, turn: TurnRow) -> Question | None:
    """The question with which a turn ended, if nobody has said anything in its session since, nor cleared it."""
    session = turn.session_id or ""
    mine = {"session_id": session, "turn_id": turn.turn_id}
    rows = await store.select(ConversationMessage, mine, order=[("seq", "asc")])
    known = await store.select(Session, {"key": session}, limit=1)
    cleared = known[0].clear_at if known else None
    if not rows or (cleared is not None and turn.created_at <= cleared):
        return None
    after = {"session_id": session, "seq": ("gt", rows[-1].seq), "role": "user"}
    if any(row.user_id for row in await store.select(ConversationMessage, after)):
        return None
    asked = _escalated(rows)
    if asked is not None:
        options = tuple(map(str, asked.get("options") or []))
        words = str(asked.get("question") or ""), options, str(asked.get("context") or "")
        return Question(turn.turn_id, session, *words, rows[-1].created_at)
    return await _money(store, turn)


def _escalated(rows: Sequence[ConversationMessage]) -> dict[str, Any] | None:
    blocks = (block for row in rows for block in row.content if row.role == "assistant")
    calls = [block for block in blocks if block.get("type") == "tool_use" and block.get("name") == _TOOL]
    return dict(calls[-1].get("input") or {}) if calls else None


async def _money(store: Store, turn: TurnRow) -> Question | None:
    """What is asked where a budget is spent, which no call asks."""
    where = {"scope": f"session:{turn.session_id}", "key": budgets.ASKED}
    kept = await store.select(Setting, where, limit=1)
    if not kept or kept[0].value.get("answer") is not None:
        return None
    value = kept[0].value
    words = budgets.question(value), tuple(budgets.OPTIONS), ""
    return Question(
        turn.turn_id, turn.session_id or "", *words, turn.created_at, str(value.get("task") or "")
    )


async def _answering(client: Client) -> set[str]:
    """The sessions in which a person has said something that Chatter has not answered yet."""
    found = set()
    with contextlib.suppress(PromptDockError, TimeoutError):
        async with asyncio.timeout(_REACH):
            inbox = client.names.keys(CHATTER).inbox
            for _, flat in await client.bus.command("XRANGE", inbox, "-", "+", "COUNT", _WAITING):
                fields = dict(zip(flat[::2], flat[1::2], strict=True))
                if _said(fields.get(b"data", b"")):
                    found.add(fields.get(b"session", b"").decode("utf-8", "replace"))
    return found


def _said(data: bytes) -> bool:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and "content" in value and value.get("type") in (None, "message")
