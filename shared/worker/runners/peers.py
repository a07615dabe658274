"""The other agents, from inside a turn: ask, send, look (the `Cluster` that tools are handed)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Literal

from shared import failpoints, log, people
from shared.bus import messages
from shared.bus.activity import doing
from shared.bus.keys import BROADCAST, CHATTER, HUMAN_INPUT, WIRE, is_agent
from shared.bus.messages import now
from shared.bus.presence import LIFE_MS
from shared.errors import PromptDockError, ToolError
from shared.guard.permissions import marks
from shared.loop import PublishEvent
from shared.profiles import profile
from shared.settings import Settings
from shared.store.origin import Origin
from shared.tasks import command
from shared.tasks.defaults import KINDS
from shared.tasks.events import TaskEvents
from shared.turns import requests, routing, threads
from shared.turns.queue import QueueEntry
from shared.turns.threads import Thread
from shared.turns.turn import Turn
from shared.turns.waiting import wait_for
from shared.worker.connection import Connection
from shared.worker.runners import hosts, question

MAX_HOPS = 4
GRACE = 2.0  # seconds in which an agent that just restarts may show itself
_QUIET = 0.25  # seconds between two lines of progress, so that an agent in a loop floods nobody
Say = Callable[[str], Awaitable[None]]


def _asked(agent: str) -> bool:
    """Whether there can be such an agent: some names are channels of their own, or senders."""
    return is_agent(agent) and agent not in messages.RESERVED


def _nobody(agent: str) -> dict[str, Any]:
    return {"error": f"no agent is called {agent[:80]!r}", "why": "the name cannot be that of one"}


class Peers:
    """The `Cluster` of one turn."""

    def __init__(
        self,
        connection: Connection,
        settings: Settings,
        agent: str,
        turn: Turn,
        who: dict[str, Any],
        hops: int,
        live: PublishEvent,
        say: Say,
    ) -> None:
        self._connection, self._settings = connection, settings
        self._agent, self._turn = agent, turn
        self._who, self._hops, self._live, self._say = who, hops, live, say
        self._answers: dict[str, dict[str, Any]] = {}
        self._waits: set[str] = set()
        self._works: dict[str, float] = {}  # requests that wait, and when they were made; dropped once begun
        self.asked: dict[str, str] = {}  # request id -> agent
        self.timeouts = 0
        self._quiet_until = 0.0

    @property
    def connection(self) -> Connection:
        """Our worker's way to the cluster."""
        return self._connection

    @property
    def agent(self) -> str:
        """Who asks."""
        return self._agent

    @property
    def waiting(self) -> frozenset[str]:
        """The requests whose answers this turn awaits now."""
        return frozenset(self._waits)

    def take(self, entry: QueueEntry) -> bool:
        """Hand over a message that joined the turn; True if it is an answer that is awaited."""
        content = json.loads(entry.data)
        request = content.get("payload", {}).get("request_id")
        if request not in self._waits:
            return False
        self._answers[request] = content
        return True

    def give_up(self, request: str, reason: str = "") -> None:
        """The person ends one consult, and may say how to go on."""
        if request in self._waits:
            self._answers[request] = {
                "payload": {"error": f"stopped by the person{f': {reason}' if reason else ''}"},
                "type": "error",
                "via": "stop",
            }

    def progress(self, request: str, text: str) -> str:
        """What to tell of an agent's progress; "" where nobody awaits it, or where it says too much."""
        now = time.monotonic()
        self._begun(request)
        if not text or request not in self._waits or now < self._quiet_until:
            return ""
        self._quiet_until = now + _QUIET
        return f"{self.asked[request].capitalize()}: {text}"

    async def ask(self, agent: str, payload: dict[str, Any], key: str) -> dict[str, Any]:
        """Publish a question and await its answer: presence first, then patience."""
        if not _asked(agent):
            return _nobody(agent)
        if self._hops >= MAX_HOPS:
            return {
                "error": f"{agent} was not asked",
                "why": f"the question went through {MAX_HOPS} agents already",
            }
        if not await self._reachable(agent):
            self._event(agent, key, "offline")
            log.get().warning(f"{agent} is offline")
            log.get().info("Informing user of offline agent")
            return {
                "error": f"{agent} is offline",
                "why": "no such agent is running, and nobody listens on its channel",
                "fix": f"start it (promptdock up -d --with {agent}), ask another agent, or go on without it",
            }
        self._waits.add(key)
        self.asked[key] = agent
        self._works[key] = time.monotonic()
        try:
            await self._post(agent, "question", payload, key)
            await self._say(f"Consulting with {agent.capitalize()}...")
            log.get().info(f"Waiting for {agent} response...")
            return await self._await(agent, key)
        finally:
            self._waits.discard(key)
            self._works.pop(key, None)

    async def read_at(
        self, home: str, tool: str, arguments: dict[str, Any], project: str, key: str
    ) -> dict[str, Any]:
        """Run a tool that reads on the disk that has the files."""
        payload = {"tool": tool, "arguments": arguments, "project": project}
        return await hosts.ask(self, home, payload, key)

    @contextlib.asynccontextmanager
    async def awaiting(self, key: str, whom: str) -> AsyncIterator[hosts.PeerAnswer]:
        """Around a request that is published inside: what is given waits so long for its answer's payload."""
        self._waits.add(key)
        self.asked[key] = whom
        await self._turn.step(calls=[key])

        async def answer(seconds: float) -> dict[str, Any] | None:
            found = await wait_for(self._turn, lambda: self._heard(key), time.monotonic() + seconds, seconds)
            payload = (found or {}).get("payload")
            if payload is None:
                return None
            return {name: value for name, value in dict(payload).items() if name != "request_id"}

        try:
            yield answer
        finally:
            self._waits.discard(key)

    async def send(self, agent: str, payload: dict[str, Any], key: str) -> int:
        """Deliver a task; its outcome opens a turn of its own in this session."""
        if not _asked(agent):
            raise ToolError(_nobody(agent)["error"], "", "get_agents names them")
        waiting = await self._post(agent, "task", payload, key)
        await self._say(f"Assigned task {payload.get('task_id', key)} to {agent.capitalize()}.")
        async with TaskEvents(self._connection.bus, self._connection.names) as events:
            events.news(str(payload.get("task_id") or key), "assigned", agent)
        return waiting

    async def works_on(self, agent: str) -> frozenset[str] | None:
        """As its heartbeat says, else its profile; a program that only listens, or was here once, may take any."""
        if not is_agent(agent):
            return None
        connection = self._connection
        for card in await connection.presence.here(agent):
            if card.get("kind") in ("chat", "consult"):
                return frozenset()
            given = card.get("repositories")
            return frozenset(map(str, given)) if given else KINDS
        if folder := profile.find(self._settings.home, agent):
            return (await asyncio.to_thread(profile.load, folder)).works_on
        heard = await connection.bus.listeners(connection.names.agent(agent))
        return KINDS if heard or agent in await connection.presence.roster() else None

    async def stop(self, agent: str, request_id: str) -> str:
        """Withdraw a request, or tell the one that runs to stop."""
        if not _asked(agent):
            raise ToolError(_nobody(agent)["error"], "", "")
        return await self._connection.queue(agent).withdraw(request_id)

    @property
    def channel(self) -> str:
        """Where this conversation is held."""
        return self._turn.thread.channel

    async def threads(self, channel: str = "") -> list[Thread]:
        """Those into which the person of this turn may come: nobody who does not sign, into what is signed."""
        bus, names = self._connection.bus, self._connection.names
        return await threads.listed(bus, names, str(self._who.get("user_id", "")), channel)

    async def kill(self, thread: Thread, key: str) -> None:
        """By a stop of that thread, in the name of the person."""
        names, person = self._connection.names, str(self._who.get("user_id", ""))
        channel, signs = names.channel(HUMAN_INPUT), people.signs(person)
        said = threads.kill(thread, person, f"{key}.kill")
        data = json.dumps({**said, "via": channel}, ensure_ascii=False).encode()
        sent = await self._connection.queue(CHATTER).post(
            routing.human(names, messages.human(said), data, signs)
        )
        if sent.outcome not in ("accepted", "known"):
            raise ToolError(f"thread #{thread.number} was not killed", f"its queue said: {sent.outcome}", "")

    async def status(self, agent: str) -> dict[str, Any]:
        """What presence knows of an agent."""
        if not _asked(agent):
            return {"agent": agent, "online": False, "status": _nobody(agent)["error"], "queue": 0}
        cards = await self._connection.presence.here(agent)
        queue = await self._connection.queue(agent).size()
        if not cards:
            heard = await self._connection.bus.listeners(self._connection.names.agent(agent))
            told = "unannounced: a program listens on its channel" if heard else "offline"
            return {"agent": agent, "online": bool(heard), "status": told, "queue": queue}
        newest = min(cards, key=lambda card: int(card["age_ms"]))
        waits = [one.waits for card in cards for one in doing(card) if one.waits]
        return {
            "agent": agent,
            "online": True,
            "status": next(
                (c["status"] for c in cards if c.get("status") == "working"), newest.get("status", "idle")
            ),
            "current": [str(card["current"]) for card in cards if card.get("current")],
            "since": newest.get("started"),
            "kind": newest.get("kind"),
            "instances": len(cards),
            "queue": queue,
            "last_heartbeat_ms": int(newest["age_ms"]),
            **({"waits": waits} if waits else {}),
        }

    async def roster(self) -> dict[str, str]:
        """The agents that are or were here, with what they say they are for."""
        return await self._connection.presence.roster()

    async def forget(self, agent: str) -> bool:
        """Take an agent that is not here, and has nothing left to do, off the roster."""
        return await self._connection.presence.retire(agent)

    async def post(self, channel: str, text: str, key: str) -> int:
        """Hand a text to the gateway that listens on a channel of its surface."""
        name = self._connection.names.channel(channel)
        note = {"id": key, "from": self._agent, "content": text, "timestamp": now(), "v": WIRE}
        await self._connection.bus.publish(name, json.dumps(note, ensure_ascii=False).encode())
        return await self._connection.bus.listeners(name)

    async def answer(self, task: str, person: str, text: str) -> str:
        """Answer the open question of a task, which waits for it."""
        return await question.answer(self._connection.bus, self._connection.names, task, person, text)

    async def restart(self, reason: str) -> int:
        """A shutdown on behalf of the person; who supervises the workers starts them again."""
        name = self._connection.names.channel(BROADCAST)
        user, roles = self._who.get("user_id", ""), list(self._who.get("roles") or ())
        wanted = self._settings.approver_roles
        if not user or (wanted and not wanted & set(map(str, roles))):
            # What every worker would refuse is not sent.
            why = f"that is for the roles {', '.join(sorted(wanted))}" if user else "no person asks for it"
            raise ToolError("the cluster is not restarted", why, "who runs it can: promptdock restart")
        command = {
            "command": "shutdown",
            "user_id": user,
            "roles": roles,
            "reason": reason,
        }
        command["sig"] = self._connection.signer.sign(name, command)
        heard = await self._connection.bus.listeners(name)
        await self._connection.bus.publish(name, json.dumps(command, ensure_ascii=False).encode())
        return heard

    async def _reachable(self, agent: str) -> bool:
        ends = time.monotonic() + GRACE
        while True:
            if await self._connection.presence.here(agent):
                return True
            if await self._connection.bus.listeners(self._connection.names.agent(agent)):
                return True
            if time.monotonic() > ends:
                return False
            await asyncio.sleep(0.25)

    async def _post(self, agent: str, kind: messages.AgentType, payload: dict[str, Any], key: str) -> int:
        channel = self._connection.names.agent(agent)
        patience = self._settings.tool_call_timeout_ms
        request = messages.AgentMessage.outgoing(
            *(key, self._agent, agent, kind, payload),
            patience=patience / 1000,
            hops=self._hops + 1,
            on_behalf_of=self._on_behalf(),
            origin=self._origin(),
        )
        # The answer must find us: who waits is known before the question is out.
        await self._turn.queue.remember_asker(self._turn.session, self._who)
        await self._turn.step(calls=[key])
        failpoints.point("call registered", self._turn.id)
        log.get().info(f"Publishing to {channel} channel")
        deadline = -command.DAY_MS if kind == "task" else -max(patience, 900_000)
        queue = self._connection.queue(agent)
        waiting = await requests.send(queue, self._connection.signer, request, deadline, patience=60)
        failpoints.point("request sent", self._turn.id)
        if kind == "question":
            self._event(agent, key, "sent")
        return waiting

    def _on_behalf(self) -> dict[str, Any] | None:
        """The person who set this off: whoever works on it asks them for permission."""
        if not (user := self._who.get("user_id")):
            return None
        session = str(self._who.get("session_id") or self._turn.session)
        return {"user_id": str(user), "session_id": session, "roles": list(self._who.get("roles") or ())}

    def _origin(self) -> dict[str, Any]:
        """Who asks, and what they had read by now: it goes along with their words."""
        user, session = str(self._who.get("user_id") or ""), str(self._who.get("session_id") or "")
        read = marks.mark(self._turn.records)
        return Origin(self._agent, user, session or self._turn.session, foreign=read).kept()

    async def _await(self, agent: str, key: str) -> dict[str, Any]:
        started = time.monotonic()
        patience = self._settings.tool_call_timeout_ms / 1000
        every = min(5.0, LIFE_MS / 3000)
        looked, silent_since = started, 0.0

        async def heard() -> dict[str, Any] | Literal["silent"] | None:
            nonlocal looked, silent_since
            answer, now = await self._heard(key), time.monotonic()
            if answer is not None or now - looked < every:
                return answer
            looked = now
            silent_since = 0.0 if await self._here(agent, key) else silent_since or time.monotonic()
            if silent_since and time.monotonic() - silent_since > LIFE_MS / 1000:
                return "silent"
            self._turn.wake_up.set()  # one can be missed: now and then look without it
            return None

        answer: dict[str, Any] | Literal["silent"] | None
        answer = await wait_for(self._turn, heard, started + patience, every)
        if answer is None:
            return await self._gave_up(
                agent, key, started, "timeout", f"{agent} did not respond within timeout"
            )
        if answer == "silent":
            return await self._gave_up(agent, key, started, "offline", f"{agent} went silent")
        return await self._answered(agent, key, started, answer)

    async def _heard(self, key: str) -> dict[str, Any] | None:
        """The answer, also one that a worker before us heard."""
        for entry in self._turn.given:
            if key not in self._answers and entry.channel == self._connection.names.agent(self._agent):
                self.take(entry)
        return self._answers.get(key)

    async def _answered(self, agent: str, key: str, started: float, answer: dict[str, Any]) -> dict[str, Any]:
        failpoints.point("answer heard", self._turn.id)
        ms = int((time.monotonic() - started) * 1000)
        self._event(agent, key, "answered", ms)
        log.get().info(f"Received response from {agent}", ms=ms)
        if answer.get("via") != self._connection.names.agent(self._agent):
            # A foreign program was first (it may copy a `via` of ours): our own worker need not start.
            await self._connection.queue(agent).withdraw(key)
        payload = answer.get("payload")
        told = dict(payload) if isinstance(payload, dict) else {"answer": payload}
        told.pop("request_id", None)
        if answer.get("type") == "error" and "error" not in told:
            told["error"] = f"{agent} failed"
        return told

    async def _gave_up(self, agent: str, key: str, started: float, state: str, what: str) -> dict[str, Any]:
        self._event(agent, key, state, int((time.monotonic() - started) * 1000))
        log.get().warning(f"No response from {agent} within timeout")
        log.get().info("Informing user of timeout")
        self.timeouts += 1
        return {
            "error": what,
            "suggestion": "Try again or check agent status. An answer that still comes is told later",
        }

    async def _here(self, agent: str, key: str) -> bool:
        try:
            cards = await self._connection.presence.here(agent)
            if any(key in str(card.get("current") or "").split(", ") for card in cards):
                self._begun(key)
            return bool(cards) or bool(
                await self._connection.bus.listeners(self._connection.names.agent(agent))
            )
        except PromptDockError:
            return True  # it is Redis that is away, not the agent

    def _begun(self, key: str) -> None:
        """Say once that whoever was asked works on it."""
        if (since := self._works.pop(key, None)) is not None:
            self._event(self.asked[key], key, "working", int((time.monotonic() - since) * 1000))

    def late(self, answer: messages.AgentMessage) -> None:
        """Say that an answer came that nobody awaits any more; the turn that it opened, or joined, takes it up."""
        self._event(answer.sender, str(answer.request_id), "late")

    def _event(self, agent: str, key: str, state: str, ms: int = 0) -> None:
        self._live("consult", {"agent": agent, "request_id": key, "state": state, "ms": ms})
