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
from shared.errors import ConfigurationError, PromptDockError
from shared.guard.permissions import presets, safeguards, touching
from shared.guard.permissions.policy import Policy, Ruling
from shared.guard.permissions.touching import Kind
from shared.profiles.profile import Profile, load
from shared.store.origin import PERSON, Origin
from shared.store.records import ProfileRow as Row
from shared.tools.agents import own
from shared.tools.registry import Registry, Tool
from shared.worker.overrides import over
from shared.worker.resources import Resources

_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
_SHIPPED = Path(__file__).parents[3] / "agents"
_STRICT = {"allow": 0, "ask": 1, "deny": 2}
_HTTP, _QUERY = "http_get", "named_query"  # of hooks alone; who may list tasks may ask the named queries
_ALIKE = {_QUERY: "list_tasks"}


async def policy_of(parts: Resources, origin: Origin) -> Policy:
    """What a maker may do, as of now. Nobody's and a person's are judged as Chatter is by default."""
    confined = parts.sandbox.offline
    if origin.by in ("", PERSON):
        return presets.preset("standard", confined)
    if named := parts.settings.permission_profile:
        return presets.preset(named, confined)
    try:
        profile = await _profile(parts, origin.by)
    except (PromptDockError, OSError) as error:
        log.get().warning("A maker's permissions cannot be read", agent=origin.by, why=str(error))
        profile = None
    if profile is None:
        return presets.preset("locked", confined)
    return profile.permissions.make(profile.name, confined)


async def _profile(parts: Resources, agent: str) -> Profile | None:
    """An agent of this home or of this release, with what it changed of itself; None for a program of others."""
    if not _NAME.fullmatch(agent):
        return None
    for folder in (parts.settings.home / "agents" / agent, _SHIPPED / agent):
        if await asyncio.to_thread((folder / "profile.toml").is_file):
            profile = await asyncio.to_thread(load, folder)
            found = await parts.store.select(Row, {"slug": own.slug(agent)}, limit=1)
            return over(profile, found[0]) if found else profile
    return None


@dataclass(frozen=True)
class Action:
    """A call that is judged: its checked arguments, the spellings of its detail, and what it touches."""

    tool: Tool
    arguments: dict[str, Any]
    details: list[str]
    kinds: tuple[Kind, ...]


def judged(policy: Policy, registry: Registry, name: str, arguments: dict[str, Any]) -> Ruling:
    """What a policy says of a call that a hook makes."""
    detail = spelled(registry, name, arguments)
    if name == _HTTP:
        return policy.decide(name, "hooks", [detail], touching.spelled(["address"], reads=True))
    tool = registry.get(_ALIKE.get(name, name))
    touched = tool.touched(None if name in _ALIKE else tool.check(arguments))
    return policy.decide(tool.name, tool.category, [detail], touched)


def spelled(registry: Registry, name: str, arguments: dict[str, Any]) -> str:
    """The detail of such a call's action."""
    if name in (_HTTP, _QUERY):
        return str(arguments.get("url") or arguments.get("query") or "")
    tool = registry.get(name)
    return tool.detail(tool.check(arguments))


def strictest(*rulings: Ruling) -> Ruling:
    """The one that allows least."""
    return max(rulings, key=lambda ruling: _STRICT[ruling.vote])


async def bounded(
    parts: Resources, policy: Policy, registry: Registry, maker: Origin | None, action: Action, ruling: Ruling
) -> Ruling:
    """The ruling on a call within these bounds; the same object where they say nothing."""
    if ruling.vote != "deny" and action.tool.later is not None and not failpoints.without("hook-maker"):
        ruling = _later(policy, registry, action, ruling)
    if ruling.vote == "allow" and maker is not None and safeguards.lasting(action.kinds):
        ruling = await _made(parts, maker, action, ruling)
    return ruling


def _later(policy: Policy, registry: Registry, action: Action, ruling: Ruling) -> Ruling:
    """The strictest of a call and of those that what it makes will make."""
    found = ruling
    for name, later in action.tool.later(action.arguments) if action.tool.later else ():
        try:
            told = judged(policy, registry, name, later)
        except PromptDockError as error:
            told = Ruling("deny", str(error))
        if told.vote != "allow" and _STRICT[told.vote] >= _STRICT[found.vote]:
            why = f"it would {does(name, later)} by itself"
            known = found.vote == "ask" == told.vote
            found = Ruling(told.vote, f"{found.why}; {why}" if known else f"{why}: {told.why}", told.rule)
    return found


def does(name: str, arguments: dict[str, Any]) -> str:
    """What a call of a hook does, in words."""
    told = next(
        (str(arguments[key]) for key in ("command", "url", "query", "path") if arguments.get(key)), ""
    )
    verb = {"run_command": "run", _HTTP: "fetch", _QUERY: "ask for"}.get(name, f"call {name} on")
    return f"{verb} {told!r}"[:300]


async def _made(parts: Resources, maker: Origin, action: Action, ruling: Ruling) -> Ruling:
    """What the work on a task would do by a rule is asked for where its maker may not do it by a rule."""
    if maker.by in ("", PERSON) or failpoints.without("task-maker"):
        return ruling
    tool = action.tool
    touched = tool.touched(action.arguments)
    try:
        theirs = (await policy_of(parts, maker)).decide(tool.name, tool.category, action.details, touched)
    except ConfigurationError as error:
        theirs = Ruling("deny", str(error))
    if theirs.vote == "allow":
        return ruling
    return Ruling("ask", f"the task was made by {maker.by}, who may not do this: {theirs.why}", theirs.rule)
