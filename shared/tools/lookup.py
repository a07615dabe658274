"""The rows that tools are asked about, found by the names that people and models use, and changed safely."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TypeVar
from uuid import UUID

from shared.conversation.sessions import ACTIVE, DEFAULT
from shared.errors import Conflict, Missing, ToolError
from shared.store.base import Store
from shared.store.origin import Origin
from shared.store.records import (
    Agent,
    Hook,
    Note,
    ProfileRow,
    Project,
    ProjectProfile,
    Repo,
    Row,
    Setting,
    Task,
    TaskEvent,
    Workspace,
    derived,
    new_id,
)
from shared.store.row import Versioned
from shared.tasks.defaults import KINDS, Kinds, named
from shared.tools.context import Context

R = TypeVar("R", bound=Row)

__all__ = ["ACTIVE", "DEFAULT"]

SLUG = 64  # characters


def kebab(name: str, limit: int = SLUG) -> str:
    """A name as an id: its letters and digits in lower case with hyphens between; "" where it has none."""
    plain = unicodedata.normalize("NFKC", name).casefold()
    return re.sub(r"[\W_]+", "-", plain).strip("-")[:limit].strip("-")


def identity(here: Context, *kind: str) -> UUID:
    """The id of a row that this call makes: the same when the call is replayed after a crash."""
    return derived(*kind, here.step_id) if here.step_id else new_id()


async def change(store: Store, row: R, **changes: Any) -> R:
    """The row with these changes; Conflict where somebody else changed it since it was read."""
    where: dict[str, Any] = {"id": row.id}
    if isinstance(row, Versioned):
        where["version"] = row.version
        changes["version"] = row.version + 1
    found = await store.update(type(row), changes, where)
    if not found:
        raise Conflict("it was changed by somebody else meanwhile", "", "look at it again, then try again")
    return found[0]


def need_word(here: Context, task: Task) -> None:
    """ToolError where a task waits for a person's review or approval, and no person stands behind the call."""
    if task.status in ("AWAITING_APPROVAL", "AWAITING_PLAN_APPROVAL"):
        fix = f"ask the person to: promptdock tasks approve {task.slug}"
        here.need_word(f"the task {task.slug} waits for its person", fix)


async def removing(here: Context, told: dict[str, Any]) -> dict[str, Any]:
    """Journal what a call that removes something is about to say; what it said already before a crash.

    Run again, such a call may find nothing any more (Missing): the executor then says what is journaled here.
    """
    if here.intended is not None and "told" in here.intended:
        return dict(here.intended["told"])
    await here.intend({"told": told})
    return told


async def first(store: Store, kind: type[R], **where: Any) -> R | None:
    """The one row that matches, or None."""
    rows = await store.select(kind, where, limit=1)
    return rows[0] if rows else None


async def works_on(here: Context, agent: str) -> Kinds | None:
    """The kinds of repositories whose tasks an agent takes, none if it takes none; None: nobody knows it.

    What an agent is follows from its profile: of one that is a row, also while it is not here.
    """
    row = await first(here.store, Agent, name=agent, destroyed_at=None)
    if (
        row is not None
        and row.profile_id
        and (kept := await first(here.store, ProfileRow, id=row.profile_id))
    ):
        return KINDS if kept.kind == "coding" else frozenset()
    return KINDS if here.cluster is None else await here.cluster.works_on(agent)


async def project(store: Store, slug: str) -> Project:
    """The project of that id; `default` exists from its first use on."""
    if found := await first(store, Project, slug=slug):
        return found
    if slug != DEFAULT:
        raise Missing.named("project", slug, sorted((await projects(store)).values()))
    row = Project(slug=slug, name="Default")
    with suppress(Conflict):  # another process made it meanwhile
        await store.insert(row)
    return row


async def project_for(here: Context, project_id: str | None, repo_id: str | None = None) -> Project:
    """The project that a call means: the named one, that of the named repository, or the active one."""
    if repo_id and not project_id:
        owner = (await repo(here, repo_id)).project_id
        found = await first(here.store, Project, id=owner)
        if found:
            return found
    return await project(here.store, project_id or here.project_id)


async def projects(store: Store) -> dict[UUID, str]:
    """The id that people use of each project."""
    return {row.id: row.slug for row in await store.select(Project)}


def resting(row: Project) -> str:
    """Why what is made in a project does not begin; "" where it does."""
    if row.status == "ACTIVE":
        return ""
    how = f"promptdock project resume {row.slug}"
    return f"project {row.slug} is {row.status.lower()}: nothing of it begins until {how}"


def project_event(here: Context, row: Project, id: UUID, change: str, **detail: Any) -> TaskEvent:
    """That a project was changed: hooks of that project, and who listens, hear of it by this row."""
    result = {"project": row.slug, "name": row.name, **detail}
    actor = here.user_id or here.agent
    return TaskEvent(
        id=id, task_id=row.id, project_id=row.id, event=f"project_{change}", actor=actor, detail=result
    )


async def project_changed(here: Context, row: Project, change: str, **detail: Any) -> None:
    """Note what is about to be changed; a replay notes it once."""
    await here.store.upsert(
        [project_event(here, row, identity(here, "project-event", change), change, **detail)]
    )


