"""Profiles that are rows, and the prompt that stands before all of them, as they are now."""

from __future__ import annotations

from shared.profiles.profile import Profile
from shared.store.base import Store
from shared.store.origin import Origin, mark
from shared.store.records import ProfileRow, Setting
from shared.store.sections import SHIPPED, Section
from shared.tools.agents import shape
from shared.tools.agents.prompt import GLOBAL, SCOPE

# What every agent that is a row can load: how it changes itself.
_OWN = ["self_edit_system_prompt", "self_edit_docs", "self_edit_permissions", "self_edit_model"]


def of_row(row: ProfileRow, name: str = "") -> Profile:
    """The profile in this row, as that of the agent `name`; ToolError where it cannot be used."""
    limits, demand = shape.limits_of(row), shape.on_demand(row)
    docs = [Section(name="context", title="Docs", text=row.docs)] if row.docs.strip() else []
    return Profile(
        name=name or row.slug,
        title=row.name,
        description=row.description,
        kind=row.kind,
        row=row.slug,
        lead=SHIPPED,
        chosen_model=row.model,
        max_tokens=row.max_tokens or 4096,
        temperature=row.temperature,
        tools=[
            tool for tool in shape.tools_of(row) if not tool.startswith("mcp__")
        ],  # a server's come with it
        categories=row.categories,
        on_demand=demand,
        loadable=_OWN if demand else [],
        permissions=shape.policies_of(row),
        rounds=limits.rounds,
        turns=limits.turns,
        task_minutes=limits.task_minutes,
        budget=row.budget,
        mcp_servers=dict(row.mcp_servers) or None,
        sections=(*shape.sections_of(row.sections), *docs),
        foreign=mark(row),
    )


async def led(store: Store, profile: Profile) -> Profile:
    """The profile with the words that people set before every one, and with the mark that is on them."""
    found = await store.select(Setting, {"scope": SCOPE, "key": GLOBAL}, limit=1)
    if not found:
        return profile
    value = found[0].value
    foreign = profile.foreign or Origin.of(value.get("origin")).foreign
    return profile.model_copy(update={"lead": str(value.get("text") or ""), "foreign": foreign})
