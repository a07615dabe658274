"""Hooks at work: one Chatter at a time, under a lease, launches what is due, looks, and hands words to an agent.

The words go as a message, in a session of their own, so that the turn that answers them is as durable as any
other; its end is read from the Store. A run that was looking when its worker died is marked failed: whether
its commands ran is not known, and nothing is run twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections import deque
from dataclasses import replace
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID

from shared import failpoints, log
from shared.bus import messages, reading
from shared.bus.keys import CHATTER
from shared.errors import Fenced, PromptDockError
from shared.hooks import launch, steps, template, triggers
from shared.store.origin import MADE, Origin, mark
from shared.store.records import (
    Hook,
    HookRun,
    Message,
    ProfileRow,
    Project,
    Task,
    TaskEvent,
    TokenUsage,
    TurnRow,
)
from shared.store.row import derived, now
from shared.tools.context import Context
from shared.tools.registry import Result
from shared.turns.lease import Lease
from shared.turns.queue import Mail
from shared.worker.changes import Changes
from shared.worker.connection import Connection
from shared.worker.services.hook_gate import AGENT, HookGate, HookTools
from shared.worker.services.task_log import BATCH, TaskLog

_PAUSE = 1.0  # seconds between two looks while a run is in flight
_IDLE = 60.0  # seconds between two looks where nothing is heard and nothing is due
_REST = 0.1  # seconds between two looks at least
_LOOKS = 300.0  # seconds that all steps of a run may take
ABSENT = 120.0  # seconds in which an agent that is away may come back
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
_ANSWER = timedelta(hours=24)  # after which nobody answers any more


class _Wanted(NamedTuple):
    """An event that a hook is still to be launched for."""

    hook: UUID
    key: str
    trigger: str
    event: dict[str, Any]
    depth: int


async def fire(context: Context, hook: Hook, key: str) -> Result:
    """Ask for a run now, whatever the cooldown; the worker that holds the lease begins it."""
    event = {"by": context.user_id or context.agent}
    depth = await launch.depth_in(context.store, context.session_id)
    run = await launch.launch(context.store, hook, key, "manual", now(), event, depth, by_hand=True)
    if isinstance(run, str):
        return {"error": f"the hook {hook.slug} was not fired", "why": run}
    return {"fired": hook.slug, "status": "running", "run_id": str(run.id)}


async def preview(tools: HookTools, hook: Hook, key: str) -> Result:
    """A dry run: what only reads is read; of all else it is told what it would do. Only the audit rows are kept."""
    run = HookRun(id=derived("hook-preview", key), hook_id=hook.id, session_id=f"preview:{key}"[:200])
    looked = await look(tools, hook, run, dry=True)
    prompt = template.render(hook.prompt_template, looked.steps, {})
    told = {"hook_id": hook.slug, "dry_run": True, "steps": looked.steps, "prompt": prompt}
    would = (
        f"fail: {looked.error}" if looked.error else f"be skipped: {looked.skip}" if looked.skip else "ask"
    )
    told |= {MADE: found} if (found := read(hook, run, looked.steps)) else {}
    return told | {"would": would, "next_runs": [at.isoformat() for at in triggers.upcoming(hook, now())]}


def read(hook: Hook, run: HookRun, found: list[dict[str, Any]]) -> str:
    """What the words of a run are made of that others wrote: the hook's mark, that of its event, what was found."""
    looked = f"what the hook {hook.slug} found" if found else ""
    return mark(hook) or str(run.event.get(MADE) or "") or looked


async def look(tools: HookTools, hook: Hook, run: HookRun, dry: bool = False) -> steps.Looked:
    """What the context steps of a hook find."""
    projects = await tools.store.select(Project, {"id": hook.project_id}, limit=1)
    gate = HookGate(tools, hook, run, projects[0], dry)
    return await steps.look(hook.context_steps, projects[0].slug, gate)


