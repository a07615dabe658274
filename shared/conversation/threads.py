"""Threads as the Store knows them: which conversation a reply means, and what the other threads are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shared.errors import StoreUnavailable
from shared.store.base import Store
from shared.store.query import IN_LIMIT
from shared.store.records import Message, Post, Session
from shared.turns.outbox import RowChange
from shared.turns.threads import Thread

MOVED = "moved"  # what a message that found its conversation is called on its way to the Store
_BESIDE = "asks:"  # before the name of the session whose request for permission a message answered
_SOME = 10  # rows of one message that are looked at


async def replied(store: Store, channel: str, signed: bool, reply: str) -> tuple[str, str] | None:
    """The conversation in which that was said, and what it is by an id of ours; None where nobody knows it.

    `reply` is the id of a surface's post in the channel, or of a message, a turn or an output.
    """
    if channel:
        where: dict[str, Any] = {"channel": channel, "surface_id": reply, "signed": signed}
        posts = await store.select(Post, where, order=[("created_at", "desc")], limit=1)
        if posts:
            return posts[0].session_id, posts[0].message_id
    rows = await store.select(Message, {"message_id": reply}, order=[("created_at", "desc")], limit=_SOME)
    for row in rows:
        if row.session_id and row.type != "dead":
            return row.session_id.removeprefix(_BESIDE), reply
    return None


def moved(ids: Sequence[str], begun: str, session: str) -> RowChange:
    """Messages that were accepted into `begun` belong to `session`."""
    return RowChange(MOVED, {"ids": list(ids), "from": begun, "to": session})


async def move(store: Store, given: list[dict[str, Any]]) -> None:
    """Note that (from the outbox)."""
    for values in given:
        where = {
            "session_id": values["from"],
            "message_id": ("in", [str(id) for id in values["ids"]][:IN_LIMIT]),
        }
        await store.update(Message, {"session_id": values["to"]}, where)


async def called(store: Store, threads: Sequence[Thread]) -> list[dict[str, Any]]:
    """Threads as they are listed, each by its title; with the Store down by its first words."""
    try:
        return cards(threads, await titles(store, threads))
    except StoreUnavailable:
        return cards(threads, {})


def cards(threads: Sequence[Thread], titled: Mapping[str, str]) -> list[dict[str, Any]]:
    """Threads as they are listed."""
    return [
        {
            "channel": thread.channel,
            "number": thread.number,
            "state": thread.state,
            "title": titled.get(thread.session) or thread.words,
            "user": thread.user,
            "at": thread.at.isoformat(timespec="seconds"),
            "session_id": thread.session,
        }
        for thread in threads
    ]


async def titles(store: Store, threads: Sequence[Thread]) -> dict[str, str]:
    """What threads are called by a person or a model, by their sessions; the others are called by their first words."""
    keys = [thread.session for thread in threads][:IN_LIMIT]
    rows = await store.select(Session, {"key": ("in", keys)}) if keys else []
    return {row.key: row.title for row in rows if row.title and row.titled != "words"}
