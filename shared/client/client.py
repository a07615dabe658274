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
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

from shared import failpoints, log
from shared.bus import signing
from shared.bus.base import Bus, OnMessage, OnReady
from shared.bus.keys import CHATTER, HUMAN_INPUT, Names
from shared.bus.messages import COMMANDS, default_session
from shared.bus.presence import Presence
from shared.bus.signing import Signer
from shared.client import connect, feed, post
from shared.client.connection import ClusterConnection
from shared.client.delivery import SpoolDelivery
from shared.client.spool import Spool
from shared.client.types import Event, Heard, Judged, Sent
from shared.errors import PromptDockError, TimedOut
from shared.settings import Settings
from shared.turns.queue import Queue

if TYPE_CHECKING:
    from shared.store.base import Store

_LOOK = 1.0  # seconds for which it is known whether Chatter is here


class Client:
    """Made by a gateway from its settings; an async context manager that gives everything back."""

    def __init__(self, settings: Settings) -> None:
        log.hide(*settings.secrets())
        self.settings, self.names = settings, Names(settings.namespace)
        self._connection = ClusterConnection(settings, self.names)
        spool = Spool(settings.home / "outbox", connect.line(settings))
        self._delivery = SpoolDelivery(
            self._connection, self.names, spool, settings.lease_ms, lambda: self.signer
        )
        self._store: Store | None = None
        self._opening = asyncio.Lock()
        self._looked, self._ours = float("-inf"), True  # when, and whether, a Chatter of ours was here

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Give everything back; letters that did not go out stay in the spool for the next client."""
        await self._delivery.close()
        if self._store is not None:
            await self._store.close()
        await self._connection.close()

    # -- what it stands on -----------------------------------------------------------------------------------

    @property
    def bus(self) -> Bus:
        """The bus, made on first use; BusUnreachable where no cluster runs."""
        return self._connection.bus

    @property
    def spool(self) -> Spool:
        """What was said and is not acknowledged yet, on disk."""
        return self._delivery.spool

    @cached_property
    def signer(self) -> Signer:
        """By it a message is known as one of ours."""
        return signing.of_home(self.settings)

    @property
    def url(self) -> str:
        """Where the bus is; it may hold a password."""
        return self._connection.url

    @property
    def presence(self) -> Presence:
        """Who is here."""
        return Presence(self.bus, self.names, self.signer)

    @property
    def kept(self) -> int:
        """How many messages wait in the spool for Redis to come back."""
        return self._delivery.waiting

    async def reach(self) -> None:
        """BusUnreachable, with what to do, where no Redis answers."""
        await self._connection.reach()

    async def moved(self) -> None:
        """Look whether the embedded server listens somewhere else by now, and go there."""
        await self._connection.moved()

    async def subscribe(
        self, channels: Sequence[str], patterns: Sequence[str], take: OnMessage, ready: OnReady
    ) -> None:
        """Listen until cancelled, on whatever server the cluster is."""
        await self._connection.subscribe(channels, patterns, take, ready)

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
        message_id: str = "",
    ) -> dict[str, Any]:
        """Run one tool in the cluster; its result, with an `error` key where it failed. TimedOut.

        `profile` names the permission profile that it passes under, if not the agent's own. With `session` it is run
        in that conversation, behind what goes on there.
        """
        message_id = message_id or str(uuid4())
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
        return await self._delivery.deliver(channel, message)

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
            self._delivery.beside(self._acknowledge(session, heard.cursor))

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
