"""The outbox: what happened, on its way from Redis to the Store.

Entries are written in the same script as what they record, stored by primary key, then deleted: nothing falls
between, and what is stored twice is stored once. One worker at a time drains each queue's outbox.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
import zlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from shared import failpoints, log
from shared.bus.base import Bus
from shared.bus.keys import CHATTER_OUTPUT, Names, QueueKeys, is_agent
from shared.errors import BusUnreachable, ConfigurationError, Conflict, PromptDockError, StoreUnavailable
from shared.redaction import redacted
from shared.store import records
from shared.store.base import Store
from shared.store.records import Row
from shared.store.row import derived
from shared.turns import scripts

BATCH = 500
_KEPT = 64 * 1024  # bytes of what cannot be stored, in the dead letters
_PLAIN = 4 << 20  # bytes of an entry up to which it stays JSON
_OTHERS = 5.0  # seconds between two looks at queues that have workers of their own, or programs
_SELDOM = 15.0  # seconds between them where many workers look
_LOOK = 0.05  # seconds between two looks whether something is stored
_REST = 3.0  # seconds between two looks at our own, where nothing is done
_LOCK_MS = 3_000  # how long the rows of a dead drainer wait for another; two at once store the same twice
Apply = Callable[[Store, list[dict[str, Any]]], Awaitable[None]]  # the changes of one batch, in order
_TABLES: dict[str, type[Row]] = {
    kind.table: kind
    for kind in vars(records).values()
    if isinstance(kind, type) and issubclass(kind, Row) and getattr(kind, "table", None)
}


@dataclass(frozen=True)
class RowChange:
    """A conditional write on its way: whoever drains hands `values` to the applier of that name."""

    applier: str
    values: dict[str, Any]


def pack(rows: Sequence[Row | RowChange]) -> bytes:
    """Rows and changes as one outbox entry: JSON, compressed where it is so large that a server may refuse it."""
    data = json.dumps(
        [
            {"apply": row.applier, "values": row.values}
            if isinstance(row, RowChange)
            else {"table": row.table, "row": row.model_dump(mode="json")}
            for row in rows
        ],
        default=str,
        ensure_ascii=False,
        separators=(",", ":"),
    ).encode("utf-8", "replace")
    return b"z" + zlib.compress(data, 1) if len(data) > _PLAIN else data


class Outbox:
    """Puts rows in, and drains every queue's outbox into the Store."""

    def __init__(
        self,
        bus: Bus,
        names: Names,
        store: Store,
        agent: str,
        instance: str,
        appliers: dict[str, Apply] | None = None,
    ) -> None:
        self._bus, self._names, self._store = bus, names, store
        self._appliers = appliers or {}
        self._agent, self._instance = agent, instance
        self.stored = 0
        self._broken: set[str] = set()  # queues whose outbox is no stream: logged once
        self._known = 1  # queues that there were at the last look
        self._wake = asyncio.Event()
        self._awaited = False
        self._timer: asyncio.TimerHandle | None = None

    def wake(self) -> None:
        """Something is there in our own queue that others wait for: drain that now, whoever drains by and by.

        Two at once store the same twice, which is storing it once.
        """
        self._awaited = True
        self._wake.set()

    def soon(self, seconds: float = 0.5) -> None:
        """A turn of ours has ended: look by then, and take along what else comes."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._due)

    def _due(self) -> None:
        self._timer = None
        self._wake.set()

    async def put(self, rows: Sequence[Row | RowChange]) -> None:
        """Rows that belong to no turn: log lines, task events."""
        if rows:
            await self._bus.command(
                "XADD", self._names.keys(self._agent).outbox, "*", "kind", "rows", "data", pack(rows)
            )

    async def run(self, pause: float = 1.0, busy: Callable[[], bool] = lambda: True) -> None:
        """Drain until cancelled, our own queue each `pause` seconds while `busy`; with the Store down, wait for it."""
        quiet, drained = True, float("-inf")
        while True:
            try:
                woken, self._awaited = self._awaited, False
                self._wake.clear()
                # Every worker looks at all queues: where there are many, each looks more seldom.
                if not quiet or time.monotonic() - drained >= min(_SELDOM, _OTHERS * self._known):
                    drained, moved = time.monotonic(), await self.drain()
                else:
                    moved = await self._own(anyway=woken)
                if not quiet:
                    log.get().info("The store answers again", stored=moved)
                quiet = True
            except (StoreUnavailable, BusUnreachable) as error:
                if quiet:
                    log.get().warning("Rows wait for the store", why=str(error))
                quiet, moved = False, 0
            except ConfigurationError:
                raise
            except PromptDockError as error:  # a key of the wrong kind: no reason to end
                log.get().error("An outbox could not be drained", why=str(error))
                moved = 0
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0 if moved >= BATCH else pause if busy() or not quiet else _REST):
                    await self._wake.wait()

    async def drain(self) -> int:
        """Store what waits in all queues; how many entries it was."""
        known = [name.decode("utf-8", "replace") for name in await self._agents()]
        agents = sorted({name for name in known if is_agent(name)} | {self._agent})
        self._known = len(agents)
        waits = await asyncio.gather(*(self._tried(agent, self._waits(agent)) for agent in agents))
        moved = 0
        for agent, some in zip(agents, waits, strict=True):
            moved += await self._tried(agent, self._drain_one(agent)) if some else 0
        return moved

    async def _own(self, anyway: bool) -> int:
        """Store what waits in our own queue; `anyway` also where another worker drains it."""
        name = self._agent
        if not await self._tried(name, self._waits(name)):
            return 0
        return await self._tried(name, self._drain_one(name, anyway))

    async def _waits(self, agent: str) -> int:
        return int(await self._bus.script(scripts.WAITS, self._names.queue(agent)))

    async def _tried(self, agent: str, work: Awaitable[int]) -> int:
        """What came of it; a queue whose keys are of the wrong kind is no reason to end."""
        try:
            return await work
        except (BusUnreachable, ConfigurationError, StoreUnavailable):
            raise
        except PromptDockError as error:
            if agent not in self._broken:
                log.get().error("An outbox could not be drained", queue=agent, why=str(error))
            self._broken.add(agent)
            return 0

    async def _agents(self) -> list[bytes]:
        return list(await self._bus.command("SMEMBERS", self._names.agents))

    async def _drain_one(self, agent: str, anyway: bool = False) -> int:
        keys = self._names.keys(agent)
        mine = await self._bus.command("SET", keys.outbox_holder, self._instance, "NX", "PX", _LOCK_MS)
        if (
            not mine
            and not anyway
            and await self._bus.command("GET", keys.outbox_holder) != self._instance.encode()
        ):
            return 0
        moved = 0
        while entries := await self._bus.command("XRANGE", keys.outbox, "-", "+", "COUNT", BATCH):
            rows: list[Row | RowChange] = []
            for entry_id, fields in entries:
                try:
                    rows += _rows(agent, entry_id.decode(), fields)
                except Exception as error:  # whatever is in it
                    await self._unreadable(keys, "archive", entry_id.decode(), error)
            await self._store_all(keys, rows)
            await self._bus.command("XDEL", keys.outbox, *(entry_id for entry_id, _ in entries))
            await self._bus.command("PEXPIRE", keys.outbox_holder, _LOCK_MS)
            moved += len(entries)
            self.stored += len(rows)
            if len(entries) < BATCH:
                break
        return moved + await self._drain_outputs(agent, keys)

    async def _drain_outputs(self, agent: str, keys: QueueKeys) -> int:
        """Outputs to people lie in a stream of their own already: read on from where we were."""
        cursor = await self._bus.command("GET", keys.stored_output) or b"-"
        start = b"(" + cursor if cursor != b"-" else cursor
        entries = await self._bus.command("XRANGE", keys.outputs, start, "+", "COUNT", BATCH)
        if not entries:
            return 0
        rows: list[Row | RowChange] = []
        for entry_id, fields in entries:
            try:
                rows.append(_output(agent, entry_id.decode(), fields[1]))
            except Exception as error:  # whatever is in it
                await self._unreadable(keys, "out", entry_id.decode(), error)
        await self._store_all(keys, rows)
        await self._bus.command("SET", keys.stored_output, entries[-1][0])
        self.stored += len(rows)
        return len(entries)

    async def _unreadable(self, keys: QueueKeys, stream: str, entry_id: str, error: Exception) -> None:
        """Bury an entry that nobody can read: it must neither end who reads it nor stand in the way of others."""
        if failpoints.without("poisoned-entry"):
            raise error
        why = reason(stream, error)
        log.get().error(
            "An entry could not be read; it is buried", entry=f"{keys.named(stream)} {entry_id}", why=why
        )
        await self._bus.script(scripts.UNREADABLE, keys.prefix, stream, entry_id, why)

    async def _bury(self, keys: QueueKeys, what: str, values: object, error: Exception) -> None:
        """A row or change that can be read, and that the Store does not take."""
        log.get().error(what, why=reason("archive", error))
        data = json.dumps(values, default=str, ensure_ascii=False).encode("utf-8", "replace")[:_KEPT]
        fields = ("reason", reason("archive", error), "id", "", "session", "", "channel", "", "data", data)
        await self._bus.command("XADD", keys.dead_letters, "MAXLEN", "~", 10_000, "*", *fields)

    async def _store_all(self, keys: QueueKeys, items: list[Row | RowChange]) -> None:
        rows = [item for item in items if isinstance(item, Row)]
        try:
            await self._store.upsert(rows)
        except (StoreUnavailable, BusUnreachable):
            raise
        except Exception as error:  # one of them is to blame: the others are not
            if not isinstance(error, Conflict):
                log.get().warning("Rows are stored one by one", why=str(error)[:200])
            for row in rows:
                await self._store_one(keys, row)
        changes: dict[str, list[dict[str, Any]]] = {}
        for item in items:
            if isinstance(item, RowChange):
                changes.setdefault(item.applier, []).append(item.values)
        for applier, values in changes.items():
            await self._apply(keys, applier, values)

    async def _apply(self, keys: QueueKeys, applier: str, values: list[dict[str, Any]]) -> None:
        try:
            await self._appliers[applier](self._store, values)
        except (StoreUnavailable, BusUnreachable):
            raise
        except PromptDockError as error:
            log.get().error("A change could not be stored", change=applier, why=str(error))
        except Exception as error:  # of a newer release, or nonsense
            if len(values) > 1 and applier in self._appliers:
                for one in values:
                    await self._apply(keys, applier, [one])
            else:
                await self._bury(
                    keys, "A change could not be read", {"apply": applier, "values": values}, error
                )

    async def _store_one(self, keys: QueueKeys, row: Row) -> None:
        """A row that collides: a conversation that went on while the Store could not tell its last number."""
        try:
            await self._store.upsert([row])
        except (StoreUnavailable, BusUnreachable):
            raise
        except Exception as error:
            if not isinstance(error, Conflict):
                values = {"table": row.table, "row": row.model_dump(mode="json")}
                await self._bury(keys, "A row could not be stored", values, error)
                return
            if not isinstance(row, records.ConversationMessage):
                log.get().error("A row could not be stored", table=row.table, why=str(error))
                return
            where = {"session_id": row.session_id}
            last = await self._store.select(
                records.ConversationMessage, where, order=[("seq", "desc")], limit=1
            )
            await self._store.upsert([row.model_copy(update={"seq": last[0].seq + 1})])


async def settled(bus: Bus, names: Names, agent: str, seconds: float = 1.5) -> None:
    """Wait until what happened until now is stored, at most so long: who asks then reads what they just did."""
    keys = names.keys(agent)
    with contextlib.suppress(TimeoutError, PromptDockError):
        async with asyncio.timeout(seconds):
            ends = [await _newest(bus, stream) for stream in (keys.outbox, keys.outputs)]
            while not await _stored(bus, keys, *ends):  # noqa: ASYNC110 - another process stores it
                await asyncio.sleep(_LOOK)


async def _newest(bus: Bus, stream: str) -> tuple[int, ...]:
    found = await bus.command("XREVRANGE", stream, "+", "-", "COUNT", 1)
    return _place(found[0][0]) if found else ()


async def _stored(bus: Bus, keys: QueueKeys, rows: tuple[int, ...], said: tuple[int, ...]) -> bool:
    first = await bus.command("XRANGE", keys.outbox, "-", "+", "COUNT", 1)
    if first and _place(first[0][0]) <= rows:
        return False
    return not said or _place(await bus.command("GET", keys.stored_output) or b"0-0") >= said


def _place(id: bytes) -> tuple[int, ...]:
    return tuple(int(part) for part in id.split(b"-"))


def _rows(agent: str, entry_id: str, flat: list[bytes]) -> list[Row | RowChange]:
    fields = dict(zip((name.decode() for name in flat[::2]), flat[1::2], strict=True))
    if fields["kind"] in (b"message", b"dead"):
        return [_message(agent, entry_id, fields)]
    if fields["kind"] == b"posted":
        return list(_posts(entry_id, {name: value.decode() for name, value in fields.items()}))
    data = fields["data"]
    return [_item(item) for item in json.loads(zlib.decompress(data[1:]) if data[:1] == b"z" else data)]


def reason(where: str, error: Exception) -> str:
    """Why an entry of a stream is buried: without what stands in it."""
    if isinstance(error, ValidationError):
        places = {
            ".".join(map(str, one["loc"])) for one in error.errors(include_input=False, include_url=False)
        }
        return f"unreadable: {where}: {', '.join(sorted(places))}"[:300]
    why = f"{type(error).__name__}: {error}" if isinstance(error, (KeyError, ValueError)) else repr(error)
    return log.redact(f"unreadable: {where}: {why}")[:300]


def _item(item: dict[str, Any]) -> Row | RowChange:
    if "apply" in item:
        return RowChange(item["apply"], item["values"])
    return _TABLES[item["table"]].model_validate(item["row"])


def _output(agent: str, entry_id: str, data: bytes) -> Row:
    """The row of an output to a person."""
    content = json.loads(data)
    if not isinstance(content, dict):
        raise ValueError("it is no output")
    return records.Message(
        id=derived("said", agent, entry_id),
        created_at=datetime.fromtimestamp(int(entry_id.split("-")[0]) / 1000, UTC),
        message_id=content.get("id"),
        from_agent=agent,
        to_agent="user",
        type=content.get("status", "complete"),
        payload=content,
        channel=content.get("via") or CHATTER_OUTPUT,
        session_id=content.get("session_id"),
        user_id=content.get("user_id"),
    )


def _posts(entry_id: str, fields: dict[str, str]) -> Iterator[Row]:
    """What a surface shows under which ids."""
    channel, trust = fields["channel"], fields["trust"]
    for post in fields["data"].split():
        yield records.Post(
            id=derived("post", trust + channel, post),
            created_at=datetime.fromtimestamp(int(entry_id.split("-")[0]) / 1000, UTC),
            channel=channel,
            surface_id=post,
            session_id=fields["session"],
            message_id=fields["id"],
            signed=trust == "s:",
        )


def _message(agent: str, entry_id: str, fields: dict[str, bytes]) -> Row:
    """The row of a message that passed on the bus, from its bytes."""
    text = fields["data"].decode("utf-8", "replace")
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    content: dict[str, Any] = value if isinstance(value, dict) else {"raw": text}
    inner = content.get("payload")
    payload: dict[str, Any] = inner if isinstance(inner, dict) else content
    dead = fields.get("reason", b"").decode("utf-8", "replace")
    return records.Message(
        id=derived("message", agent, entry_id),
        created_at=datetime.fromtimestamp(int(entry_id.split("-")[0]) / 1000, UTC),
        message_id=fields["id"].decode("utf-8", "replace"),
        from_agent=str(content.get("from") or "user"),
        to_agent=str(content.get("to") or agent),
        type="dead" if dead else str(content.get("type") or "message"),
        payload=redacted(payload | {"reason": dead} if dead else payload),
        channel=fields["channel"].decode("utf-8", "replace"),
        session_id=fields["session"].decode("utf-8", "replace") or None,
        request_id=str(payload.get("request_id")) if payload.get("request_id") else None,
        user_id=str(content["user_id"]) if content.get("user_id") else None,
    )
