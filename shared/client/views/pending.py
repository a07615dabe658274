"""Accepted messages that have not ended, and what each waits for."""

from __future__ import annotations

import json
from typing import Any

from shared import log
from shared.bus.keys import CHATTER
from shared.client.client import Client
from shared.client.text.safe import line
from shared.client.views import status
from shared.guard.permissions import about
from shared.guard.permissions.requests import Approvals

PendingRow = dict[str, Any]
_QUOTED = 60  # of the one that another waits for
_PREVIEW = 200  # characters of a message


async def pending(client: Client, limit: int = 1000) -> list[PendingRow]:
    """Every accepted message that has not ended: agent, id, session, since when, what it waits for."""
    await client.reach()
    found, sessions = [], set()
    for agent in await client.presence.agents():
        keys = client.names.keys(agent)
        for entry, flat in await client.bus.command("XRANGE", keys.inbox, "-", "+", "COUNT", limit):
            fields = dict(zip(flat[::2], flat[1::2], strict=True))
            session, data = fields.get(b"session", b"").decode("utf-8", "replace"), fields.get(b"data", b"")
            sessions.add(session if agent == CHATTER else _asker(data))
            owner = await client.bus.command("HGET", keys.turn(session), "owner")
            given = await client.bus.command("LPOS", keys.given(session), entry)
            running = owner is not None and given is not None
            found.append(
                {
                    "agent": agent,
                    "id": fields.get(b"id", b"").decode("utf-8", "replace"),
                    "session": session,
                    "accepted_ms": int(entry.decode().split("-")[0]),
                    "state": "running" if running else "waiting",
                    "worker": owner.decode() if running else None,
                    "waits_for": "",
                    "content": preview(data),
                }
            )
    await _explain(client, found, sessions - {""})
    return found


async def behind(client: Client, session: str, message_id: str) -> str:
    """What a message of a conversation waits behind there, in its words; "" where it is the next."""
    before = await first(client, session)
    return "" if before is None or before["id"] == message_id else line(before["content"], _QUOTED)


async def first(client: Client, session: str) -> PendingRow | None:
    """The oldest message of a conversation that has not ended, which is worked on before the others."""
    rows = (row for row in await pending(client) if (row["agent"], row["session"]) == (CHATTER, session))
    return next(rows, None)


async def _explain(client: Client, rows: list[PendingRow], sessions: set[str]) -> None:
    """Say what each waits for: a permission, the message before it, a worker."""
    approvals = Approvals(client.bus, client.names)
    cards = {(c.agent, c.home): c for session in sessions for c in await approvals.waiting(session)}
    busy = {(row["agent"], row["session"]): row for row in rows if row["state"] == "running"}
    served: dict[str, bool] = {}
    for row in rows:
        here = row["agent"], row["session"]
        if row["state"] == "running":
            if card := cards.get(here):
                row["waits_for"] = f"permission of {card.user_id}: {about.does(card)[:_PREVIEW]}"
        elif here in busy:
            row["waits_for"] = f"message {busy[here]['id']}: {line(busy[here]['content'], _QUOTED)}"
        else:
            if row["agent"] not in served:
                served[row["agent"]] = await status.serves(client, row["agent"])
            row["waits_for"] = "a free worker" if served[row["agent"]] else f"{row['agent']}, who is not here"


def _asker(data: bytes) -> str:
    """The conversation on whose behalf an agent works."""
    person = _parsed(data).get("on_behalf_of")
    return str(person.get("session_id") or "") if isinstance(person, dict) else ""


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def preview(data: bytes) -> str:
    """The words of a message without secrets, cut short."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return log.redact(data.decode("utf-8", "replace"))[:_PREVIEW]
    if not isinstance(value, dict):
        return log.redact(str(value))[:_PREVIEW]
    payload = value.get("payload") if isinstance(value.get("payload"), dict) else {}
    assert isinstance(payload, dict)
    words = (
        value.get("content") or payload.get("question") or payload.get("title") or payload.get("command_file")
    )
    return log.redact(str(words or value.get("tool") or value.get("type") or ""))[:_PREVIEW]
