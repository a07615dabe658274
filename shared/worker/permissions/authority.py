"""Authority follows the maker: what was made by somebody does no more by itself than they may do.

Two bounds, beside the rules of the agent that works. Who makes what will call tools later (a hook) needs for each of
these calls the permission that a call of their own needs. And work on a task does nothing of lasting effect by a rule
alone that who made the task may not do by a rule alone.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared import failpoints, log
from shared.errors import ConfigurationError, PromptDockError, ToolError
from shared.guard.permissions import presets, safeguards, touching
from shared.guard.permissions.policy import Policy, Ruling
from shared.guard.permissions.touching import TouchKind
from shared.profiles.overrides import over
from shared.profiles.profile import Profile, load
from shared.store.base import Store
from shared.store.origin import PERSON, Origin
from shared.store.records import ProfileRow as Row
from shared.tools.agents import own
from shared.tools.registry import BoundCall, Registry, Tool

_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
_SHIPPED = Path(__file__).parents[3] / "agents"
_STRICT = {"allow": 0, "ask": 1, "deny": 2}
_HTTP, _QUERY = "http_get", "named_query"  # of hooks alone; who may list tasks may ask the named queries
_ALIKE = "list_tasks"


@dataclass(frozen=True)
class Action:
    """A call that is judged: its checked arguments, the spellings of its detail, and what it touches."""

    tool: Tool
    arguments: dict[str, Any]
    details: list[str]
    kinds: tuple[TouchKind, ...]


@dataclass(frozen=True)
class Authority:
    """What makers may do, as of now. `preset` is the one that holds for all agents, or ""."""

    store: Store
    home: Path
    preset: str
    confined: bool  # commands run without a network

    async def policy_of(self, origin: Origin) -> Policy:
        """What a maker may do. Nobody's and a person's are judged as Chatter is by default."""
        if origin.by in ("", PERSON):
            return presets.preset("standard", self.confined)
        if self.preset:
            return presets.preset(self.preset, self.confined)
        try:
            profile = await self._profile(origin.by)
        except (PromptDockError, OSError) as error:
            log.get().warning("A maker's permissions cannot be read", agent=origin.by, why=str(error))
            profile = None
        if profile is None:
            return presets.preset("locked", self.confined)
        return profile.permissions.make(profile.name, self.confined)

    async def _profile(self, agent: str) -> Profile | None:
        """An agent of this home or of this release, with what it changed of itself; None for a program of others."""
        if not _NAME.fullmatch(agent):
            return None
        for folder in (self.home / "agents" / agent, _SHIPPED / agent):
            if await asyncio.to_thread((folder / "profile.toml").is_file):
                profile = await asyncio.to_thread(load, folder)
                rows = await self.store.select(Row, {"slug": own.slug(agent)}, limit=1)
                return over(profile, rows[0]) if rows else profile
        return None

    async def bounded(
        self, policy: Policy, registry: Registry, maker: Origin | None, action: Action, ruling: Ruling
    ) -> Ruling:
        """The ruling on a call within these bounds; the same object where they say nothing."""
        if ruling.vote != "deny" and action.tool.later is not None and not failpoints.without("hook-maker"):
            ruling = _later(policy, registry, action, ruling)
        if ruling.vote == "allow" and maker is not None and safeguards.lasting(action.kinds):
            ruling = await self._made(maker, action, ruling)
        return ruling

    async def _made(self, maker: Origin, action: Action, ruling: Ruling) -> Ruling:
        """What the work on a task would do by a rule is asked for where its maker may not do it by a rule."""
        if maker.by in ("", PERSON) or failpoints.without("task-maker"):
            return ruling
        tool = action.tool
        touched = tool.touched(action.arguments)
        try:
            theirs = (await self.policy_of(maker)).decide(tool.name, tool.category, action.details, touched)
        except ConfigurationError as error:
            theirs = Ruling("deny", str(error))
        if theirs.vote == "allow":
            return ruling
        return Ruling(
            "ask", f"the task was made by {maker.by}, who may not do this: {theirs.why}", theirs.rule
        )


@dataclass(frozen=True)
class LaterCall:
    """A call that a hook makes, as policies judge it; its arguments are read once."""

    tool: str
    category: str
    detail: str
    touched: tuple[str, ...]
    bound: BoundCall | None = None  # None for what hooks alone can do

    def judged(self, policy: Policy) -> Ruling:
        """What a policy says of it."""
        return policy.decide(self.tool, self.category, [self.detail], self.touched)


def later_call(registry: Registry, name: str, arguments: dict[str, Any]) -> LaterCall:
    """Read such a call; ToolError for one that cannot be made."""
    if name == _HTTP:
        reads = touching.spelled(["address"], reads=True)
        return LaterCall(name, "hooks", str(arguments.get("url") or ""), reads)
    if name == _QUERY:
        alike = registry.get(_ALIKE)
        return LaterCall(alike.name, alike.category, str(arguments.get("query") or ""), alike.touched(None))
    bound = registry.bind(name, arguments)
    if isinstance(bound, ToolError):
        raise bound
    tool = bound.tool
    return LaterCall(tool.name, tool.category, bound.detail, tool.touched(bound.arguments), bound)


def strictest(*rulings: Ruling) -> Ruling:
    """The one that allows least."""
    return max(rulings, key=lambda ruling: _STRICT[ruling.vote])


def _later(policy: Policy, registry: Registry, action: Action, ruling: Ruling) -> Ruling:
    """The bound of a call and of those that what it makes will make."""
    bound = ruling
    for name, later in action.tool.later(action.arguments) if action.tool.later else ():
        try:
            theirs = later_call(registry, name, later).judged(policy)
        except PromptDockError as error:
            theirs = Ruling("deny", str(error))
        if theirs.vote != "allow" and _STRICT[theirs.vote] >= _STRICT[bound.vote]:
            why = f"it would {does(name, later)} by itself"
            both = bound.vote == "ask" == theirs.vote
            reason = f"{bound.why}; {why}" if both else f"{why}: {theirs.why}"
            bound = Ruling(theirs.vote, reason, theirs.rule)
    return bound


def does(name: str, arguments: dict[str, Any]) -> str:
    """What a call of a hook does, in words."""
    target = next(
        (str(arguments[key]) for key in ("command", "url", "query", "path") if arguments.get(key)), ""
    )
    verb = {"run_command": "run", _HTTP: "fetch", _QUERY: "ask for"}.get(name, f"call {name} on")
    return f"{verb} {target!r}"[:300]
