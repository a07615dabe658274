"""The prompt of an agent or a profile as its next turn sends it, for people to look at."""

from __future__ import annotations

from typing import Any

from shared.profiles.profile import Profile
from shared.store.sections import compose
from shared.worker.runners import profiles
from shared.worker.runners.agent import AgentRunner


async def of(agent_runner: AgentRunner, name: str) -> dict[str, Any]:
    """Its parts in order, those that are off too; what is sent; tools, model and permissions."""
    resources = agent_runner.resources
    _, found, base = await profiles.of_agent(resources.store, resources.settings.home, name)
    other = await agent_runner.working_as(found, base).equipped()
    view = other.view
    sent = f"{found.system}\n\n{view.index}" if view.index else found.system
    return {
        "agent_id": name,
        "profile_id": found.row or name,
        "kept": "row" if found.row else "folder",
        "parts": [*_parts(found), *([_part("tools", view.index)] if view.index else [])],
        "sent": sent,
        "characters": len(sent),
        "tools": [tool.name for tool in view.shown()],
        "model": other.model,
        "permissions": other.policy.name,
        "limits": {"rounds": found.rounds, "turns": found.turns, "budget": found.budget},
        "beside": "the agents on the roster, the repositories, and in the newest message the date and project",
        **({"made_after_reading": found.foreign} if found.foreign else {}),
    }


def _parts(found: Profile) -> list[dict[str, Any]]:
    parts = [_part("global", found.lead), _part("prompt", found.prompt)]
    for section in found.sections:
        text = compose([section.model_copy(update={"enabled": True})])
        parts.append(_part(section.title or section.name, text, section.enabled))
    return [part for part in parts if part["text"]]


def _part(name: str, text: str, enabled: bool = True) -> dict[str, Any]:
    return {"name": name, "text": text.strip(), "enabled": enabled}
