"""Names as people type them, a part being enough: which task, project, repository, hook, session or agent is meant."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Literal

from shared.client.client import Client
from shared.client.text.matching import pick
from shared.errors import StoreUnavailable
from shared.store.records import Approval, Hook, Project, Repo, Row, Session, Task

_ANEW = "default"  # the project that is made when it is first used


async def task(client: Client, typed: str) -> str:
    """The id of a task; UsageError where none or several may be meant, here and below."""
    return await _pick(client, typed, Task, "slug", "task", "promptdock tasks list shows them")


async def project(client: Client, typed: str) -> str:
    """The id of a project."""
    if typed == _ANEW:
        return typed
    return await _pick(client, typed, Project, "slug", "project", "promptdock project list shows them")


async def repo(client: Client, typed: str) -> str:
    """The name of a repository; a path or url is one already."""
    if "/" in typed or typed in (".", "..", "~"):
        return _whole(typed)
    return await _pick(client, typed, Repo, "name", "repository", "promptdock repo list shows them")


def _whole(place: str) -> str:
    """A folder here as it is called everywhere; a url as it is."""
    folder = Path(place).expanduser()
    return str(folder.resolve()) if folder.is_dir() else place


async def hook(client: Client, typed: str) -> str:
    """The id of a hook."""
    return await _pick(client, typed, Hook, "slug", "hook", "promptdock hooks list shows them")


async def session(client: Client, typed: str) -> str:
    """The key of a conversation that there is."""
    return await _pick(client, typed, Session, "key", "conversation", "")


async def approval(client: Client, typed: str) -> str:
    """The id of a request for permission."""
    return await _pick(
        client, typed, Approval, "approval_id", "request", "promptdock approvals list --all shows them"
    )


async def agent(client: Client, typed: str) -> str:
    """The name of an agent that is or was here."""
    return pick(typed, await client.presence.agents(), "agent", "promptdock status shows them")


_FIELDS: dict[str, Callable[[Client, str], Awaitable[str]]] = {
    "task_id": task,
    "project_id": project,
    "repo_id": repo,
    "hook_id": hook,
}


async def meant(client: Client, arguments: dict[str, Any]) -> dict[str, Any]:
    """Arguments of a tool with whole names; as they were typed where no Store can be read from here."""
    whole = dict(arguments)
    for field, find in _FIELDS.items():
        if isinstance(typed := whole.get(field), str):
            try:
                whole[field] = await find(client, typed)
            except StoreUnavailable:
                break
    return whole


async def listed(client: Client, kind: Literal["project", "hook"]) -> list[tuple[str, str]]:
    """All names of a kind, each with what tells it apart."""
    store = await client.store()
    if kind == "project":
        return [(row.slug, row.name) for row in await store.select(Project)]
    return [(row.slug, row.name) for row in await store.select(Hook)]


async def _pick(client: Client, typed: str, kind: type[Row], field: str, word: str, fix: str) -> str:
    store = await client.store()
    if await store.select(kind, {field: typed}, limit=1):
        return typed
    return pick(typed, (str(getattr(row, field)) for row in await store.select(kind)), word, fix)
