"""A person's own conversations: a list, a search, what was said in one; and a file in parts that a message holds."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal

from shared import people
from shared.bus.keys import CHATTER
from shared.bus.messages import default_session
from shared.bus.reading import MAX_BYTES
from shared.client.client import Client
from shared.client.text.matching import pick
from shared.client.types import Card
from shared.conversation import exchange, listing, reading
from shared.conversation.context import SHORT
from shared.conversation.exchange import SessionDocument, SessionLine
from shared.errors import Denied, Missing, PromptDockError, UsageError
from shared.store.records import Session, SnapshotRow
from shared.turns import outbox

Format = Literal["json", "markdown"]
_PART = MAX_BYTES * 2 // 3  # bytes of a message that a part may take
LARGEST = 64 * 1024 * 1024  # bytes of a file that is imported
_NEAR = 3  # names that are proposed
_ALL = 1000  # conversations among which a part of a name is looked for


@dataclass(frozen=True)
class OwnSession:
    """A conversation of theirs, and all that was said in it."""

    key: str
    title: str
    said: list[SessionLine]

    def written(self, format: Format, newest: int = 0) -> str:
        """As a document; only the `newest` messages, where it is not 0."""
        write = exchange.as_json if format == "json" else exchange.as_markdown
        return write(self.title, self.said[-newest:] if newest else self.said)


@dataclass(frozen=True)
class SavedWindow:
    """What was saved of a conversation; `id` is short."""

    id: str
    description: str
    session_id: str
    messages: int
    tool_calls: int
    at: datetime

    def card(self) -> Card:
        """As it is printed for programs."""
        return {**asdict(self), "at": self.at.isoformat()}


async def listed(client: Client, user: str, archived: bool = False, limit: int = 20) -> list[Card]:
    """The last used first; those that were put away, or the others. Reads the Store."""
    rows = await listing.of_person(await client.store(), user, archived, limit)
    return [_card(row) for row in rows]


async def search(client: Client, user: str, words: str, limit: int = 20) -> list[Card]:
    """Those in which any of these words was said, the best first, archived ones too. Reads the Store."""
    found = await listing.search(await client.store(), user, words, limit)
    return [{**_card(one.row), "found": one.line, "message_id": one.message_id} for one in found]


async def saved(client: Client, user: str, limit: int = 20) -> list[SavedWindow]:
    """What they saved until now, the newest first. Reads the Store."""
    await settled(client)
    where: dict[str, Any] = {"kind": "saved", "user_id": user}
    store = await client.store()
    rows = await store.select(SnapshotRow, where, order=[("created_at", "desc")], limit=limit)
    return [
        SavedWindow(
            str(row.id)[:SHORT],
            row.description,
            row.session_id,
            row.message_count,
            row.tool_calls,
            row.created_at,
        )
        for row in rows
    ]


async def meant(client: Client, user: str, typed: str, exact: bool = False) -> Session:
    """The conversation of theirs that is meant: by its id or title, or by a part of one; their usual one by default.

    With `exact` no part will do, but its title does: for what a wrong guess would spoil.
    """
    store = await client.store()
    key = typed or default_session(user)
    rows = await store.select(Session, {"key": key}, limit=1)
    if not rows and typed:
        mine = [row for on in (False, True) for row in await listing.of_person(store, user, on, _ALL)]
        fix = "promptdock sessions list shows them"
        key = _titled(typed, mine, fix) if exact else _partly(typed, mine, fix)
        rows = [row for row in mine if row.key == key]
    if not rows:
        raise UsageError(f"nothing was said in {key!r} yet", "", "promptdock chat begins it")
    if not people.sees(user, rows[0].user_id) and not (
        rows[0].user_id is None and key == default_session(user)
    ):
        raise Denied(f"the conversation {key} is somebody else's", f"{user} did not begin it", "ask them")
    return rows[0]


def _titled(typed: str, mine: list[Session], fix: str) -> str:
    """The one that is called exactly so; UsageError."""
    found = [row.key for row in mine if (row.title or "").strip().casefold() == typed.strip().casefold()]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(
            f"several conversations are called {typed!r}", ", ".join(sorted(found)), "name one by its id"
        )
    near = sorted(row.key for row in mine if typed.casefold() in row.key.casefold())[:_NEAR]
    why = f"did you mean {' or '.join(near)}? A part of a name is not enough here" if near else ""
    raise UsageError(f"there is no conversation {typed!r}", why, fix)


def _partly(typed: str, mine: list[Session], fix: str) -> str:
    """The one whose title it is, or else of whose id or title it is a part; UsageError."""
    words = typed.strip().casefold()
    titles = {row.key: (row.title or "").strip().casefold() for row in mine}
    found = [key for key, title in titles.items() if title == words]
    if not found and not any(words in key.casefold() for key in titles):
        found = [key for key, title in titles.items() if words in title]
    if len(found) == 1:
        return found[0]
    if found:
        several = ", ".join(sorted(found)[:_NEAR])
        raise UsageError(f"several conversations are called {typed!r}", several, "name one by its id")
    return pick(typed, titles, "conversation", fix)


async def read(client: Client, user: str, typed: str) -> OwnSession:
    """What was said in one of theirs until now. Reads the Store."""
    await settled(client)
    return await _read(client, await meant(client, user, typed))


async def whole(client: Client, key: str) -> OwnSession:
    """The same of a conversation that somebody may see; Missing where nothing was said there."""
    await settled(client)
    rows = await (await client.store()).select(Session, {"key": key}, limit=1)
    if not rows:
        raise Missing(f"there is no session {key[:100]!r} yet", "nothing was said there", "")
    return await _read(client, rows[0])


async def _read(client: Client, row: Session) -> OwnSession:
    return OwnSession(row.key, row.title, await reading.lines(await client.store(), row.key))


def document(data: bytes) -> str:
    """The text of a file that is to be imported; UsageError for one that is none."""
    if len(data) > LARGEST:
        raise UsageError("the file is too large to be imported", f"at most {LARGEST} bytes are read", "")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError("the file cannot be imported", "it is not in UTF-8", "") from None


async def settled(client: Client) -> None:
    """Wait a moment until what was done just now can be read; not where the cluster is down."""
    await outbox.settled(client.bus, client.names, CHATTER)


async def take_in(
    text: str, import_: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]], **given: Any
) -> dict[str, Any]:
    """Make a conversation of a file by calls of import_session, part by part; an error says what stands there."""
    result: dict[str, Any] = {}
    begin = int(given.pop("after", 0))
    for part, after in parts(text):
        if result:
            given |= {"session_id": result["session_id"], "title": result["title"]}
        try:
            result = await import_({**given, "content": part, "after": begin + after})
        except PromptDockError as error:
            if not result:
                raise
            there = f"{result['messages']} messages stand in {result['session_id']}; {error.why}"
            raise type(error)(error.what, there, error.fix) from None
    return result


def parts(text: str) -> Iterator[tuple[str, int]]:
    """A file that is to be imported, in parts that a message holds, each with how many messages come before it.

    UsageError before the first, where the file is none.
    """
    document = exchange.parse(text)
    sizes = [_size(line) for line in document.said]
    for number, size in enumerate(sizes, 1):
        if size > _PART:
            raise UsageError(
                f"message {number} is too long to be imported", f"{size} bytes; at most {_PART}", "shorten it"
            )
    return _cut(document, sizes)


def _cut(document: SessionDocument, sizes: list[int]) -> Iterator[tuple[str, int]]:
    begin, taken = 0, 0
    for number, size in enumerate(sizes):
        if taken + size > _PART:
            yield exchange.as_json(document.title, document.said[begin:number]), begin
            begin, taken = number, 0
        taken += size
    yield exchange.as_json(document.title, document.said[begin:]), begin


def _size(line: SessionLine) -> int:
    """Bytes that a message takes inside of another one."""
    return len(json.dumps(exchange.as_json("", [line])))


def _card(row: Session) -> Card:
    return {
        "session_id": row.key,
        "title": row.title or row.key,
        "last_active": row.last_active_at.isoformat(),
        "archived": row.archived,
        **({} if people.signs(row.user_id or "") else {"unsigned": True}),
    }
