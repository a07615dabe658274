"""What all turns share: the loop with a model, and the tools of a profile behind the permission gate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

from shared import failpoints, log
from shared.conversation import sessions
from shared.errors import ConfigurationError, ToolError
from shared.guard.permissions import presets
from shared.guard.permissions.policy import Policy
from shared.guard.sandbox.sandbox import Sandbox
from shared.loop import Call, Done, Limits, PublishEvent, run
from shared.loop.base import JoinedMessages
from shared.models.base import Model, ModelMessage, Request
from shared.models.fallback import FallbackModel
from shared.profiles.overrides import Overrides
from shared.profiles.profile import Profile
from shared.settings import Settings
from shared.tools.categories import CORE
from shared.tools.context import Context, WorkerServices
from shared.tools.execute import ToolExecutor
from shared.tools.registry import Category, Registry, Tool, ToolSource
from shared.tools.view import ToolView, ViewedModel
from shared.turns.records import IntentRecord, NoteRecord
from shared.turns.turn import Turn
from shared.worker.budgets.ledger import Ledger
from shared.worker.budgets.meter import Meter, MeteredModel
from shared.worker.permissions.approver import Approver
from shared.worker.permissions.gate import PermissionGate
from shared.worker.resources import Resources
from shared.worker.runners.calls import TurnCalls
from shared.worker.runners.closing import Replies


def model_name(settings: Settings, profile: Profile, model: Model) -> str:
    """Which model this agent thinks with."""
    if model.demo:
        return "demo"
    chosen = settings.own_model(profile.name) or profile.chosen_model
    return chosen or settings.model_for(profile.name) or profile.model or model.recommended


@dataclass
class _Last:
    """The runner that was made last with the tools of another source, and from what."""

    plain: AgentRunner | None = None
    more: Sequence[Category] = ()
    made: AgentRunner | None = None


@dataclass(frozen=True)
class AgentRunner:
    """Runs the loop for turns of one profile."""

    resources: Resources
    profile: Profile
    registry: Registry
    handler: ToolExecutor
    services: WorkerServices | None = None  # that tools of conversations are handed
    sandbox: Sandbox | None = None  # that of conversations, where the agent that talks is not Chatter
    folder: Profile | None = None  # the profile as its folder says, where the agent changed itself since
    source: ToolSource | None = None  # of tools that are not in the catalog
    brought: tuple[str, ...] = ()  # tools of it that are shown from the start
    catalog: Registry | None = None  # the registry without tools of others, where it has any
    _last: _Last = field(default_factory=_Last)

    async def current(self) -> AgentRunner:
        """As it is now, with the agent's own changes and the tools of others: for one turn, from beginning to end."""
        return await (await self._changes.latest()).equipped()

    async def equipped(self) -> AgentRunner:
        """With the tools of other sources that its profile has, and with no others."""
        more, last = await self._others(), self._last
        if last.made is None or last.plain is not self or last.more is not more:
            last.plain, last.more, last.made = self, more, self._with(more)
        return last.made

    async def warm(self) -> None:
        """Let what it stands on begin before its first turn does."""
        await self._others()

    async def _others(self) -> Sequence[Category]:
        profile = self.profile
        if self.source is None:
            return ()
        return await self.source.categories(profile.name, profile.servers, profile.own_servers)

    def _with(self, more: Sequence[Category]) -> AgentRunner:
        catalog = self.catalog or self.registry
        if not more and catalog is self.registry:
            return self
        registry = catalog.extended(more) if more else catalog
        names = () if self.profile.on_demand else tuple(tool.name for one in more for tool in one.tools)
        handler = ToolExecutor(registry)
        return replace(self, registry=registry, handler=handler, brought=names, catalog=catalog)

    def check(self) -> None:
        """Say at the start, not in the first turn, that the profile names an unknown tool or a wrong permission."""
        _ = self.policy
        self.registry.pick([*self.view.always, *self.view.loadable])

    @property
    def model(self) -> str:
        """The model that it thinks with, also after it chose another one itself; as last read.

        Of a chain, the one that is asked first now.
        """
        return self.resources.outages.first(self._named(self._changes.known.profile))

    def _named(self, profile: Profile) -> str:
        return model_name(self.resources.settings, profile, self.resources.model)

    @property
    def ledger(self) -> Ledger:
        """What all turns of the cluster spend."""
        return Ledger(self.resources.connection.bus, self.resources.connection.names)

    @property
    def replies(self) -> Replies:
        """What this agent answers to those who ask it."""
        return Replies(self.resources.connection, self.profile.name)

    def working_as(self, profile: Profile, base: Profile) -> AgentRunner:
        """This runner with another profile; `base` is that without the agent's own changes."""
        return replace(self, profile=profile, folder=base)

    def _checked(self, profile: Profile, base: Profile) -> AgentRunner:
        """The same; an error that says what cannot be used of it, before a turn stands on it."""
        other = self.working_as(profile, base)
        other.check()
        return other

    @cached_property
    def _changes(self) -> Overrides[AgentRunner]:
        return Overrides(
            self.resources.store,
            self.resources.stale,
            self.profile,
            self,
            self._checked,
        )

    @cached_property
    def policy(self) -> Policy:
        """What this agent may do: as the settings name it, else as its profile says."""
        return self.named_policy(self.resources.settings.permission_profile or "")

    def named_policy(self, name: str) -> Policy:
        """A shipped policy by its name; the profile's own for its agent's name, or for none."""
        confined = self.resources.sandbox.offline
        if name in ("", self.profile.name):
            return self.profile.permissions.make(self.profile.name, confined)
        return presets.preset(name, confined)

    @cached_property
    def view(self) -> ToolView:
        """What the model is shown."""
        shown = [CORE] if self.profile.on_demand else []
        categories = (self.registry.category(name) for name in (*shown, *self.profile.categories))
        whole = [tool.name for tools in categories for tool in tools]
        return ToolView(
            self.registry,
            list(dict.fromkeys([*whole, *self.profile.tools, *self.brought])),
            self.profile.on_demand,
            self.resources.settings.tool_mode,
            lambda tool: tool.name in self.hidden,
            self.profile.loadable,
        )

    @cached_property
    def hidden(self) -> frozenset[str]:
        """Tools that are denied whatever they are called with: the model is not shown them."""
        hides = self.policy.hides
        return frozenset(
            t.name for t in self.registry if t.personal or hides(t.name, t.category, t.touched())
        )

    def gate(
        self, turn: Turn, asked: Approver, context: Context, live: PublishEvent, policy: Policy | None = None
    ) -> PermissionGate:
        """The gate of a turn."""
        resources = self.resources
        return PermissionGate(
            resources.store,
            resources.sandbox,
            resources.approvals,
            resources.authority,
            self.profile.name,
            policy or self.policy,
            self.profile.permissions.approval_minutes,
            turn,
            replace(asked, project=context.project_id),
            live,
            tuple(context.roots),
            self.registry,
            paused=context.worktree.paused,
        )

    async def think(
        self,
        turn: Turn,
        system: tuple[str, ...],
        messages: list[ModelMessage],
        context: Context,
        live: PublishEvent,
        joined: JoinedMessages,
        asked: Approver,
        model: str | None = None,
        temperature: float | None = None,
        tokens: int | None = None,
        loaded: Sequence[str] = (),
    ) -> Done:
        """Carry the turn to its end; the model is shown what its view shows, and each call passes the gate.

        `loaded` is what the conversation loaded before.
        """
        view, resources = self.view, self.resources

        def now() -> Context:
            """As it is for the next call: the person may have said by then to go to another project."""
            return replace(context, project_id=sessions.project_now(turn.records, context.project_id))

        calls = TurnCalls(self, turn, self.gate(turn, asked, context, live), now)
        request = self._request(system, messages, model, temperature)
        meter = self._meter(turn, context, asked)
        await meter.open()

        async def news() -> Sequence[str | NoteRecord]:
            await meter.next()
            return await joined()

        shown = ViewedModel(resources.model, view, turn.records, loaded)
        thinker = MeteredModel(FallbackModel(shown, resources.outages), meter, turn)
        self._announce(request)
        done = await run(
            turn.id,
            request,
            journal=turn,
            model=thinker,
            act=calls.run,
            permit=calls.permit,
            limits=meter.limits(self._limits(tokens)),
            live=live,
            joined=news,
            side_by_side=lambda name: view.runs(name) and self._side_by_side(self.registry.get(name)),
        )
        if done.spent and (budget := meter.over()):
            turn.spent = asdict(budget)
        return done

    def _announce(self, request: Request) -> None:
        model = self.resources.model
        speaker = model.speaker(self.resources.outages.first(request.model))
        log.get().info(f"Calling {speaker}{'' if model.demo else ' API'}...")

    def _request(
        self,
        system: tuple[str, ...],
        messages: list[ModelMessage],
        model: str | None,
        temperature: float | None,
    ) -> Request:
        if index := self.view.index:
            system = (f"{system[0]}\n\n{index}", *system[1:])
        return Request(
            model=model or self._named(self.profile),
            system=system,
            messages=tuple(messages),
            tools=self.view.specs(),
            max_tokens=self.profile.max_tokens,
            temperature=temperature if temperature is not None else self.profile.temperature,
            agent=self.profile.name,
            deadline=self.resources.settings.model_patience_ms / 1000,
        )

    def _meter(self, turn: Turn, context: Context, asked: Approver) -> Meter:
        resources, task = self.resources, context.task
        paying = "" if self.profile.kind == "coding" or task else asked.session or turn.session
        return Meter(self.ledger, resources.store, resources.settings, turn, context.project_id, task, paying)

    def _limits(self, tokens: int | None) -> Limits:
        given = (self.resources.settings.budget_turn, self.profile.budget)
        budgets = [one for one in given if one is not None]
        return Limits(rounds=self.profile.rounds, cost=min(budgets, default=None), tokens=tokens)

    async def command(
        self,
        turn: Turn,
        call: Call,
        context: Context,
        asked: Approver,
        live: PublishEvent,
        profile: str | None = None,
    ) -> dict[str, Any]:
        """One tool for a person: through the same gate. To call it is to allow it, unless they name a profile."""
        try:
            policy = self.named_policy(profile) if profile else self.policy
            tool = self.registry.get(call.tool)
        except (ConfigurationError, ToolError) as error:
            return error.as_dict()
        gate = self.gate(turn, replace(asked, consents=not profile), context, live, policy)
        calls = TurnCalls(self, turn, gate, lambda: context)
        bound = calls.bound(call)
        if isinstance(bound, ToolError):
            return await self.handler.run(bound, context)
        personal = tool.personal and not profile
        verdict = gate.personal(call, bound) if personal else await calls.ready(call, bound)
        if not verdict.allowed:
            return {"error": "not allowed", "why": verdict.reason}
        if tool.effect == "once" and not call.again:
            await turn.step(IntentRecord(call=call.key))
        done = await calls.run(call)
        failpoints.point("effect done", turn.id)
        return done.content

    def _side_by_side(self, tool: Tool) -> bool:
        if self.policy.decide(tool.name, tool.category, touched=tool.touched()).vote == "ask":
            return False
        return tool.reads_only or (tool.category == "consult" and tool.name.startswith("consult_"))
