"""One agent's queue: its inbox, its sessions and their turns, as calls (the scripts say what each does)."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import hiredis

from shared.bus import keys
from shared.bus.base import Argument, Bus, Script
from shared.bus.messages import Output
from shared.bus.signing import Signer
from shared.errors import BusUnreachable, Fenced, PromptDockError
from shared.turns import scripts

Place = Literal[
    "mail", "reply", "word", "claim", "join", "front", "aim", "add", "kill", "answer", "posted", "dead"
]
Keep = Literal["", "shown", "news", "always"]  # until a gateway acknowledges it: see scripts/parts/say.lua
JOURNAL = 8 << 20  # bytes of a turn's journal: more than a server takes at once is not even sent
DEADLINE_MS = 15 * 60 * 1000
LIMIT, SHARE = 4000, 1000  # messages that a queue holds, and of one person
BATCH = 32  # turns that one call may claim: each may bring a journal of megabytes


@dataclass(frozen=True)
class Mail:
    """A message on its way in: where it belongs, and what is said if it cannot be taken."""

    id: str
    session: str
    channel: str
    data: bytes
    place: Place = "mail"
    deadline: int = -DEADLINE_MS  # milliseconds since 1970; negative counts from the acceptance; 0 is none
    reply: str = ""
    refusal: str = ""
    reason: str = ""
    person: str = ""  # whose share of the queue it takes
    owner: str = ""  # who comes into its session: see scripts/parts/owned.lua; "" for what belongs to nobody
    way: str = ""  # how it finds its session in a channel: see threads.py; "" for what names it


@dataclass(frozen=True)
class QueueEntry:
    """A message that was accepted."""

    id: str
    session: str
    channel: str
    data: bytes
    deadline: int
    found: str = ""  # the session that was found for it, where it names none
    ref: str = ""  # what it replies to, by an id of ours

    def message(self) -> dict[str, Any]:
        """A person's message as it is carried out; ValueError for what is none."""
        value = json.loads(self.data)
        if not isinstance(value, dict):
            raise ValueError("it is no object")
        found = {"session_id": self.found} if self.found else {}
        return {**value, "id": self.id, **found, **({"in_reply_to": self.ref} if self.ref else {})}


@dataclass(frozen=True)
class ThreadPlace:
    """Where a session is held: the channel of a surface, and its number among the threads there; 0 for none.

    It `seeks` what it replies to, where that is not known here: the Store may know it. `others` says whether there are
    threads at all.
    """

    channel: str = ""
    number: int = 0
    seeks: str = ""
    others: bool = field(default=True, compare=False)


@dataclass(frozen=True)
class Accepted:
    """What became of a post: `accepted`, `known` (with its state: it had been accepted before), or `busy`."""

    # foreign: the session is somebody else's; nowhere: there is no thread of that number
    outcome: Literal["accepted", "known", "busy", "foreign", "nowhere"]
    waiting: int = 0  # in the queue; where the sender's share is full, of theirs
    theirs: bool = False
    state: str = ""
    session: str = ""  # that was found for it, where it names none


@dataclass(frozen=True)
class Claim:
    """A turn that is ours under a lease: everything that is needed to go on with it."""

    session: str
    epoch: int
    tries: int  # deliveries without progress, this one included
    fails: int  # times that it was given back after a failure
    entries: list[QueueEntry]
    journal: list[bytes]
    window: list[bytes]
    seq: int | None
    now: int  # the server's milliseconds
    requested: float = field(default_factory=time.monotonic)  # when, by our own clock
    untold: list[tuple[str, bytes]] = field(default_factory=list)  # outputs that the person was not shown
    thread: ThreadPlace = ThreadPlace()


@dataclass(frozen=True)
class Completion:
    """What a finished turn leaves."""

    channel: str = ""
    output: str = ""
    rows: bytes = b""  # for the Store, as outbox.pack makes them
    dead: str = ""
    drop: int = 0  # how many of the oldest window records go
    window: Sequence[bytes] = field(default_factory=tuple)
    seq: int | None = None
    keep: Keep = ""  # the output
    events: Sequence[str] = field(default_factory=tuple)  # live events, of which the last closes the turn
    listens: tuple[str, str] = ("", "")  # the stream that keeps them, and their channel
    window_ms: int = keys.DAY * 1000  # how long the window stays in Redis when nothing more comes


def _entry(fields: list[bytes]) -> QueueEntry:
    """An entry of the inbox; one that cannot be read is left to whoever carries it out, as nonsense."""
    pairs = dict(zip(fields[::2], fields[1::2], strict=False))
    try:
        return QueueEntry(
            pairs[b"id"].decode(),
            pairs[b"session"].decode(),
            pairs[b"channel"].decode(),
            pairs[b"data"],
            int(pairs[b"deadline"]),
            pairs.get(b"found", b"").decode(),
            pairs.get(b"ref", b"").decode(),
        )
    except (KeyError, ValueError):
        id = pairs.get(b"id", fields[1] if len(fields) > 1 else b"").decode("utf-8", "replace")
        return QueueEntry(id, "", "", b"\n".join(fields), 0)


