"""What happens in the cluster, for many readers in one process: one subscription, one read, a bounded queue for each.

A topic is one kept stream: what Chatter says, the changes of tasks, the live events of a session. Its entries have
cursors, by which a reader who comes back goes on. A reader who does not keep up is let go instead of waited for, and
goes on from its cursors when it comes again.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from shared import log
from shared.bus.activity import doing
from shared.bus.backoff import Backoff
from shared.bus.keys import CHATTER, CHATTER_OUTPUT, HUMAN_INPUT, STATUS, TASKS
from shared.bus.messages import Output
from shared.client import feed
from shared.client.client import Client
from shared.errors import BusUnreachable, PromptDockError

__all__ = ["OUTPUTS", "TASKS", "Fanout", "Moment", "Reader", "before", "is_cursor", "presence_card"]

OUTPUTS = "@outputs"  # a topic that is no session's: no session's id begins with @
_COUNT = 500  # entries of one read
_MOMENT = 0.004  # seconds in which events are gathered
_LOOK = 2.0  # seconds after which all is looked at, also where nothing was heard
_PLAIN = 1000  # outputs of a foreign Chatter that wait to be judged; more are dropped
_WAITING, _BYTES = 2000, 4 * 1024 * 1024  # moments that wait for one reader, about what a session keeps
_PUBLIC = ("agent", "instance", "status", "kind", "about", "model", "demo")  # of a presence card
_GATHER = 0.25  # seconds in which beats of agents are gathered into one look


@dataclass(frozen=True, eq=False)
class Moment:
    """One thing that happened. `cursor` is "" for what nobody keeps: who was not there looks at how it is now."""

    topic: str
    kind: str
    data: str  # JSON
    cursor: str = ""
    output: Output | None = None


def before(one: str, other: str) -> bool:
    """Whether a cursor stands before another."""
    return _place(one) < _place(other)


def presence_card(card: Mapping[str, Any]) -> dict[str, Any]:
    """Of who is here what everybody may know: not what they work on, which is somebody's, but since when.

    Where an agent waits for the model's provider, `waits` says why.
    """
    known = {name: card.get(name) for name in _PUBLIC if name in card}
    turns = doing(card)
    if turns:
        known["since"] = min(one.since for one in turns)
    if card.get("status") == "waiting" and (waits := [one for one in turns if one.waits]):
        first = min(waits, key=lambda one: one.waits_since)
        known |= {"waits": first.waits, "waits_since": first.waits_since}
    return known


def is_cursor(text: str) -> bool:
    """Whether this can be one."""
    ms, _, number = text.partition("-")
    return all(part.isascii() and part.isdigit() and len(part) < 20 for part in (ms, number or "0"))


def _place(cursor: str) -> tuple[int, int]:
    ms, _, number = cursor.partition("-")
    return int(ms), int(number or 0)


class Reader:
    """An async iterator of what happened, several at once where they waited; it ends where it fell behind."""

    def __init__(self, sees: Callable[[Moment], bool]) -> None:
        self._sees = sees
        self.cursors: dict[str, str] = {}
        self._waiting: list[Moment] = []
        self._bytes = 0
        self._more = asyncio.Event()
        self._ended = False

    def offer(self, moment: Moment) -> None:
        """Take it, unless it was seen or is not for this reader."""
        if self._ended or (moment.cursor and not before(self.cursors[moment.topic], moment.cursor)):
            return
        if moment.cursor:
            self.cursors[moment.topic] = moment.cursor
        if not self._sees(moment):
            return
        self._bytes += len(moment.data)
        if len(self._waiting) >= _WAITING or (self._waiting and self._bytes > _BYTES):
            self._waiting = []
            self.end()
            return
        self._waiting.append(moment)
        self._more.set()

    def end(self) -> None:
        """Nothing more comes."""
        self._ended = True
        self._more.set()

    async def take(self, patience: float) -> list[Moment] | None:
        """What waits, [] where nothing came in so many seconds, None at the end."""
        if not self._waiting and not self._ended:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    await self._more.wait()
        if self._waiting:
            taken, self._waiting, self._bytes = self._waiting, [], 0
            if not self._ended:
                self._more.clear()
            return taken
        return None if self._ended else []


@dataclass
class _Topic:
    name: str
    stream: str
    cursor: str
    readers: set[Reader] = field(default_factory=set)


class Fanout:
    """An async context manager; between its beginning and its end `reading` gives readers."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._topics: dict[str, _Topic] = {}
        self._readers: set[Reader] = set()
        self._dirty: set[str] = set()
        self._reads = asyncio.Lock()
        self._wake = asyncio.Event()
        self._beat = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._judging: set[asyncio.Task[None]] = set()
        self._away = False
        self._here = ""  # the last presence that was told
        self._closed = False

    async def __aenter__(self) -> Fanout:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()
        tasks = [*self._tasks, *self._judging]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def end(self) -> None:
        """Let all readers go, as before the process ends: they come again."""
        self._closed = True
        for reader in list(self._readers):
            reader.end()

    @property
    def readers(self) -> int:
        """How many there are."""
        return len(self._readers)

    @contextlib.asynccontextmanager
    async def reading(
        self, after: Mapping[str, str], sees: Callable[[Moment], bool] = lambda _: True
    ) -> AsyncIterator[Reader]:
        """A reader of these topics, each after its cursor, "" for what comes from now on.

        Where what came after a cursor is not kept any more, a moment `gap` says so.
        """
        self._start()
        reader = Reader(sees)
        try:
            async with self._reads:  # nothing is handed on meanwhile
                for name, cursor in after.items():
                    await self._join(reader, name, cursor)
            self._readers.add(reader)
            if self._closed:
                reader.end()
            yield reader
        finally:
            self._leave(reader)

    async def _join(self, reader: Reader, name: str, cursor: str) -> None:
        topic = await self._topic(name)
        reader.cursors[name] = cursor if cursor and before(cursor, topic.cursor) else topic.cursor
        for moment in await self._missed(topic, reader.cursors[name]):
            reader.offer(moment)
        topic.readers.add(reader)

    def _leave(self, reader: Reader) -> None:
        self._readers.discard(reader)
        for name, topic in list(self._topics.items()):
            topic.readers.discard(reader)
            if not topic.readers:
                del self._topics[name]

    def _start(self) -> None:
        if not self._tasks:
            self._tasks = [
                asyncio.create_task(work) for work in (self._hear(), self._pump(), self._presence())
            ]

    def _stream(self, name: str) -> str:
        names = self._client.names
        return names.keys(CHATTER).outputs if name == OUTPUTS else names.stream(name)

    async def _topic(self, name: str) -> _Topic:
        found = self._topics.get(name)
        if found is None:
            stream = self._stream(name)
            made = _Topic(name, stream, await feed.tail_of(self._client, stream))
            found = self._topics.setdefault(name, made)
        return found

    async def _missed(self, topic: _Topic, after: str) -> list[Moment]:
        """The kept entries of a topic after a cursor, up to where the topic is, or beyond.

        What lies beyond is not skipped by that: the other readers have yet to see it.
        """
        if not before(after, topic.cursor):
            return []
        found: list[Moment] = []
        if await self._gap(topic, after):
            found.append(Moment(topic.name, "gap", json.dumps({"topic": topic.name})))
        at = after
        while before(at, topic.cursor):
            entries = await self._client.bus.read({topic.stream: at}, 1, _COUNT)
            if not entries:
                break
            found += [_moment(topic.name, entry.id, entry.fields.get("data", b"")) for entry in entries]
            at = entries[-1].id
        return found

    async def _gap(self, topic: _Topic, after: str) -> bool:
        """Whether entries after the cursor may have been let go already."""
        try:
            oldest = await self._client.bus.command("XRANGE", topic.stream, "-", "+", "COUNT", 1)
        except BusUnreachable:
            raise
        except PromptDockError:
            return True
        return not oldest or (_place(after) != (0, 0) and before(after, oldest[0][0].decode()))

    async def _hear(self) -> None:
        """One subscription says that something happened; what it was is read from what is kept."""
        names = self._client.names
        events = names.channel("events:")
        outputs, status = names.channel(CHATTER_OUTPUT), names.channel(STATUS)

        def take(channel: str, data: bytes) -> None:
            if channel == status:
                self._beat.set()
            elif channel == outputs:
                self._look(OUTPUTS)
                self._foreign(channel, data)
            elif channel.startswith(events):
                self._look(channel.removeprefix(events))
            else:  # rows changed, or a person said something
                what = data.decode("utf-8", "replace")[:500] if channel == names.board else HUMAN_INPUT
                self._tell(Moment("", "changed", json.dumps({"what": what.split()})))

        async def ready() -> None:
            self._dirty.update(self._topics)
            self._beat.set()
            self._wake.set()

        heard = [names.channel("events:*"), outputs, status, names.board, names.channel(HUMAN_INPUT)]
        while True:
            try:
                # By patterns: who listens so is not counted among those who acknowledge nothing.
                await self._client.subscribe([], heard, take, ready)
            except BusUnreachable:  # no cluster runs here yet
                await asyncio.sleep(_LOOK)

    def _foreign(self, channel: str, data: bytes) -> None:
        """A Chatter that is not ours keeps no stream: anybody may publish there, so it is judged first."""
        output = feed.parse(data)
        if output is None or output.via == channel or len(self._judging) >= _PLAIN:
            return

        async def judge(said: Output) -> None:
            judged = await self._client.judges(channel, data)
            if judged != "dropped":
                said = said if judged == "taken" else said.disowned()
                self._tell(Moment(OUTPUTS, "output", _told(said), "", said))

        self._judging.add(task := asyncio.create_task(judge(output)))
        task.add_done_callback(self._judging.discard)

    def _look(self, name: str) -> None:
        if name in self._topics:
            self._dirty.add(name)
            self._wake.set()

    def _tell(self, moment: Moment) -> None:
        for reader in list(self._readers):
            reader.offer(moment)

    async def _pump(self) -> None:
        backoff = Backoff()
        while True:
            try:
                async with asyncio.timeout(_LOOK):
                    await self._wake.wait()
            except TimeoutError:
                self._dirty.update(self._topics)
            await asyncio.sleep(_MOMENT)  # what comes at once is read at once
            self._wake.clear()
            try:
                async with self._reads:
                    await self._read()
                backoff.reset()
                self._redis(away=False)
            except BusUnreachable:
                self._redis(away=True)
                await backoff.pause()
                await self._client.moved()
                self._dirty.update(self._topics)
                self._wake.set()
            except PromptDockError as error:
                log.get().warning("Events could not be read", why=str(error))
                await asyncio.sleep(_GATHER)

    async def _read(self) -> None:
        """Hand on what the topics have that something was heard of."""
        while self._dirty:
            dirty, self._dirty = self._dirty, set()
            topics = {topic.stream: topic for name in dirty if (topic := self._topics.get(name))}
            if not topics:
                return
            cursors = {stream: topic.cursor for stream, topic in topics.items()}
            entries = await self._client.bus.read(cursors, 1, _COUNT)
            for entry in entries:
                topic = topics[entry.stream]
                topic.cursor = entry.id
                moment = _moment(topic.name, entry.id, entry.fields.get("data", b""))
                for reader in list(topic.readers):
                    reader.offer(moment)
            if len(entries) >= _COUNT:  # of one of them there is more
                self._dirty |= dirty

    def _redis(self, away: bool) -> None:
        if away != self._away:
            self._away = away
            self._tell(Moment("", "link", json.dumps({"redis": "away" if away else "here"})))

    async def _presence(self) -> None:
        """Who is here, told when it is something else than before."""
        while True:
            await self._beat.wait()
            self._beat.clear()
            if not self._readers:
                continue
            with contextlib.suppress(PromptDockError):
                cards = await self._client.presence.here()
                told = json.dumps({"agents": [presence_card(card) for card in cards]}, default=str)
                if told != self._here:
                    self._here = told
                    self._tell(Moment("", "presence", told))
            await asyncio.sleep(_GATHER)


def _moment(topic: str, cursor: str, data: bytes) -> Moment:
    text = data.decode("utf-8", "replace")
    if topic == OUTPUTS:
        output = feed.parse(data)
        return Moment(
            topic, "output" if output else "unreadable", _told(output) if output else "{}", cursor, output
        )
    try:
        value = json.loads(text)
    except ValueError:
        return Moment(topic, "unreadable", "{}", cursor)
    if not isinstance(value, dict):
        return Moment(topic, "unreadable", "{}", cursor)
    kind = str(value.pop("event", ""))
    return Moment(topic, kind, json.dumps(value, ensure_ascii=False), cursor)


def _told(output: Output) -> str:
    return output.model_dump_json(exclude_none=True, exclude={"via", "sig"})
