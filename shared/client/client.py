"""A client: one person's or program's line to the cluster.

What changes something goes as a message; what only reads goes to the Store and works with the cluster down.
Nothing connects before it is needed. A cluster that went away and comes back, also on another port, is found
again.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Sequence
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

from shared import failpoints, log
from shared.bus import embedded, signing
from shared.bus.backoff import Backoff
from shared.bus.base import Bus, OnMessage, OnReady
from shared.bus.keys import CHATTER, HUMAN_INPUT, Names
from shared.bus.messages import COMMANDS, default_session
from shared.bus.presence import Presence
from shared.bus.signing import Signer
from shared.client import connect, elsewhere, feed, post
from shared.client.spool import Letter, Spool
from shared.client.types import Event, Heard, Judged, Sent
from shared.errors import BusUnreachable, Busy, PromptDockError, TimedOut
from shared.settings import Settings
from shared.turns.queue import Queue

if TYPE_CHECKING:
    from shared.store.base import Store

_DISK_MS = 1500  # how long one wait for the server's disk may take
_DISK_TRIES = 3
_LOOK = 1.0  # seconds for which it is known whether Chatter is here
_LEAVE = 3.0  # seconds that closing waits for what is under way


class Client:
    """Made by a gateway from its settings; an async context manager that gives everything back."""

    def __init__(self, settings: Settings) -> None:
        log.hide(*settings.secrets())
        self.settings, self.names = settings, Names(settings.namespace)
        self.outbox = Spool(settings.home / "outbox", connect.line(settings))
        self._url = ""
        self._bus: Bus | None = None
        self._moves = asyncio.Event()
        self._store: Store | None = None
        self._opening = asyncio.Lock()
        self._letters: list[Letter] = []
        self._adopted = False
        self._looked, self._ours = float("-inf"), True  # when, and whether, a Chatter of ours was here
        self._posting = asyncio.Lock()
        self._again: asyncio.Task[None] | None = None
        self._confirming: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Give everything back; letters that did not go out stay in the outbox for the next client."""
        if self._confirming:
            await asyncio.wait(self._confirming, timeout=_LEAVE)
        tasks = [*self._confirming, *([self._again] if self._again else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._store is not None:
            await self._store.close()
        if self._bus is not None:
            await self._bus.close()

    # -- what it stands on -----------------------------------------------------------------------------------

    @property
    def bus(self) -> Bus:
        """The bus, made on first use; BusUnreachable where no cluster runs."""
        if self._bus is None:
            self._url = elsewhere.address(self.settings)
            self._bus = connect.make_bus(self._url, self.settings)
        return self._bus

    @cached_property
    def signer(self) -> Signer:
        """By it a message is known as one of ours."""
        return signing.of_home(self.settings)

    @property
    def url(self) -> str:
        """Where the bus is; it may hold a password."""
        return self._url or embedded.address(self.settings)

    @property
    def presence(self) -> Presence:
        """Who is here."""
        return Presence(self.bus, self.names, self.signer)

    @property
    def kept(self) -> int:
        """How many messages wait in the outbox for Redis to come back."""
        return len(self._letters)

    async def reach(self) -> None:
        """BusUnreachable, with what to do, where no Redis answers."""
        try:
            await self.bus.command("PING")
        except BusUnreachable as error:
            if self.settings.redis_url is None:
                raise
            where = log.redact(self._url)
            raise BusUnreachable(
                f"Redis does not answer at {where}", error.why, "start it, or correct REDIS_URL"
            ) from error

    async def moved(self) -> None:
        """Look whether the embedded server listens somewhere else by now, and go there."""
        try:
            url = embedded.address(self.settings)
        except BusUnreachable:
            return
        if url == self._url or self._bus is None:
            return
        old, self._bus = self._bus, None
        moves, self._moves = self._moves, asyncio.Event()
        moves.set()
        await old.close()

    async def subscribe(
        self, channels: Sequence[str], patterns: Sequence[str], take: OnMessage, ready: OnReady
    ) -> None:
        """Listen until cancelled, on whatever server the cluster is."""
        key = self.names.queue(CHATTER)
        while True:
            moves = self._moves
            listener = self.bus.listener(channels, take, ready, key, patterns)
            run, leave = asyncio.create_task(listener.run()), asyncio.create_task(moves.wait())
            try:
                await asyncio.wait({run, leave}, return_when=asyncio.FIRST_COMPLETED)
                if run.done():
                    run.result()
            finally:
                for task in (run, leave):
                    task.cancel()
                await asyncio.gather(run, leave, return_exceptions=True)

    async def store(self) -> Store:
        """The Store, opened on first use; StoreUnavailable or ConfigurationError where that cannot be."""
        async with self._opening:  # whoever looks at two things at once opens it once
            if self._store is None:
                store = connect.make_store(self.settings)
                try:
                    await store.open()
                except BaseException:
                    await store.close()
                    raise
                self._store = store
            return self._store

    # -- saying ----------------------------------------------------------------------------------------------

    async def say(
        self,
        text: str,
        user_id: str,
        session_id: str | None = None,
        *,
        force: bool = False,
        in_reply_to: str | None = None,
        message_id: str | None = None,
        source: str | None = None,
        **fields: Any,
    ) -> Sent:
        """A person's words. Busy where too much waits, BadMessage where they cannot be taken."""
        return await self.send(
            HUMAN_INPUT,
            {
                "id": message_id,
                "user_id": user_id,
                "content": text,
                "session_id": session_id,
                "force": force or None,
                "in_reply_to": in_reply_to,
                "source": source,
                **fields,
            },
        )

    async def stop(
        self,
        user_id: str,
        session_id: str,
        turn_id: str | None = None,
        request_id: str | None = None,
        reason: str | None = None,
    ) -> Sent:
        """End the turn that runs in a session, or one request of it; `reason` says how to go on without that."""
        words = {"type": "stop", "user_id": user_id, "session_id": session_id, "reason": reason}
        return await self.send(HUMAN_INPUT, {**words, "turn_id": turn_id, "request_id": request_id})

    async def amend(self, text: str, user_id: str, session_id: str, turn_id: str | None = None) -> Sent:
        """Words for the turn that runs."""
        words = {"type": "amend", "user_id": user_id, "session_id": session_id, "content": text}
        return await self.send(HUMAN_INPUT, {**words, "turn_id": turn_id})

    async def decide(
        self,
        approval_id: str,
        decision: Literal["allow_once", "always", "deny"],
        user_id: str,
        session_id: str | None = None,
        *,
        pattern: str | None = None,
        scope: Literal["session", "project", "everywhere"] | None = None,
        reason: str | None = None,
        roles: Sequence[str] = (),
        arguments_hash: str | None = None,
    ) -> Sent:
        """Answer a request for permission."""
        words = {"type": "approval", "approval_id": approval_id, "decision": decision, "user_id": user_id}
        more = {"session_id": session_id, "pattern": pattern, "reason": reason, "roles": list(roles) or None}
        more |= {"scope": scope, "arguments_hash": arguments_hash}
        return await self.send(HUMAN_INPUT, words | more)

    async def command(
        self,
        tool: str,
        arguments: dict[str, Any],
        user_id: str,
        *,
        patience: float = 60.0,
        profile: str | None = None,
        session: str = "",
        roles: Sequence[str] = (),
    ) -> dict[str, Any]:
        """Run one tool in the cluster; its result, with an `error` key where it failed. TimedOut.

        `profile` names the permission profile that it passes under, if not the agent's own. With `session` it is run
        in that conversation, behind what goes on there.
        """
        message_id = str(uuid4())
        words = {
            "type": "command",
            "id": message_id,
            "user_id": user_id,
            "tool": tool,
            "arguments": arguments,
            "profile": profile,
            "roles": list(roles) or None,
        }
        session = session or default_session(user_id, COMMANDS)  # so that it waits behind no conversation
        async with self.outputs() as heard:
            await self.send(HUMAN_INPUT, {**words, "session_id": session})
            try:
                async with asyncio.timeout(patience):
                    async for item in heard:
                        if message_id in item.output.answers:
                            return item.output.result or {"error": item.output.content}
            except TimeoutError:
                pass
        raise TimedOut(
            f"{tool} was not run in {patience:.0f} s",
            "Chatter did not answer; the command is kept and runs when it does",
            "see promptdock status",
        )

    async def publish(self, channel: str, message: dict[str, Any]) -> Sent:
        """Any message on any channel: into the inbox where the channel has one, else a plain PUBLISH."""
        made = post.stamped(channel, message)
        if post.is_posted(channel, made):
            return await self.send(channel, made)
        post.check(self.names, channel, made)
        return await post.publish(self.bus, self.names, channel, made, self.signer)

    async def send(self, channel: str, message: dict[str, Any]) -> Sent:
        """Keep a message on disk, then post it and all that waited before it."""
        message = post.stamped(channel, message)
        post.check(self.names, channel, message)
        self._adopt()
        letter = self.outbox.put(channel, message)
        self._letters.append(letter)
        with contextlib.suppress(BusUnreachable):
            await self._flush(letter)
        if isinstance(letter.outcome, PromptDockError):
            raise letter.outcome
        if letter.outcome is None:
            self._retry()
            return Sent(str(message["id"]), "kept")
        return letter.outcome

    def _adopt(self) -> None:
        """Take over, once, what earlier processes left in the outbox."""
        if not self._adopted:
            self._adopted = True
            self._letters[:0] = self.outbox.left()

    async def _flush(self, fresh: Letter | None = None) -> None:
        """Post in order what waits; only of the `fresh` one somebody is told that it was refused."""
        async with self._posting:
            while self._letters:
                letter = self._letters[0]
                try:
                    letter.outcome = await post.post(
                        *(self.bus, self.names, letter.channel, letter.message, self.settings.lease_ms),
                        self.signer,
                    )
                except BusUnreachable:
                    raise
                except Busy as error:
                    if letter is not fresh:
                        raise BusUnreachable(error.what, error.why) from error
                    letter.outcome = error
                except PromptDockError as error:
                    letter.outcome = error
                self._letters.remove(letter)
                if isinstance(letter.outcome, Sent):
                    self._beside(self._on_disk(letter))
                else:
                    log.get().debug("A message was refused", why=str(letter.outcome))
                    self.outbox.remove(letter)

    def _retry(self) -> None:
        if self._again is None or self._again.done():
            self._again = asyncio.create_task(self._keep_trying())

    async def _keep_trying(self) -> None:
        backoff = Backoff(first=0.1, most=2.0)
        while self._letters:
            await backoff.pause()
            await self.moved()
            with contextlib.suppress(BusUnreachable):
                await self._flush()

    def _beside(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._confirming.add(task)
        task.add_done_callback(self._confirming.discard)

    async def _on_disk(self, letter: Letter) -> None:
        """The letter goes when the server has the message on disk, where the server can say so."""
        try:
            for _ in range(_DISK_TRIES):
                if (await self.bus.command("WAITAOF", 1, 0, _DISK_MS))[0]:
                    break
        except BusUnreachable:
            self._letters.insert(0, letter)
            self._retry()
            return
        except PromptDockError:
            pass  # a server without an append-only file, or without the command
        self.outbox.remove(letter)

    # -- hearing ---------------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def outputs(self, after: str | None = None) -> AsyncIterator[feed.Feed]:
        """What Chatter says from now on, or after a cursor: inside, `async for heard in …` misses nothing."""
        stream = self.names.keys(CHATTER).outputs
        listener = feed.Feed(self, after or await feed.tail_of(self, stream))
        await listener.open()
        try:
            yield listener
        finally:
            await listener.close()

    async def judges(self, channel: str, data: bytes) -> Judged:
        """What becomes of words that were published beside Chatter's stream.

        They count where they are signed, and where the owner lets everybody speak. The others are shown as what they
        are where no Chatter of ours is here, whose place a foreign one then may have.
        """
        may = self.settings.unsigned_may
        if "speak" in may or "all" in may or failpoints.without("own-words"):
            return "taken"
        try:
            message = json.loads(data)
            if self.signer.signed(channel, message):
                # What a worker signed stands in the stream: this is a copy that somebody sends again.
                return "dropped" if message.get("kept") is True else "taken"
            now = time.monotonic()
            if now - self._looked > _LOOK:  # of a flood not each one is asked about
                self._looked, self._ours = now, bool(await self.presence.here(CHATTER))
            return "dropped" if self._ours else "unsigned"
        except (PromptDockError, ValueError):
            return "dropped"

    def shown(self, heard: Heard) -> None:
        """Acknowledge, beside everything else, that the person was shown this: it is not told them again."""
        session = heard.output.session_id
        if session and heard.output.via:  # else it is a foreign Chatter's, which keeps nothing
            self._beside(self._acknowledge(session, heard.cursor))

    async def _acknowledge(self, session: str, cursor: str) -> None:
        with contextlib.suppress(PromptDockError):  # it is told once more then
            await Queue(self.bus, self.names, CHATTER).acknowledge(session, cursor)

    async def moment(self) -> str:
        """The cursor behind which all events stand that come from now on, of whatever session."""
        seconds, micros = await self.bus.command("TIME")
        return f"{int(seconds) * 1000 + int(micros) // 1000 - 1}-0"

    async def mark(self, session: str) -> str:
        """The cursor behind which the events of a session stand that come from now on."""
        return await feed.tail_of(self, self.names.stream(session))

    async def events(self, session: str, after: str | None = None) -> AsyncGenerator[Event, None]:
        """The live events of a session from now on, or after a cursor ("0": all that are kept)."""
        async for event in feed.events(self, session, after or await self.mark(session)):
            yield event

    async def tail(self, patterns: Sequence[str]) -> AsyncGenerator[tuple[str, bytes], None]:
        """`(channel, data)` of what passes, by pattern: whoever listens so is not taken for an agent.

        A reader who falls 10,000 messages behind loses what comes then.
        """
        queue: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue(10_000)

        def take(channel: str, data: bytes) -> None:
            with contextlib.suppress(asyncio.QueueFull):
                queue.put_nowait((self.names.bare(channel), data))

        async def ready() -> None:
            log.get().debug("Listening")

        listen = asyncio.create_task(
            self.subscribe([], [self.names.channel(pattern) for pattern in patterns], take, ready)
        )
        try:
            while True:
                get = asyncio.ensure_future(queue.get())
                await asyncio.wait({get, listen}, return_when=asyncio.FIRST_COMPLETED)
                if listen.done():
                    get.cancel()
                    listen.result()
                    return
                yield get.result()
        finally:
            listen.cancel()
            await asyncio.gather(listen, return_exceptions=True)


__all__ = ["Client", "Event", "Heard"]
