"""What all turns share: the loop with a model, and the tools of a profile behind the door."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from shared import log
from shared.loop import Call, Done, Limits, Live, Outcome, Verdict, run
from shared.models.base import Message, Request, ToolSpec
from shared.tools.context import Context
from shared.tools.handler import Handler
from shared.tools.registry import Registry, Tool
from shared.turns.turn import Turn
from shared.worker.parts import Parts
from shared.worker.profile import Profile

_DEFAULT_MODEL = "claude-sonnet-5-5"
_PATIENCE = 600.0  # seconds that all tries of one model call may take
_TOLD = 15.0  # seconds of waiting for a provider after which the person hears of it
Joined = Callable[[], Awaitable[list[str]]]


def shown(tools: list[Tool]) -> tuple[ToolSpec, ...]:
    """Tools as the model is shown them."""
    return tuple(ToolSpec(tool.name, tool.description, tool.schema) for tool in tools)


def model_name(parts: Parts, profile: Profile) -> str:
    """Which model this agent thinks with."""
    if parts.model.demo:
        return "demo"
    return parts.settings.model_for(profile.name) or profile.model or _DEFAULT_MODEL


@dataclass(frozen=True)
class Engine:
    """Runs the loop for turns of one profile."""

    parts: Parts
    profile: Profile
    registry: Registry
    handler: Handler

    async def think(
        self,
        turn: Turn,
        system: tuple[str, ...],
        messages: list[Message],
        context: Context,
        live: Live,
        joined: Joined,
        model: str | None = None,
        temperature: float | None = None,
    ) -> Done:
        """Carry the turn to its end; the profile's tools are all that the model is shown."""
        tools = self.registry.pick(self.profile.tools)
        allowed = frozenset(tool.name for tool in tools)
        request = Request(
            model=model or model_name(self.parts, self.profile),
            system=system,
            messages=tuple(messages),
            tools=shown(tools),
            max_tokens=self.profile.max_tokens,
            temperature=temperature if temperature is not None else self.profile.temperature,
            agent=self.profile.name,
            deadline=_PATIENCE,
        )

        async def act(call: Call) -> Outcome:
            return await self._act(call, context)

        async def leave(call: Call) -> Verdict:
            if call.tool in allowed:
                return Verdict(True)
            return Verdict(False, f"{call.tool} is not among the tools of {self.profile.name}")

        log.get().info("Calling Claude API..." if not self.parts.model.demo else "Calling the demo model...")
        return await run(
            turn.id,
            request,
            journal=turn,
            model=self.parts.model,
            act=act,
            leave=leave,
            limits=Limits(rounds=self.profile.rounds, cost=self.parts.settings.budget_turn),
            live=live,
            joined=joined,
            side_by_side=lambda name: name in allowed and self._side_by_side(name),
        )

    def _side_by_side(self, name: str) -> bool:
        tool = self.registry.get(name)
        return tool.reads_only or (tool.category == "consult" and name.startswith("consult_"))

    async def _act(self, call: Call, context: Context) -> Outcome:
        log.get().info(f"Claude requested tool: {call.tool}")
        if call.again and self.registry.get(call.tool).effect == "once":
            return self._unknown(call)
        result = await self.handler.execute(call.tool, call.arguments, context, step_id=call.key)
        ends = result if call.tool == "escalate_to_human" and "error" not in result else None
        log.get().info("Continuing conversation with tool result")
        return Outcome(result, is_error="error" in result, ends=ends)

    def _unknown(self, call: Call) -> Outcome:
        """A tool that may run only once was under way when its worker died: nobody knows what it did."""
        told = {
            "error": f"whether {call.tool} took effect is not known",
            "why": "the worker that ran it died before it could write down the result",
            "fix": "look whether its effect is there before you run it again",
        }
        return Outcome(told, is_error=True)


def waiting_notice(live: Live, say: Callable[[str], Awaitable[None]], spawn: Callable[[Any], None]) -> Live:
    """`live`, which also tells the person when the provider makes us wait for long."""
    since: list[float] = []

    def take(kind: str, payload: dict[str, Any]) -> None:
        live(kind, payload)
        if kind != "waiting":
            return
        if not since:
            since.append(time.monotonic())
            spawn(say(f"The model provider makes us wait: {payload['content']}"))
        elif time.monotonic() - since[0] > _TOLD:
            since[0] = time.monotonic()
            spawn(say(f"Still waiting for the model provider: {payload['content']}"))

    return take