async def repo(here: Context, repo_id: str, project_id: str | None = None) -> Repo:
    """A repository by its name, key, path or url: in the named project, else in the active one.

    One of another project is refused with how to go there; its key, which is nobody else's, leads to it.
    """
    owner = await project(here.store, project_id or here.project_id)
    known = await here.store.select(Repo, order=[("name", "asc")])
    found = named(known, repo_id)
    own = [row for row in found if row.project_id == owner.id]
    if len(own) == 1:
        return own[0]
    if own:
        names = ", ".join(row.name for row in own)
        raise ToolError(
            f"several repositories are meant by {repo_id[:200]!r}", f"they are: {names}", "name one"
        )
    if found and not project_id and _uuid(repo_id):
        return found[0]
    if found:
        raise await another(here.store, found, owner.slug)
    there = [row.name for row in known if row.project_id == owner.id]
    raise Missing.named("repository", repo_id, there, "Register one with add_repo")


async def another(store: Store, found: Sequence[Repo], owner: str) -> ToolError:
    """Why a repository of another project is not meant, and how to go there."""
    names = await projects(store)
    slugs = [names.get(row.project_id, "") for row in found]
    return ToolError(
        f"the repository {found[0].name!r} belongs to project {' and '.join(map(repr, slugs))}",
        f"this is about project {owner!r}",
        f"name project_id {slugs[0]!r} in the call, or go there with set_active_project "
        f"(a person: promptdock project use {slugs[0]})",
    )


async def workspace(here: Context, workspace_id: str, project_id: str | None = None) -> Workspace:
    """A workspace by its key or name, as a repository is found."""
    owner = await project(here.store, project_id or here.project_id)
    where: dict[str, Any] = {"id": key} if (key := _uuid(workspace_id)) else {"name": workspace_id}
    rows = await here.store.select(Workspace, where, limit=20)
    own = [row for row in rows if row.project_id == owner.id]
    if own or (rows and key and not project_id):
        return (own or rows)[0]
    if rows:
        slug = (await projects(here.store)).get(rows[0].project_id, "")
        raise ToolError(
            f"the workspace {rows[0].name!r} belongs to project {slug!r}",
            f"this is about project {owner.slug!r}",
            f"name project_id {slug!r} in the call, or go there with set_active_project",
        )
    there = await here.store.select(Workspace, {"project_id": owner.id}, order=[("name", "asc")])
    raise Missing.named("workspace", workspace_id, [row.name for row in there], "Make one with add_workspace")


async def task(store: Store, slug: str) -> Task:
    """The task of that id."""
    if found := await first(store, Task, slug=slug):
        return found
    raise Missing(f"there is no task called {slug!r}", "", "list_tasks shows them")


async def agent(store: Store, name: str) -> Agent:
    """The agent of that name, as it was registered."""
    if found := await first(store, Agent, name=name):
        return found
    raise Missing(f"no agent called {name!r} is registered", "", "list_agents shows them")


async def profile(store: Store, slug: str) -> ProfileRow:
    """The agent profile of that id."""
    if found := await first(store, ProfileRow, slug=slug):
        return found
    raise Missing(f"there is no profile called {slug!r}", "", "list_profiles shows them")


async def hook(store: Store, slug: str) -> Hook:
    """The hook of that id."""
    if found := await first(store, Hook, slug=slug):
        return found
    raise Missing(f"there is no hook called {slug!r}", "", "list_hooks shows them")


async def note(store: Store, owner: Project, title: str) -> Note | None:
    """The note of that title (or file name), or None; ToolError where the title has no letter or digit."""
    return await first(store, Note, project_id=owner.id, slug=note_slug(title))


def note_slug(title: str) -> str:
    """The name of a note's file without its ending."""
    slug = kebab(title.removesuffix(".md"), 100)
    if not slug:
        raise ToolError(f"{title[:100]!r} is no title for a note", "it has no letter or digit", "name it")
    return slug


async def keep_profile(
    store: Store, owner: Project, old: ProjectProfile | None, body: str, origin: Origin
) -> None:
    """Write what is understood of a project, over `old`, whose mark stays."""
    if old is not None:
        await change(store, old, body=body, origin=origin.over(old.origin).kept())
        return
    id = derived("project-profile", owner.slug)
    await store.insert(ProjectProfile(id=id, project_id=owner.id, body=body, origin=origin.kept()))


def one_line(text: object) -> str:
    """A title as it stands in lists, in a commit's subject and in the action that rules are tried on."""
    return " ".join(str(text).split())


def session_scope(here: Context) -> str:
    """The scope of settings that belong to this conversation: of a person's own command, the one that they mean."""
    return f"session:{here.owner[1] or here.session_id}"


async def setting(store: Store, scope: str, key: str) -> dict[str, Any]:
    """The value of a setting that people change; {} for none."""
    found = await first(store, Setting, scope=scope, key=key)
    return found.value if found else {}


async def keep_setting(store: Store, scope: str, key: str, value: dict[str, Any]) -> None:
    """Keep a setting, whatever it was before."""
    row = Setting(id=derived("setting", scope, key), scope=scope, key=key, value=value)
    if found := await first(store, Setting, scope=scope, key=key):
        row = row.model_copy(
            update={"id": found.id, "created_at": found.created_at, "version": found.version + 1}
        )
    await store.upsert([row])


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
