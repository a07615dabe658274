"""The categories of tools, in the order in which they are shown; core is always there, the others on demand."""

from __future__ import annotations

from shared.tools.registry import Category, Registry

CORE = "core"
TIERS = {
    "git": "Branch, commit, push, PR, and merge operations",
    "project": "Project CRUD, workspace management",
    "agent": "Agent management, agent profiles",
    "hooks": "Direct hook management (low-level)",
    "memory": "Memory operations beyond search, notes, project profiles",
    "files": "Read, write, edit, search, and browse files in project workspaces",
    "system": "Token usage, config, diagnostics, task lifecycle ops, prompts",
}


def tier(name: str) -> Category:
    """A module's part of a category."""
    return Category(name, "Tasks, tools, memory search, and messages" if name == CORE else TIERS[name])


def tiers(registry: Registry) -> dict[str, str]:
    """All that can be loaded from this registry, with what it is for: ours, then those of other sources."""
    others = (one for one in registry.categories.values() if one.on_demand)
    return {**TIERS, **{one.name: one.description for one in others}}
