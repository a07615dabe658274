"""Permission profiles by name: what they say of each tool, and what they would have said of what happened."""

from __future__ import annotations

import asyncio
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from shared.client.client import Client
from shared.client.types import Card
from shared.errors import ConfigurationError, StoreUnavailable, UsageError
from shared.guard.permissions.policy import Policy
from shared.guard.permissions.presets import Policies, Preset, preset
from shared.guard.sandbox.sandbox import Sandbox
from shared.store.records import Audit, ProfileRow

_SHIPPED = Path(__file__).parents[4] / "agents"


@dataclass(frozen=True)
class Named:
    """A profile of permissions and where it is written."""

    name: str
    source: str
    policy: Policy


async def listing(client: Client) -> list[Card]:
    """All that can be named: presets, agents, and profiles in the Store."""
    confined = await _confined(client)
    found = [Named(name, "preset", preset(name, confined)) for name in get_args(Preset)]
    for folder in _folders(client):
        found.append(_agent(folder, confined))
    for row in await _rows(client):
        found.append(_row(row, confined))
    return [{"name": one.name, "source": one.source, "policy": one.policy.name} for one in found]


async def named(client: Client, name: str) -> Named:
    """The profile of that name; UsageError for an unknown one."""
    confined = await _confined(client)
    if name in get_args(Preset):
        return Named(name, "preset", preset(name, confined))
    for folder in _folders(client):
        if folder.name == name:
            return _agent(folder, confined)
    for row in await _rows(client):
        if row.slug == name:
            return _row(row, confined)
    raise UsageError(f"there is no permission profile {name!r}", "", "promptdock permissions list")


def shown(found: Named) -> Card:
    """Its rules, and what it says of each tool that is called without anything special."""
    from shared.tools import catalog

    votes: dict[str, list[str]] = {"allow": [], "ask": [], "deny": []}
    for tool in catalog.registry():
        touched = tool.touched()
        hidden = found.policy.hides(tool.name, tool.category, touched)
        ruling = found.policy.decide(tool.name, tool.category, touched=touched)
        vote = "deny" if hidden else ruling.vote
        votes[vote].append(tool.name)
    rules = [
        {vote: [rule.text for rule in texts] for vote, texts in layer.rules.items()}
        for layer in found.policy.layers
    ]
    return {"name": found.name, "source": found.source, "rules": rules, "tools": votes}


async def simulate(client: Client, found: Named, limit: int = 1000) -> Card:
    """Replay the newest checks of the audit log under this profile: what it would have said, and where else."""
    from shared.client.views.permissions import replay
    from shared.tools import catalog

    store, registry = await client.store(), catalog.registry()
    rows = await store.select(Audit, order=[("created_at", "desc")], limit=limit)
    journal = await replay.journal(store, rows, registry)
    return await asyncio.to_thread(replay.replay, found.policy, rows, registry, journal)


async def _confined(client: Client) -> bool:
    """Whether commands here run without network: what `builder` allows depends on it."""
    return (await asyncio.to_thread(Sandbox.probe, client.settings.sandbox)).offline


def _folders(client: Client) -> list[Path]:
    found = {
        folder.name: folder
        for place in (_SHIPPED, client.settings.home / "agents")
        if place.is_dir()
        for folder in sorted(place.iterdir())
        if (folder / "profile.toml").is_file()
    }
    return list(found.values())


def _agent(folder: Path, confined: bool) -> Named:
    try:
        written = tomllib.loads((folder / "profile.toml").read_text("utf-8")).get("permissions", "locked")
        made = Policies.model_validate(written).make(folder.name, confined)
    except (OSError, ValueError, ValidationError) as error:
        raise ConfigurationError(
            f"the permissions of {folder.name} cannot be read",
            str(error),
            f"correct {folder / 'profile.toml'}",
        ) from None
    return Named(folder.name, "agent", made)


async def _rows(client: Client) -> list[ProfileRow]:
    try:
        return await (await client.store()).select(ProfileRow, order=[("slug", "asc")])
    except StoreUnavailable:
        return []


def _row(row: ProfileRow, confined: bool) -> Named:
    written: dict[str, Any] = {"preset": row.permission_profile or None, **row.permissions}
    try:
        return Named(row.slug, "profile", Policies.model_validate(written).make(row.slug, confined))
    except ValidationError as error:
        raise ConfigurationError(
            f"the permissions of the profile {row.slug} cannot be used", str(error)
        ) from None