class HookService:
    """One worker's part in hooks; `run` never ends."""

    def __init__(self, tools: HookTools, connection: Connection, lease: Lease, changes: Changes) -> None:
        self._tools, self._store, self._connection = tools, tools.store, connection
        self._changes, self._watch = changes, changes.watch(Hook, HookRun, TaskEvent)
        self._look_at = float("-inf")  # by the monotonic clock
        self._lease = lease
        self._tail = TaskLog(tools.store, AGENT)
        self._later: deque[_Wanted] = deque(maxlen=200)  # events of hooks that were in flight
        self._looking: dict[UUID, asyncio.Task[None]] = {}
        self._away: dict[UUID, float] = {}  # runs whose agent is away, and since when
        self._epoch = 0

    async def run(self) -> None:
        """Take the lease whenever it is free, and work as long as it is ours."""
        waits = ours = False
        try:
            while True:
                try:
                    ours = await self._look()
                    waits = False
                except PromptDockError as error:
                    if (
                        not waits
                    ):  # once: each warning is a row on its way to the Store that may be the reason
                        log.get().warning("Hooks wait", why=str(error))
                    waits = True
                    self._look_at = time.monotonic() + _PAUSE
                rest = max(0.0, min(self._look_at - time.monotonic(), self._lease.ms / 3000))
                await self._watch.pause(rest, _REST, ours)
        finally:
            for task in self._looking.values():
                task.cancel()
            with contextlib.suppress(PromptDockError, TimeoutError):
                async with asyncio.timeout(1):
                    await self._lease.drop()
                    await self._changes.free()

    async def _look(self) -> bool:
        epoch = await self._lease.take()
        if not epoch:
            for task in self._looking.values():
                task.cancel()
            self._look_at = time.monotonic() + _IDLE
            return False
        if epoch != self._epoch:
            await self.recover()
            self._watch.all()  # what was done meanwhile was not heard
            self._epoch = epoch
        if self._watch.changed or time.monotonic() >= self._look_at:
            with self._watch.reading(Hook, HookRun, TaskEvent):
                self._look_at = time.monotonic() + await self.tick()
        return True

    async def recover(self) -> None:
        """What was looking when its worker went is failed; what is with an agent goes on there."""
        for run in await self._store.select(HookRun, {"state": "running"}):
            if launch.waits(run) or run.id in self._looking or (run.turn_id and await self._alive(run)):
                continue
            log.get().warning("A hook was interrupted", run=str(run.id))
            await launch.end(self._store, run, "failed", now(), error="interrupted: its worker ended")

    async def _alive(self, run: HookRun) -> bool:
        agent = str(run.event.get("agent") or CHATTER)
        return await self._connection.queue(agent).state(str(run.turn_id)) in ("accepted", "done")

    async def tick(self) -> float:
        """One look at everything; in how many seconds to look again where nothing is heard."""
        hooks = {row.id: row for row in await self._store.select(Hook)}
        events = await self._tail.new()
        if not hooks:
            return _IDLE
        moment = now()
        for hook in hooks.values():
            if hook.enabled and (due := triggers.due(hook, moment)):
                kind = str(hook.trigger["type"])
                await self._launch(hook, f"{kind}:{due.isoformat()}", kind)
        for event in events:
            await self._event(list(hooks.values()), event)
        for _ in range(len(self._later)):
            wanted = self._later.popleft()
            if hook_ := hooks.get(wanted.hook):
                await self._launch(hook_, wanted.key, wanted.trigger, wanted.event, wanted.depth)
        running = await self._store.select(HookRun, {"state": "running"}, order=[("created_at", "asc")])
        for run in running:
            if run.turn_id:
                await self._finish(run)
        busy = sum(not launch.waits(run) for run in running)
        for run in filter(launch.waits, running):
            if busy < launch.AT_ONCE and (owner := hooks.get(run.hook_id)):
                busy += 1
                await self._begin(owner, run)
        moments = [at for hook in hooks.values() if (at := triggers.next_look(hook, moment))]
        dues = [(at - moment).total_seconds() for at in moments]
        rest = 0.0 if len(events) == BATCH else _PAUSE if running or self._later else _IDLE
        return max(0.0, min([*dues, rest]))

    # -- launching -------------------------------------------------------------------------------------------

    async def _launch(
        self, hook: Hook, key: str, trigger: str, event: dict[str, Any] | None = None, depth: int = 0
    ) -> None:
        done = await launch.launch(self._store, hook, key, trigger, now(), event, depth)
        if done == launch.IN_FLIGHT and event is not None:
            self._later.append(_Wanted(hook.id, key, trigger, event, depth))
        elif isinstance(done, str):
            log.get().debug(f"The hook {hook.slug} is not launched", trigger=trigger, why=done)
        else:
            log.get().info(f"The hook {hook.slug} is launched", trigger=trigger)

    async def _event(self, hooks: list[Hook], event: TaskEvent) -> None:
        types = triggers.names(event)
        matching = [hook for hook in hooks if hook.enabled and triggers.wants(hook, types)]
        if not matching:
            return
        tasks = await self._store.select(Task, {"id": event.task_id}, limit=1)
        task = tasks[0] if tasks else None
        # It is the project's where it happened, also where the task is gone or went elsewhere since.
        where = event.project_id or (task.project_id if task else None)
        wanting = [hook for hook in matching if hook.project_id == where]
        told = {
            "type": types[0],
            "event": event.event,
            "from": event.from_status,
            "to": event.to_status,
            "actor": event.actor,
            "task_id": task.slug if task else str(event.task_id),
            "title": task.title if task else "",
            "error": task.error if task else "",
        }
        if event.task_id == event.project_id:
            told = {name: told[name] for name in ("type", "event", "actor")} | event.detail
        told |= {MADE: mark(task)} if task and mark(task) else {}
        depth = await launch.depth_in(self._store, task.session_id if task else None)
        for hook in wanting:
            await self._launch(hook, f"event:{event.id}", f"event {types[0]}", told, depth)

    # -- a run -----------------------------------------------------------------------------------------------

    async def _begin(self, hook: Hook, run: HookRun) -> None:
        ours = await launch.begin(self._store, run, f"{launch.SESSION}{run.id}")
        if ours is None:
            return
        failpoints.point("hook begun", str(run.id))
        task = asyncio.create_task(self._carry(hook, ours), name=f"hook {hook.slug}")
        self._looking[run.id] = task
        task.add_done_callback(lambda _done: self._looking.pop(run.id, None))

    async def _carry(self, hook: Hook, run: HookRun) -> None:
        """Look, then hand over; whatever goes wrong is written at the run."""
        try:
            async with asyncio.timeout(_LOOKS):
                looked = await look(self._tools, hook, run)
            prompt = template.render(hook.prompt_template, looked.steps, run.event)
            if looked.error or looked.skip:
                state = "failed" if looked.error else "skipped"
                why = looked.error or looked.skip
                await launch.end(self._store, run, state, now(), steps=looked.steps, error=why)
            else:
                await self._hand_over(hook, run, looked.steps, prompt)
        except TimeoutError:
            await launch.end(self._store, run, "failed", now(), error=f"its steps took over {_LOOKS:g} s")
        except Fenced:
            raise
        except Exception as error:
            log.get().exception("A hook failed", hook=hook.slug)
            why = str(error) if isinstance(error, PromptDockError) else f"{type(error).__name__}"
            with contextlib.suppress(PromptDockError):
                await launch.end(self._store, run, "failed", now(), error=why)

    async def _hand_over(self, hook: Hook, run: HookRun, found: list[Any], prompt: str) -> None:
        agent, key = await self._agent(hook), f"{launch.SESSION}{run.id}"
        origin = replace(Origin.of(hook.origin), session=key, foreign=read(hook, run, found)).kept()
        data = (await self._request(hook, run, agent, key, prompt, origin)).to_bytes()
        if len(data) > reading.MAX_BYTES:
            raise PromptDockError("the hook's words are too many to be sent", f"{len(data)} bytes")
        event = {**run.event, "agent": agent}
        kept = {"steps": found, "prompt": prompt, "turn_id": key, "event": event, "origin": origin}
        if not await self._store.update(HookRun, kept, {"id": run.id, "state": "running"}):
            return  # somebody took it for lost
        channel = self._connection.names.agent(agent)
        deadline = -int(_ANSWER.total_seconds() * 1000)
        receipt = await self._connection.queue(agent).post(
            Mail(key, key, channel, data, deadline=deadline), patience=30
        )
        if receipt.outcome == "busy":
            raise PromptDockError(f"{agent} takes nothing more now", "its queue is full")
        log.get().info(f"The hook {hook.slug} asks {agent}")

    async def _agent(self, hook: Hook) -> str:
        """The agent that is asked: the hook's, that of its profile (they have one name), else Chatter."""
        if hook.agent:
            return hook.agent
        if hook.profile_id:
            found = await self._store.select(ProfileRow, {"id": hook.profile_id}, limit=1)
            if found:
                return found[0].slug
        named = str(hook.llm_config.get("agent") or CHATTER)
        if not (_NAME.fullmatch(named) or failpoints.without("hook-agent")):
            raise PromptDockError(f"{named[:50]!r} is no name of an agent", "", "name one with edit_hook")
        return named

    async def _request(
        self, hook: Hook, run: HookRun, agent: str, key: str, prompt: str, origin: dict[str, Any]
    ) -> messages.AgentMessage:
        projects = await self._store.select(Project, {"id": hook.project_id}, limit=1)
        cards = await self._connection.presence.here(agent)
        codes = any(card.get("kind") == "coding" for card in cards)
        payload: dict[str, Any] = {
            ("command_file" if codes else "question"): prompt,
            "project": projects[0].slug,
            "hook": hook.slug,
            "model": hook.llm_config.get("model"),
            "max_tokens_per_run": hook.max_tokens_per_run,
        }
        return messages.AgentMessage.outgoing(
            *(key, AGENT, agent, "task" if codes else "question"),
            {name: value for name, value in payload.items() if value is not None},
            hops=min(run.depth, 3),
            origin=origin,
            via=self._connection.names.agent(agent),
        )

    async def _finish(self, run: HookRun) -> None:
        """Close a run whose turn has ended; its words and tokens are read from the turn's own rows."""
        agent = str(run.event.get("agent") or CHATTER)
        turns = await self._store.select(TurnRow, {"id": derived("turn", agent, str(run.turn_id))}, limit=1)
        if not turns or turns[0].ended_at is None:
            if now() - run.started_at > _ANSWER:
                await launch.end(self._store, run, "failed", now(), error=f"{agent} never answered")
            elif not failpoints.without("hook-agent"):
                await self._seek(run, agent)
            return
        done = turns[0].state == "complete" or turns[0].state == "awaiting_input"
        usage = await self._store.select(TokenUsage, {"session_id": run.session_id})
        changes = {
            "response": await self._response(str(run.turn_id)),
            "tokens_used": sum(row.input + row.output for row in usage),
            "error": "" if done else turns[0].error or turns[0].state,
        }
        await launch.end(self._store, run, "completed" if done else "failed", now(), **changes)

    async def _seek(self, run: HookRun, agent: str) -> None:
        """End a run whose agent has been away for long and has not begun: it keeps others from being begun."""
        there = await self._connection.presence.here(agent)
        if there or await self._connection.bus.listeners(self._connection.names.agent(agent)):
            self._away.pop(run.id, None)
            return
        since = self._away.setdefault(run.id, time.monotonic())
        if time.monotonic() - since < ABSENT:
            return
        if await self._connection.queue(agent).withdraw(str(run.turn_id)) == "withdrawn":
            del self._away[run.id]
            why = f"nobody serves {agent}: start it, or name another agent with edit_hook"
            await launch.end(self._store, run, "failed", now(), error=why)

    async def _response(self, turn_id: str) -> str:
        """What was answered, as whoever asks an agent gets it: words of its model are not always the answer."""
        where: dict[str, Any] = {
            "request_id": turn_id, "to_agent": AGENT, "type": ("in", sorted(messages.ANSWERS))
        }  # fmt: skip
        found = await self._store.select(Message, where, order=[("created_at", "desc")], limit=1)
        payload = found[0].payload if found else {}
        return str(payload.get("answer") or payload.get("summary") or "")[:20_000]
