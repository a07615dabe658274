"""The row of a session, made with its first turn and touched with each; and what a session works on."""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any
from uuid import UUID

from shared.errors import Conflict, Missing, StoreUnavailable
from shared.store.base import Store
from shared.store.query import IN_LIMIT
from shared.store.records import Project, Session, Setting
from shared.store.row import derived, now
from shared.turns.records import JournalRecord, ResultRecord

DEFAULT = "default"  # the project that is always there
ACTIVE = "active_project"  # the setting of a conversation: {project: slug | null}
SWITCHES = frozenset(
    {"set_active_project", "delete_project"}
)  # tools whose results name the project from then on

TITLED = "title"  # what a title is called on its way to the Store
_TITLE = 60  # characters of a conversation's first words
# What a turn sets on a session that is known; its title is that of its first.
_TOUCHED = ("origin", "project_id", "talked", "clear_seq", "channel", "number")


def title(words: str) -> str:
    """What a conversation is called: the first words that a person said in it, on one line."""
    line = " ".join(words.split())
    return line if len(line) <= _TITLE else f"{line[: _TITLE - 1].rstrip()}…"


async def touch(store: Store, turns: list[dict[str, Any]]) -> None:
    """Note that turns of these sessions ended (from the outbox); what people set on them stays.

    All that bear one mark at once: at a hundred turns a second a write for each would fall behind.
    """
    sessions: dict[str, dict[str, Any]] = {}
    for values in turns:
        before = sessions.get(values["key"], {})
        sessions[values["key"]] = (
            before | values | ({"title": before["title"]} if before.get("title") else {})
        )
    alike: dict[str, list[str]] = {}
    for key in sorted(sessions):
        given = sessions[key]
        marks = {name: given[name] for name in _TOUCHED if given.get(name) not in (None, "", {})}
        marks["rested"] = bool(given.pop("rested", False))
        alike.setdefault(json.dumps(marks, sort_keys=True), []).append(key)
    for kept, keys in alike.items():
        for start in range(0, len(keys), IN_LIMIT):
            some = keys[start : start + IN_LIMIT]
            changes = json.loads(kept)
            if not changes.pop("rested") or not changes:  # nobody spoke who puts a conversation to rest
                changes["last_active_at"] = now()
            if "project_id" in changes:
                changes["project_id"] = UUID(changes["project_id"])
            known = await store.update(Session, changes, {"key": ("in", some)})
            fresh = [sessions[key] for key in set(some) - {row.key for row in known}]
            await _make(store, [Session(id=derived("session", values["key"]), **values) for values in fresh])


async def entitle(store: Store, given: list[dict[str, Any]]) -> None:
    """Titles that the model gave (from the outbox); one that a person gave stays."""
    for values in given:
        where = {"key": values["key"], "titled": "words"}
        await store.update(Session, {"title": values["title"], "titled": "model"}, where)


async def _make(store: Store, rows: list[Session]) -> None:
    """New rows; one that another drainer made a moment ago stays as it is, with what people set on it."""
    if not rows:
        return
    try:
        await store.insert(rows[0], beside=rows[1:])
    except Conflict:
        for row in rows:
            with contextlib.suppress(Conflict):
                await store.insert(row)


async def last_word(store: Store, row: Session) -> datetime:
    """When somebody last spoke in this conversation, or in another thread of its channel, else of its person."""
    where = {"channel": row.channel} if row.channel else {"user_id": row.user_id}
    found = await store.select(
        Session, {"agent": row.agent, **where}, order=[("last_active_at", "desc")], limit=1
    )
    return max([row.last_active_at, *(one.last_active_at for one in found)])


async def active_project(store: Store, session: str) -> str:
    """The project that a conversation works on; the default one where none is set, or it is gone, or the Store is
    down."""
    try:
        where = {"scope": f"session:{session}", "key": ACTIVE}
        rows = await store.select(Setting, where, limit=1)
        project = str((rows[0].value.get("project") if rows else None) or DEFAULT)
        if project != DEFAULT and not await store.count(Project, {"slug": project}):
            return DEFAULT
    except StoreUnavailable:
        return DEFAULT
    return project


async def need_project(store: Store, project: str) -> str:
    """The project that a request names; Missing where there is none of that id. With the Store down it is believed."""
    if project == DEFAULT:
        return project
    try:
        there = [row.slug for row in await store.select(Project, order=[("slug", "asc")])]
    except StoreUnavailable:
        return project
    if project not in there:
        raise Missing.named("project", project, there)
    return project


def switched(record: JournalRecord) -> str | None:
    """The project that a call of a turn made the active one, by its result in the journal; None for another call."""
    if not isinstance(record, ResultRecord) or record.tool not in SWITCHES or record.error:
        return None
    return str(record.content["active_project"] or DEFAULT) if ACTIVE in record.content else None


def project_now(records: Iterable[JournalRecord], begun: str) -> str:
    """The project that a turn which began in `begun` works on after what is in its journal."""
    switches = (switched(record) for record in records)
    return functools.reduce(lambda project, switch: switch or project, switches, begun)