def _full() -> PromptDockError:
    fix = "split the work into smaller turns"
    return PromptDockError("the turn's journal is full", "it may hold 8 MiB", fix)


def _claim(turn: list[Any], now: int, requested: float) -> Claim:
    session, epoch, tries, fails, entries, journal, window, seq, untold, *place = turn
    return Claim(
        session.decode(),
        *(epoch, tries, fails),
        [_entry(fields) for fields in entries],
        journal,
        window,
        int(seq) if seq and seq.isdigit() else None,
        now,
        requested,
        [(id.decode(), text) for id, text in zip(untold[::2], untold[1::2], strict=True)],
        _place(*place[:4]) if len(place) > 2 else ThreadPlace(),
    )


def _place(channel: bytes, number: bytes, seeks: bytes, others: bytes = b"1") -> ThreadPlace:
    return ThreadPlace(channel.decode(), int(number or 0), seeks.decode(), others == b"1")


class Queue:
    """All calls on one agent's keys. A call whose reply was lost is made again for `patience` seconds."""

    def __init__(
        self,
        bus: Bus,
        names: keys.Names,
        agent: str,
        *,
        lease_ms: int = 12_000,
        limit: int = LIMIT,
        share: int = SHARE,
        signer: Signer | None = None,
    ) -> None:
        self.bus, self.names, self.agent = bus, names, agent
        self.keys = names.keys(agent)
        self.prefix = self.keys.prefix
        self.marker = names.channel(self.keys.marker)
        self.wake_up = names.channel(self.keys.wake_up)
        self.lease_ms, self.limit, self.share = lease_ms, limit, share
        self._signer = signer  # of what is sent here
        self._tokens = itertools.count()
        self._unanswered, self._requested = "", 0.0  # the claim whose reply is missing, and when it was made
        self._ahead = 0.0  # seconds by which the server's clock is ahead of ours, or a moment more
        self.handoff: Callable[[], str] = str  # where an idle worker is given turns: see handoff.py

    async def _call(self, script: Script, *arguments: Argument, patience: float = 0.0) -> Any:
        try:
            return await self.bus.script(script, self.prefix, *arguments)
        except BusUnreachable:
            if not patience:
                raise
        # Only now: a call that succeeds need not wait for the library to be loaded.
        from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

        again = AsyncRetrying(
            retry=retry_if_exception_type(BusUnreachable),
            stop=stop_after_delay(patience),
            wait=wait_random_exponential(multiplier=0.1, max=1.0, min=0.02),
            reraise=True,
        )
        return await again(self.bus.script, script, self.prefix, *arguments)

    def _signed(self, channel: str, text: str) -> str:
        """An output as it goes out: signed, and `kept`, since it stands in our stream as well."""
        return self._signer.stamped(channel, text, kept=True) if self._signer and text else text

    async def post(self, mail: Mail, patience: float = 0.0) -> Accepted:
        """Accept, keep and publish in one step; coming back is the acknowledgement."""
        code, detail, *found = await self._call(
            scripts.POST,
            *(
                mail.channel,
                mail.id,
                mail.session,
                mail.deadline,
                mail.data,
                self.limit,
                mail.place,
                mail.reply,
                mail.person,
                self.share,
                mail.owner,
                mail.way,
                self.wake_up,
            ),
            patience=patience,
        )
        if code == -4:
            return Accepted("nowhere")
        if code == 0:
            return Accepted("known", state=detail.decode())
        if code == -3:
            return Accepted("foreign")
        session = found[0].decode() if found else ""
        return Accepted(
            "accepted" if code == 1 else "busy", waiting=detail, theirs=code == -2, session=session
        )

    async def join(self) -> int:
        """Open a numbering of plain messages; its marker goes out on `self.marker`."""
        return int((await self._call(scripts.JOIN, self.marker, 0))[0])

    async def rejoin(self, gap_ms: int) -> bool:
        """Join again after a gap; whether nobody else listens: then the gap is noted among the dead letters."""
        return int((await self._call(scripts.JOIN, self.marker, gap_ms))[1]) <= 1

    async def close_numbering(self, k: int) -> None:
        """Numbering k was heard to its end."""
        while await self._call(scripts.CLOSE, k, patience=600) == -2:  # noqa: ASYNC110 - others hand in
            await asyncio.sleep(0.03)

    async def ingest(self, k: int, messages: Sequence[tuple[int, Mail]], output: str) -> list[int]:
        """Hand in plain messages (i, mail) of numbering k, in their order: of each what became of it.

        1 taken, 2 buried, 0 known; of all of them -1 too old a numbering, -2 wait for older intakes.
        """
        fields = [
            field
            for i, mail in messages
            for field in (
                *(i, mail.place, mail.id, mail.session, mail.channel, mail.data, mail.deadline),
                *(mail.reply, mail.refusal, mail.reason, mail.person, mail.owner, mail.way),
            )
        ]
        taken = await self._call(
            scripts.INGEST,
            *(k, self.limit, self.share, output, scripts.BUSY, scripts.NOT_YOURS, scripts.NOT_SIGNED),
            *(scripts.NO_THREAD, self.wake_up),
            *fields,
            patience=600,
        )
        return [taken] * len(messages) if isinstance(taken, int) else list(taken)

    async def claim(self, worker: str) -> Claim | int:
        """The turn that has been due longest, or in how many ms the next is due (-1: none waits)."""
        claims, due = await self.claims(worker, 1)
        return claims[0] if claims else due

    async def claims(self, worker: str, room: int) -> tuple[list[Claim], int]:
        """Up to `room` turns, longest due first, and in how many ms more is due (-1: none waits)."""
        retry = int(bool(self._unanswered))  # the reply that was lost may have given us turns
        if not retry:
            self._unanswered, self._requested = f"{worker}:{next(self._tokens)}", time.monotonic()
        requested = self._requested
        reply = await self.bus.script(
            *(scripts.CLAIM, self.prefix, worker, self.lease_ms, self._unanswered, retry, min(room, BATCH))
        )
        self._unanswered = ""
        due, now, *turns = reply
        self._ahead = (now + 1) / 1000 - requested  # it tells whole milliseconds: no less than it is
        claims = []
        for turn in turns:
            try:
                claims.append(_claim(turn, now, requested))
            except (ValueError, TypeError) as error:  # its name is no text
                await self._finish(turn[0], turn[1], Completion(dead=f"unreadable: {error}"[:300]))
        return claims, int(due)

    def handed_over(self, data: bytes) -> Claim | None:
        """The turn that came on the channel of a handoff; None for what no script of ours published."""
        reader = hiredis.Reader()
        try:
            reader.feed(data)
            now, turn = reader.gets()
            # It is ours since the script ran, however late we read of it.
            return _claim(turn, now, min(time.monotonic(), now / 1000 - self._ahead))
        except (hiredis.ProtocolError, AttributeError, KeyError, TypeError, ValueError):
            return None

    async def step(
        self,
        session: str,
        epoch: int,
        at: int,
        known: int,
        records: Sequence[bytes],
        calls: Sequence[str] = (),
    ) -> list[QueueEntry]:
        """Append records at `at`; what joined since `known` messages. Fenced if the lease is lost."""
        if sum(map(len, records)) > JOURNAL:
            raise _full()
        reply = await self._call(
            scripts.STEP,
            *(session, epoch, self.lease_ms, at, known, len(calls)),
            *calls,
            *records,
            patience=600,
        )
        if reply == -1:
            raise Fenced(f"the turn of {session} belongs to another worker now")
        if reply == -2:
            raise _full()
        return [_entry(fields) for fields in reply]

    async def finish(self, session: str, epoch: int, completion: Completion) -> None:
        """Close the turn with its one output; Fenced if the lease is lost."""
        await self._finish(session, epoch, completion)

    async def _finish(self, session: str | bytes, epoch: int, completion: Completion) -> None:
        window = list(completion.window)
        tail: list[Argument] = ["" if completion.seq is None else completion.seq]
        if completion.events:
            tail += [*completion.listens, *completion.events]
        reply = await self._call(
            scripts.FINISH,
            *(session, epoch, completion.channel, self._signed(completion.channel, completion.output)),
            *(completion.rows, completion.dead, completion.drop),
            *(completion.window_ms, completion.keep, self.handoff(), len(window)),
            *window,
            *tail,
            patience=600,
        )
        if reply == -1:
            raise Fenced(f"the turn of {session!s} belongs to another worker now")

    async def send(
        self, session: str, epoch: int, channel: str, text: str, keep: Keep = "", again: str = ""
    ) -> None:
        """Send an output before the closing one; not repeated when Redis is away: it is only progress.

        `again` is the id of an unseen output that this repeats; where it was acknowledged meanwhile, nothing is sent.
        """
        signed = self._signed(channel, text)
        if await self._call(scripts.SEND, session, epoch, channel, signed, keep, session, again) == -1:
            raise Fenced(f"the turn of {session} belongs to another worker now")

    async def announce(self, channel: str, text: str, session: str = "", keep: Keep = "") -> None:
        """Send an output that belongs to no turn of ours, kept for `session`."""
        signed = self._signed(channel, text)
        await self._call(scripts.SEND, "", "", channel, signed, keep, session, "", patience=60)

    async def acknowledge(self, session: str, id: str) -> None:
        """Acknowledge that the person was shown an output of their session."""
        key = self.keys.unseen(session)
        await self.bus.command("XDEL", key, id, key=key)

    async def beat(self, turns: dict[str, int]) -> list[str]:
        """Renew the leases of session -> epoch; the sessions that are no longer ours."""
        if not turns:
            return []
        pairs = [part for pair in turns.items() for part in pair]
        lost = await self._call(scripts.BEAT, self.lease_ms, *pairs, patience=self.lease_ms / 3000)
        return [session.decode() for session in lost]

    async def release(self, session: str, epoch: int, delay_ms: int = 0, failed: bool = False) -> None:
        """Give the turn back, to be claimed after `delay_ms`."""
        await self._call(
            scripts.RELEASE, session, epoch, delay_ms, int(failed), patience=self.lease_ms / 1000
        )

    async def forgive_delivery(self, session: str) -> None:
        """Do not count a delivery whose lease we lost but survived, so that the message is not taken for poison."""
        await self._call(scripts.FORGIVE_DELIVERY, session)

    async def respond(
        self, request_id: str, channel: str, data: bytes
    ) -> Literal["delivered", "unasked", "late"]:
        """Deliver an answer to whoever waits for it in this queue; the first wins."""
        code = await self._call(scripts.RESPOND, request_id, channel, data, patience=600)
        return "delivered" if code == 1 else "unasked" if code == 0 else "late"

    async def move(
        self, session: str, epoch: int, target: str, owner: str, ref: str, rows: bytes, way: str
    ) -> bool:
        """Move a turn that has done nothing yet into the session that it belongs to, with all that waits behind it.

        False where that is somebody else's; Fenced if the lease is lost.
        """
        arguments = (session, epoch, target, owner, ref, rows, way, self.wake_up)
        code = await self._call(scripts.MOVE, *arguments, patience=600)
        if code == -1:
            raise Fenced(f"the turn of {session} belongs to another worker now")
        return bool(code)

    async def place(self, session: str) -> ThreadPlace:
        """Where a session is held."""
        key = self.keys.thread(session)
        found = await self.bus.command("HMGET", key, "channel", "number", "seeks", key=key)
        return _place(*(item or b"" for item in found))

    async def placed(self, output: Output) -> Output:
        """An output of no turn, with where its session is held."""
        place = await self.place(output.session_id)
        number = str(place.number) if place.number else None
        return output.model_copy(update={"channel": place.channel or output.channel, "thread_id": number})

    async def owner(self, session: str) -> str:
        """Whose a session is, as the scripts note that; "" for nobody's."""
        key = self.keys.owner(session)
        return (await self.bus.command("GET", key, key=key) or b"").decode()

    async def withdraw(self, request_id: str) -> str:
        """Take back a request: `withdrawn` unclaimed, `running` (it is told to stop), or `gone`."""
        reply = await self._call(scripts.WITHDRAW, request_id, self.wake_up)
        return str(reply.decode())

    async def state(self, message_id: str) -> str:
        """What became of a message: `accepted`, `done`, `withdrawn`, or "" for one that is not known."""
        state = await self.bus.command("GET", self.keys.message(message_id))
        return state.decode().partition(":")[0] if state else ""

    async def taken_back(self, message_id: str) -> str:
        """The id of the stop that took a waiting message back; "" where none did."""
        state = await self.bus.command("GET", self.keys.message(message_id))
        state, _, by = (state or b"").decode().partition(":")
        return by if state == "withdrawn" else ""

    async def remember_asker(self, session: str, who: dict[str, Any], anew: bool = True) -> None:
        """Note for whom a session's requests are made; without `anew`, what is noted already holds."""
        more = () if anew else ("NX",)
        key = self.keys.asker(session)
        await self.bus.command("SET", key, json.dumps(who), "EX", 2 * keys.DAY, *more)

    async def asker(self, session: str) -> dict[str, Any]:
        """For whom a session's requests are made; empty where nobody noted it."""
        noted = await self.bus.command("GET", self.keys.asker(session))
        return dict(json.loads(noted)) if noted else {}

    async def expect_answer(self, request: str, session: str) -> None:
        """Have the answer to a request find this session."""
        await self.bus.command("SET", self.keys.call(request), session, "EX", 2 * keys.DAY)

    async def window(self, session: str) -> list[bytes]:
        """The newest records of a conversation, as they lie in Redis."""
        return list(await self.bus.command("LRANGE", self.keys.window(session), 0, -1))

    async def newest_record(self, session: str) -> bytes | None:
        """The last of them."""
        record: bytes | None = await self.bus.command("LINDEX", self.keys.window(session), -1)
        return record

    async def size(self) -> int:
        """How many accepted messages have not ended."""
        return int(await self.bus.command("XLEN", self.keys.inbox))
