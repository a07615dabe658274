"""An agent as data: its model, its tools, what it may do, and the prompt that its model is sent."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from shared.client.client import Client
from shared.conversation import prompt
from shared.errors import BusUnreachable, PromptDockError, StoreUnavailable, UsageError
from shared.profiles import profile as profiles
from shared.profiles.overrides import over
from shared.store.records import ProfileRow, Repo, project_key
from shared.tools.agents import own


@dataclass(frozen=True)
class AgentProfile:
    """`sent` are the parts of the system prompt as the model is sent them; `changed` says that it changed itself."""

    name: str
    title: str
    description: str
    kind: str
    model: str
    permissions: str
    tools: tuple[str, ...]
    rounds: int | None
    max_tokens: int
    place: str
    changed: bool
    sent: tuple[str, ...]


async def profile(client: Client, name: str, project: str = "default") -> AgentProfile:
    """Of that agent; UsageError for one whose profile is nowhere here."""
    folder = await asyncio.to_thread(profiles.find, client.settings.home, name)
    if folder is None:
        raise UsageError(
            f"no profile of {name[:80]!r} is here",
            "it may be a program of its own on the bus",
            "promptdock status",
        )
    found, changed = await asyncio.to_thread(profiles.load, folder), False
    try:
        store = await client.store()
        rows = await store.select(ProfileRow, {"slug": own.slug(name)}, limit=1)
        repos = await store.select(Repo, {"project_id": project_key(project)}, order=[("name", "asc")])
    except (StoreUnavailable, PromptDockError):
        rows, repos = [], []
    if rows:
        found, changed = over(found, rows[0]), True
    try:
        roster = await client.presence.roster()
    except BusUnreachable:
        roster = {}
    there = "\n".join(f"- {repo.name} ({repo.kind})" for repo in repos)
    model = found.chosen_model or client.settings.model_for(name) or found.model or ""
    return AgentProfile(
        name=found.name,
        title=found.called,
        description=found.description,
        kind=found.kind,
        model=model,
        permissions=str(found.permissions.preset or "rules of its own"),
        tools=tuple(found.tools),
        rounds=found.rounds,
        max_tokens=found.max_tokens,
        place=str(folder),
        changed=changed,
        sent=prompt.compose(found.prompt, roster=roster, repositories=there),
    )
