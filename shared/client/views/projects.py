"""Projects as people see them, from the Store: which there are, what is in one, and which a conversation works on."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

from shared.bus.messages import default_session
from shared.client import elsewhere
from shared.client.client import Client
from shared.client.types import Card
from shared.conversation import sessions
from shared.errors import Missing, PromptDockError, UsageError
from shared.store.records import Project, Repo, Task, Workspace
from shared.tasks import fate


async def active(client: Client, user: str, session: str | None = None) -> str:
    """The project that a conversation works on; without one, the person's own."""
    return await sessions.active_project(await client.store(), session or default_session(user))


async def listing(client: Client) -> list[Card]:
    """All projects by name; `default` is one of them before its first use."""
    store = await client.store()
    rows = await store.select(Project, order=[("slug", "asc")])
    if all(row.slug != sessions.DEFAULT for row in rows):
        rows.insert(0, Project(slug=sessions.DEFAULT, name="Default"))
    repos = Counter(row.project_id for row in await store.select(Repo))
    tasks = Counter(row.project_id for row in await store.select(Task, {"status": ("ne", "COMPLETED")}))
    return [_card(row) | {"repositories": repos[row.id], "open_tasks": tasks[row.id]} for row in rows]


async def card(client: Client, slug: str) -> Card:
    """One project, with what is in it; UsageError that names the others where there is none of that id."""
    store = await client.store()
    rows = await store.select(Project, order=[("slug", "asc")])
    found = next((row for row in rows if row.slug == slug), None)
    if found is None and slug == sessions.DEFAULT:
        found = Project(slug=slug, name="Default")
    if found is None:
        error = Missing.named("project", slug, [row.slug for row in rows])
        raise UsageError(error.what, error.why, error.fix)
    repos = await store.select(Repo, {"project_id": found.id}, order=[("name", "asc")])
    spaces = await store.select(Workspace, {"project_id": found.id}, order=[("name", "asc")])
    tasks = Counter(row.status for row in await store.select(Task, {"project_id": found.id}))
    return _card(found) | {
        "repositories": [
            {
                "name": repo.name,
                "kind": repo.kind,
                "place": repo.url or repo.path,
                "default_branch": repo.default_branch,
            }
            for repo in repos
        ],
        "workspaces": [{"name": space.name, "path": space.path} for space in spaces],
        "tasks": dict(sorted(tasks.items())),
        "unmerged": [task.slug for task in await fate.unmerged(store, found.id)],
    }


def _card(row: Project) -> Card:
    return {
        "id": row.slug,
        "name": row.name,
        "status": row.status,
        "description": row.description,
        "weight": row.credit_weight,
        "at_once": row.max_concurrent_agents,
        "budget": row.budget,
        "default_branch": row.default_branch,
    }


async def unregistered(client: Client, folder: Path) -> str:
    """The git repository in which a person stands and that agents do not know; "" for none that could be added."""
    from shared.guard.files import roots

    top = await asyncio.to_thread(elsewhere.repository, folder)
    if top is None:
        return ""
    home = client.settings.home
    if await asyncio.to_thread(lambda: roots.ours(top) or bool(roots.forbidden(top, home))):
        return ""
    try:
        known = await (await client.store()).select(Repo, {"path": str(top)}, limit=1)
    except PromptDockError:
        return ""  # what cannot be looked up is not offered
    return "" if known else str(top)
