"""What a worker does with what it hears: look for work, wake the turn that it concerns, obey an operator."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Callable, Coroutine
from typing import Any

from shared import failpoints, log
from shared.bus import messages
from shared.bus.keys import BROADCAST, HUMAN_INPUT, STATUS
from shared.errors import BadMessage, PromptDockError
from shared.guard.permissions.display import plain
from shared.mcp.servers import HURRY
from shared.profiles.profile import Profile
from shared.turns.signatures import Signatures
from shared.worker.pool import Asker, Pool, RunningTurn
from shared.worker.runners.closing import Replies

_PROFILES = frozenset({"profiles", "settings"})  # tables of which an agent is made
_PROGRESS = 500  # characters of what another agent says on its way
Spawn = Callable[[Coroutine[Any, Any, None]], None]


class Dispatcher:
    """Called with every message that its worker's intake hears; must not block."""

    def __init__(
        self,
        replies: Replies,
        signatures: Signatures,
        approvers: frozenset[str],
        stale: asyncio.Event,
        profile: Profile,
        pool: Pool,
        spawn: Spawn,
        *,
        stop: Callable[[], None],
        hurry: Callable[[], None],
        met: Callable[[str, bool], None],
    ) -> None:
        self._replies, self._signatures, self._approvers = replies, signatures, approvers
        self._stale = stale  # set where the agent may have changed itself
        self._connection, self._profile, self._pool = replies.connection, profile, pool
        self._queue = self._connection.queue(profile.name)
        self._spawn, self._stop, self._met, self._hurry = spawn, stop, met, hurry
        self._since, names = time.time() * 1000, self._connection.names
        self.broadcast = names.channel(BROADCAST)
        self.status, self.clusters = names.channel(STATUS), names.clusters
        self.board = names.board

    def heard(self, channel: str, content: dict[str, Any] | None) -> None:
        """One message of a channel; without a channel, we listen again after a gap."""
        if not channel:
            self._stale.set()  # what was told meanwhile was not heard
            for running in self._pool:  # each turn looks for what it may have missed
                running.turn.wake_up.set()
        if not content:
            return
        kind = content.get("type")
        if channel == self.broadcast:
            self._command(content)
        elif channel == self.clusters:
            self._met(str(content.get("cluster") or ""), content.get("asks") is True)
        elif channel == self.status:
            # What it says of itself stands in our models' prompts.
            if self._signatures.signed(channel, content) or self._signatures.may("speak"):
                self._connection.presence.met(content)
            if failpoints.without("own-words"):
                self._met(str(content.get("cluster") or ""), True)
        elif channel == self.board:
            words = str(content.get("data", "")).split()
            if not _PROFILES.isdisjoint(words):
                self._stale.set()
            if HURRY in words:
                self._hurry()
        elif channel == self._queue.wake_up:
            self._rung(content)
        elif kind in (*messages.ANSWERS, "progress"):
            self._answered(content)
        elif kind == "cancel":
            payload = content.get("payload")
            named = str(payload.get("request_id", "")) if isinstance(payload, dict) else ""
            meant = self._pool.of(named)
            if meant is not None and self._signatures.cancels(channel, content, meant.turn.given):
                self._pool.stop(named)
        elif kind == "task" and len(self._pool) >= self._profile.turns:
            self._spawn(self._busy(content))
        elif channel.endswith(HUMAN_INPUT):
            self._joined(channel, content)

    def _rung(self, content: dict[str, Any]) -> None:
        """The queue's own channel: a session is to be stopped, or to look for what it waits for; the agent changed."""
        if content.get("changed"):
            self._stale.set()
        running = self._pool.of(str(content.get("look", "")))
        if running is not None:
            running.turn.wake_up.set()
            self._give_up(running, str(content.get("give_up", "")), str(content.get("reason") or ""))
        self._wake_asker(content.get("answered"))
        session = str(content.get("data", ""))
        if (stopped := self._pool.of(session)) and stopped.turn.is_named(content.get("turn")):
            self._pool.stop(session)

    def _answered(self, content: dict[str, Any]) -> None:
        """An answer or a sign of progress, for the turn that asked."""
        payload = content.get("payload")
        request = payload.get("request_id") if isinstance(payload, dict) else None
        if content["type"] != "progress":
            if not self._wake_asker(request) and "via" not in content:
                self._ring({"answered": request})
            return
        for running in self._pool:
            if not (isinstance(request, str) and request.startswith(f"{running.turn.id}.")):
                continue
            if isinstance(running.runner, Asker) and isinstance(payload, dict):
                text = plain(str(payload.get("message", "")), _PROGRESS)
                self._spawn(_told(running.runner, request, text))

    def _joined(self, channel: str, content: dict[str, Any]) -> None:
        """A person's message, for the turn that runs in its session.

        One that carries `via` was not judged here: anybody may have written that.
        """
        try:
            message = messages.human(content)
        except BadMessage:
            return
        if isinstance(message, messages.Posted) or (
            isinstance(message, messages.Placed) and message.threaded
        ):
            return  # the script that accepted it knows its session, and rang there
        if isinstance(message, messages.Stop) and message.kill:
            return  # it rang there too
        running = self._pool.of(message.session)
        given_up = (message.request_id or "") if isinstance(message, messages.Stop) else ""
        reason = (message.reason or "") if isinstance(message, messages.Stop) else ""
        stops = isinstance(message, messages.Stop) and not given_up
        if running is None:
            # What came by plain PUBLISH is taken in by one replica; another may hold the turn that it ends.
            if isinstance(message, messages.Stop) and "via" not in content:
                told = {"look": message.session, "give_up": given_up, "reason": reason}
                self._ring(told | ({"data": message.session, "turn": message.turn_id} if stops else {}))
            return
        if isinstance(message, messages.Stop) and not running.turn.is_named(message.turn_id):
            return  # another turn of this session is meant, which does not run
        running.turn.wake_up.set()
        if "via" in content and not self._signatures.signed(channel, content):
            return  # what was accepted is found by the turn
        self._give_up(running, given_up, reason)
        if stops and running.runner is not None:
            self._pool.stop(message.session)

    def _give_up(self, running: RunningTurn, request: str, reason: str) -> None:
        """The person ends one consult of a turn."""
        if request and (stop := getattr(running.runner, "stop_request", None)):
            stop(request, reason)

    def _wake_asker(self, request: object) -> bool:
        """Let the turn look that asked this, if it is ours."""
        found = [
            running
            for running in self._pool
            if isinstance(request, str) and request.startswith(f"{running.turn.id}.")
        ]
        for running in found:
            running.turn.wake_up.set()
        return bool(found)

    def _ring(self, told: dict[str, Any]) -> None:
        """Tell the other replicas of this agent, by the channel of its queue."""

        async def ring() -> None:
            with contextlib.suppress(PromptDockError):
                await self._connection.bus.publish(self._queue.wake_up, json.dumps(told).encode())

        self._spawn(ring())

    async def _busy(self, content: dict[str, Any]) -> None:
        """Whoever sends a task to a busy worker is told that it waits."""
        with contextlib.suppress(PromptDockError):
            waiting = max(1, await self._queue.size() - len(self._pool))
            told = f"{self._profile.called} is busy: the task is number {waiting} in its queue"
            await self._replies.progress(messages.agent(content), told)

    def _command(self, content: dict[str, Any]) -> None:
        """An operator's word; only an approver may end the cluster, where approvers are named."""
        if content.get("command") != "shutdown":
            return
        ours = self._signatures.signed(self.broadcast, content, self._since)
        if not ours and not self._signatures.may("shutdown"):
            log.get().warning(
                "A shutdown was refused",
                why="it is not signed, or older than this worker",
                fix="promptdock publish broadcast, or UNSIGNED_MAY=shutdown",
            )
            return
        roles = content.get("roles")
        wanted = self._approvers
        if not content.get("user_id") or (
            wanted and not (isinstance(roles, list) and wanted & set(map(str, roles)))
        ):
            log.get().warning("A shutdown was refused", why="the sender is no approver")
            return
        log.get().info("Told to shut down", by=str(content["user_id"]))
        self._stop()


async def _told(runner: Asker, request: str, text: str) -> None:
    with contextlib.suppress(PromptDockError):  # the turn ended meanwhile, and its answer says more
        await runner.progress(request, text)
