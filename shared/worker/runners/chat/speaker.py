"""Who answers a person's words: the agent that runs the turn, another profile, or the agent of their channel.

The profile that a message names counts before the one that was chosen for the conversation, that before the agent of
its channel, and that before the profile of its project.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from shared import failpoints
from shared.bus import messages
from shared.conversation import model_choice, sessions
from shared.errors import ConfigurationError, Denied, Missing, StoreUnavailable, ToolError
from shared.guard.permissions import compare
from shared.store.base import Store
from shared.store.records import Channel, ProfileRow, Project, Setting, derived
from shared.tools.agents import channels, members
from shared.tools.context import Root
from shared.turns import routing
from shared.worker.runners import profiles
from shared.worker.runners.agent import AgentRunner

NOBODY = (Missing, ToolError, Denied, ConfigurationError, StoreUnavailable)  # why nobody can answer
DEFAULT = "default"  # the profile of whoever answers anyway
_KEY = "channel"  # the setting of a conversation: the channel in which it is held


@dataclass(frozen=True)
class Speaker:
    """Who answers, and what the channel says of the words."""

    agent_runner: AgentRunner
    agent: str = ""  # an agent of its own, whose name stands in the output
    project: str = ""  # that the channel belongs to
    note: str = ""  # of that project, in which what is said here goes
    workspace: Root | None = None

    async def roots(self, project: str) -> dict[str, Root]:
        """What its file tools may touch: its own folder, and the project's repositories to read."""
        if self.workspace is None:
            return {}
        found = await self.agent_runner.resources.repositories.roots(project)
        return {**found, self.workspace.name: self.workspace}


async def of(agent_runner: AgentRunner, said: messages.Said | None, session: str) -> Speaker:
    """Who answers `said` (or, without it, news for this conversation); an error in words where nobody can."""
    store = agent_runner.resources.store
    place = said.channel if said else await _held_in(store, session)
    bound = await _bound(store, place) if place else None
    if bound is not None and said is not None:
        await _hold(store, session, place or "")
    project = await _project(store, bound) if bound else ""
    note = (bound.note or "") if bound else ""
    named = (said.profile_id or await model_choice.profile(store, session)) if said else None
    if named and named != DEFAULT:
        return Speaker(await _with_profile(agent_runner, named, said), project=project, note=note)
    agent = (bound.agent or "") if bound else ""
    if not agent and place:
        surface, id = channels.parted(place)
        agent = id if surface == members.SURFACE and not (project or note) else ""
    if agent and agent != agent_runner.profile.name:
        return await _agent(agent_runner, agent, said, project)
    if not agent and said is not None and not named:
        agent_runner = await _by_project(agent_runner, project or said.project_id or "", session, said)
    return Speaker(agent_runner, project=project, note=note)


async def _by_project(
    agent_runner: AgentRunner, project: str, session: str, said: messages.Said
) -> AgentRunner:
    """As the profile of the project that is spoken of, where it has one. With the Store down, as it is."""
    store = agent_runner.resources.store
    try:
        rows = await store.select(Project, {"default_profile_id": ("ne", None)})  # few have one
        slug = project or (await sessions.active_project(store, session) if rows else "")
        chosen = next((row.default_profile_id for row in rows if row.slug == slug), None)
        kept = await store.select(ProfileRow, {"id": chosen}, limit=1) if chosen else []
    except StoreUnavailable:
        return agent_runner
    return await _with_profile(agent_runner, kept[0].slug, said) if kept else agent_runner


async def _with_profile(agent_runner: AgentRunner, name: str, said: messages.Said | None) -> AgentRunner:
    resources = agent_runner.resources
    profile, base = await profiles.named(resources.store, resources.settings.home, name)
    return await _run_by(agent_runner, profiles.talking(profile, agent_runner.profile), base, said)


async def _agent(agent_runner: AgentRunner, name: str, said: messages.Said | None, project: str) -> Speaker:
    resources = agent_runner.resources
    row, profile, base = await profiles.of_agent(resources.store, resources.settings.home, name)
    chosen = await _run_by(agent_runner, profiles.talking(profile, agent_runner.profile), base, said)
    return Speaker(chosen, name, project, workspace=profiles.workspace(resources, row) if row else None)


async def _run_by(
    agent_runner: AgentRunner, profile: profiles.Profile, base: profiles.Profile, said: messages.Said | None
) -> AgentRunner:
    """As that profile; whoever did not sign gets nobody who may do more than the one who answers all."""
    nobodys = said is not None and routing.unsigned(said) and not failpoints.without("signature")
    if nobodys and (why := compare.wider(agent_runner.profile.permissions, profile.permissions)):
        raise Denied(
            f"{profile.name} does not answer this: nobody knows who sent it",
            f"it may do more than {agent_runner.profile.name}: {why}",
            "sign it as docs/wire.md says, or use promptdock ask",
        )
    chosen = await agent_runner.working_as(profile, base).equipped()
    chosen.check()
    return replace(chosen, sandbox=agent_runner.resources.sandbox)


async def _bound(store: Store, place: str) -> Channel | None:
    surface, id = channels.parted(place)
    found = await store.select(Channel, {"surface": surface, "channel_id": id}, limit=1)
    return found[0] if found else None


async def _project(store: Store, bound: Channel) -> str:
    found = await store.select(Project, {"id": bound.project_id}, limit=1) if bound.project_id else []
    return found[0].slug if found else ""


async def _held_in(store: Store, session: str) -> str:
    """The channel in which a conversation is held; "" for none."""
    found = await store.select(Setting, {"scope": f"session:{session}", "key": _KEY}, limit=1)
    return str(found[0].value.get("channel") or "") if found else ""


async def _hold(store: Store, session: str, place: str) -> None:
    """News for this conversation, which carry no channel, are told by whoever answers there."""
    if await _held_in(store, session) != place:
        scope = f"session:{session}"
        id = derived("setting", scope, _KEY)
        await store.upsert([Setting(id=id, scope=scope, key=_KEY, value={"channel": place})])
