"""The calls of one turn: each is read once, needs permission, and runs at most as often as its effect allows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from shared import failpoints, log
from shared.errors import PromptDockError, ToolError
from shared.guard.permissions import marks
from shared.loop import Call, Outcome, Verdict
from shared.profiles.overrides import changed
from shared.profiles.profile import Profile
from shared.store.origin import MADE
from shared.tools.context import Context, Own
from shared.tools.execute import ToolExecutor
from shared.tools.registry import BoundCall, BoundCalls, Registry, Tool
from shared.tools.view import ToolView
from shared.turns.records import IntentRecord, ModelRecord
from shared.turns.turn import Turn
from shared.worker import incidents
from shared.worker.permissions.gate import PermissionGate
from shared.worker.resources import Resources

_ENDING = ("escalate_to_human", "choose_note")  # tools whose result is the end of the turn


class CallingAgent(Protocol):
    """What of an agent its calls depend on."""

    @property
    def resources(self) -> Resources: ...
    @property
    def profile(self) -> Profile: ...
    @property
    def folder(self) -> Profile | None: ...
    @property
    def registry(self) -> Registry: ...
    @property
    def handler(self) -> ToolExecutor: ...
    @property
    def view(self) -> ToolView: ...
    @property
    def hidden(self) -> frozenset[str]: ...


@dataclass(frozen=True)
class TurnCalls:
    """Permits and runs them. `context` is as it is for the next call."""

    agent: CallingAgent
    turn: Turn
    gate: PermissionGate
    context: Callable[[], Context]
    _bound: BoundCalls = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_bound", BoundCalls(self.agent.registry))

    def bound(self, call: Call) -> BoundCall | ToolError:
        """The call with its arguments checked, or why there can be none."""
        return self._bound.of(call.key, call.tool, call.arguments)

    async def permit(self, call: Call) -> Verdict:
        """Whether the model may make this call."""
        agent, gate = self.agent, self.gate
        if not agent.view.runs(call.tool):
            return gate.refuse(call, f"{call.tool} is not among the tools of {agent.profile.name}")
        if agent.registry.get(call.tool).personal and not failpoints.without("mark-person"):
            return gate.refuse(call, f"{call.tool} is for a person's own command alone")
        bound = self.bound(call)
        # What cannot run needs no permission: the handler says what is wrong with it.
        return await self.ready(call, bound) if isinstance(bound, BoundCall) else Verdict(True)

    async def ready(self, call: Call, bound: BoundCall) -> Verdict:
        """Permission for a call that can be made; nobody is asked for another."""
        tool, context = bound.tool, self.context()
        if tool.ready is not None and not call.again:
            try:
                await tool.ready(replace(context, own=self._own(context)), **bound.arguments)
            except PromptDockError as error:
                return self.gate.refuse(call, str(error))
        return await self.gate.permission(call, bound, context)

    async def run(self, call: Call) -> Outcome:
        """Run a call that has permission; one that may have run already, and must not twice, is said to be unknown."""
        bound = self._bound.pop(call.key, call.tool, call.arguments)
        log.get().info(f"{self._speaker()} requested tool: {call.tool}")
        tool, context = self.agent.registry.get(call.tool), self.context()
        again = call.again and call.key not in self.gate.fresh
        if again and tool.effect == "once" and not (tool.probes or tool.reads(call.arguments)):
            return await self._unknown(call, tool, context)
        here = self._here(call, context)
        await self.turn.ours()
        result = await self.agent.handler.run(bound, here, step_id=call.key)
        ends = result if call.tool in _ENDING and "error" not in result else None
        log.get().info("Continuing conversation with tool result")
        failed = "error" in result
        if failed:
            incidents.could_not(self.agent.profile.name, call, result)
        # What a tool that only reads says when it fails is ours.
        marked = bool(result.get(MADE)) and not failpoints.without("foreign-mark")
        foreign = bool(result.get("source")) or marked or (tool.foreign and not (failed and tool.reads_only))
        return Outcome(result, is_error=failed, ends=ends, foreign=foreign)

    def _here(self, call: Call, context: Context) -> Context:
        """What the tool is handed."""
        turn = self.turn

        async def intend(does: dict[str, Any]) -> None:
            await turn.step(IntentRecord(call=call.key, does=does))

        intents = [record.does for record in turn.records.of(IntentRecord) if record.call == call.key]
        begun = [does for does in intents if does is not None]
        return replace(
            context,
            intend=intend,
            intended=begun[-1] if begun else None,
            foreign=lambda: marks.mark(turn.records),
            permissions=self.gate.policy.name,
            allowed_by=self.gate.allowed_by(call),
            hidden=self.agent.hidden,
            own=self._own(context),
            bound=self.gate.facts.get(call.key, {}),
            models=self.agent.resources.model,
        )

    def _own(self, context: Context) -> Own:
        """For tools that change an agent: this one, and whose word stands behind the turn."""
        agent, resources = self.agent, self.agent.resources
        settings, name = resources.settings, agent.profile.name
        named = settings.permission_profile
        model = settings.own_model(name)
        return Own(
            folder=(agent.folder or agent.profile).permissions,
            person=self.gate.asked.user_id,
            approver=bool(context.roles() & settings.approver_roles),
            tell=lambda agent: changed(resources.connection.queue(agent), resources.stale),
            fixed_permissions=f"PERMISSION_PROFILE is {named} for all agents" if named else "",
            fixed_model=f"{name.upper()}_MODEL is {model}" if model else "",
        )

    def _speaker(self) -> str:
        """Whose the model is that answered last."""
        names = [record.model for record in self.turn.records if isinstance(record, ModelRecord)]
        return self.agent.resources.model.speaker(names[-1] if names else "")

    async def _unknown(self, call: Call, tool: Tool, context: Context) -> Outcome:
        """A tool that may run only once was under way when its worker died: nobody knows what it did."""
        detail = tool.detail(call.arguments)[:200]
        await context.say(f"A worker died while it ran {call.tool}: {detail}. It is not run again.")
        told = {
            "error": f"whether {call.tool} took effect is not known",
            "why": "the worker that ran it died before it could write down the result",
            "fix": "look whether its effect is there before you run it again",
            "unknown": f"{call.tool}: {detail}",
        }
        return Outcome(told, is_error=True)
