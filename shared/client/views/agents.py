"""The agents that are known: who is here, who is not, and taking one off the roster."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass
from typing import Any

from shared.client.client import Client
from shared.client.local import supervision
from shared.client.types import Card
from shared.client.views import pending
from shared.conversation import prompt
from shared.errors import BusUnreachable, PromptDockError, UsageError
from shared.profiles import profile as profiles
from shared.profiles.overrides import over
from shared.store.records import ProfileRow, Repo, project_key
from shared.tools.agents import own as changes
from shared.turns.queue import Queue


@dataclass(frozen=True)
class Known:
    """One agent as it stands."""

    name: str
    state: str  # idle, working, draining, offline, cannot start
    kind: str  # builtin, own (a folder), row, bridge, foreign
    workers: int
    waiting: int
    about: str
    why: str = ""

    def card(self) -> dict[str, Any]:
        """As it is printed for programs."""
        return asdict(self)


async def known(client: Client) -> list[Known]:
    """All of them by name, also those of one's own that have not run yet."""
    await client.reach()
    home, cards = client.settings.home, await client.presence.here()
    found = supervision.running(home)
    failed = dict(found.failed) if found else {}
    own = supervision.own(home)
    names = sorted({*await client.presence.agents(), *supervision.AGENTS, *own})
    told = []
    for name in names:
        mine = [card for card in cards if card.get("agent") == name]
        states = [str(card.get("status") or "idle") for card in mine]
        state = next((one for one in ("working", "waiting") if one in states), (*states, "offline")[0])
        if not mine and name in failed:
            state = "cannot start"
        elif not mine and await client.bus.listeners(client.names.agent(name)):
            state = "unannounced"
        about = next((str(card.get("about") or "") for card in mine), "")
        kind = _kind(name, own, mine)
        waiting = (await client.presence.left(name)).get("inbox", 0)
        told.append(Known(name, state, kind, len(mine), waiting, about, failed.get(name, "")))
    return told


def _kind(name: str, own: list[str], cards: list[dict[str, Any]]) -> str:
    if name in own:
        return "own"
    if name in supervision.AGENTS:
        return "builtin"
    if any(card.get("row") for card in cards):
        return "row"
    return "bridge" if any(card.get("kind") == "bridge" for card in cards) else "foreign"


async def forget(client: Client, name: str, force: bool) -> int:
    """Take an agent that is not here off the roster; how many messages went with it, which `force` allows.

    UsageError where there is none of that name, where it is here, or where something lies in its queue.
    """
    await client.reach()
    if name in supervision.AGENTS:
        raise UsageError(
            f"{name} belongs to every cluster", "others ask for it", f"promptdock up -d --without {name}"
        )
    if name in supervision.own(client.settings.home):
        folder = client.settings.home / "agents" / name
        raise UsageError(f"{name} would come back", f"it lies in {folder}", "remove that folder")
    if name not in await client.presence.agents():
        raise UsageError(f"there is no agent {name!r} to forget", "", "promptdock agents list")
    if await client.presence.here(name):
        raise UsageError(f"{name} is here", "its next heartbeat would bring it back", "end it first")
    left = await client.presence.left(name)
    if left and not force:
        words = {
            "inbox": "messages wait",
            "dead": "dead letters lie",
            "archive": "records lie",
            "out": "outputs lie",
        }
        told = ", ".join(f"{count} {words[stream]}" for stream, count in left.items())
        raise UsageError(
            f"{name} is not forgotten",
            f"{told} in its queue",
            f"start it again, or let them go too: promptdock agents forget {name} --force",
        )
    queue = Queue(client.bus, client.names, name, lease_ms=client.settings.lease_ms)
    for row in await pending.pending(client):
        if row["agent"] == name:
            await queue.withdraw(row["session"])
    for stream in left:
        await client.bus.command("DEL", queue.keys.named(stream))
    await client.presence.forget(name)
    return sum(left.values())


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
        rows = await store.select(ProfileRow, {"slug": changes.slug(name)}, limit=1)
        repos = await store.select(Repo, {"project_id": project_key(project)}, order=[("name", "asc")])
    except PromptDockError:
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


async def profiles_kept(client: Client) -> list[Card]:
    """The profiles that are rows, by name; what agents changed of themselves is none. Reads the Store."""
    rows = await (await client.store()).select(ProfileRow, order=[("slug", "asc")])
    return [
        {"id": row.slug, "name": row.name, "model": row.model, "permission_mode": row.permission_profile}
        for row in rows
        if not row.slug.startswith(changes.PREFIX)
    ]
