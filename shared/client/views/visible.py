"""Who sees what: the owner everything, others what is theirs and what is shared with their projects."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from shared import people
from shared.bus.keys import CHATTER
from shared.bus.messages import default_session
from shared.client.client import Client
from shared.client.views.tasks import tasks
from shared.errors import BusUnreachable, Denied, Missing, StoreUnavailable, UsageError
from shared.store.records import Project, Session, Task, TurnRow, project_key


@dataclass(frozen=True)
class Sight:
    """How far somebody sees. `projects` are slugs."""

    user_id: str
    projects: frozenset[str] = frozenset()
    everything: bool = False

    def sees(self, whose: str | None) -> bool:
        """Whether what belongs to that person is theirs to see."""
        return self.everything or people.sees(self.user_id, whose)

    @property
    def project_ids(self) -> frozenset[UUID]:
        """The rows of their projects."""
        return frozenset(map(project_key, self.projects))


async def session(client: Client, sight: Sight, name: str) -> None:
    """Missing where there is such a session, but not for them: they are not told that there is one.

    One that nobody has used yet is whose first message comes.
    """
    if sight.everything or name == default_session(sight.user_id):
        return
    who, shared = await _owner(client, name)
    row = await _row(client, name)
    if people.sees(sight.user_id, who) or (
        not who and row is not None and people.sees(sight.user_id, row.user_id)
    ):
        return
    if not who and row is None and not await _used(client, name):
        return
    if shared and row is not None and in_projects(sight, row.project_id or row.active_project):
        return
    raise hidden("session", name)


def in_projects(sight: Sight, project: UUID | None) -> bool:
    """Whether this is a project of theirs."""
    return sight.everything or project in sight.project_ids


async def project(client: Client, sight: Sight, slug: str) -> Project:
    """The row of a project that they see; Missing for all others."""
    rows = await (await client.store()).select(Project, {"slug": slug}, limit=1)
    if not rows or not in_projects(sight, rows[0].id):
        raise hidden("project", slug)
    return rows[0]


async def task(client: Client, sight: Sight, name: str) -> Task:
    """The row of a task that they see, by its id or a part of it; Missing for all others."""
    try:
        row = await tasks.find(client, name)
    except UsageError:
        raise hidden("task", name) from None
    if not people.sees(sight.user_id, row.user_id) and not in_projects(sight, row.project_id):
        raise hidden("task", name)
    return row


def owner(sight: Sight, what: str) -> None:
    """Denied for whoever does not see everything."""
    if not sight.everything:
        raise Denied(f"{what} is for the owner", "it tells of other people's work", "ask whoever runs this")


def hidden(kind: str, name: str) -> Missing:
    """What is said of a thing that is not there, and of one that is somebody else's."""
    return Missing(f"there is no {kind} {name[:100]!r}", "", f"GET /api/{kind}s lists those that you can see")


async def _owner(client: Client, name: str) -> tuple[str, bool]:
    """To whom a session belongs on the bus, and whether it is shared; "" where nobody is known."""
    key = client.names.keys(CHATTER).owner(name)
    try:
        found = await client.bus.command("GET", key)
    except BusUnreachable:
        return "", False
    text = found.decode("utf-8", "replace") if found else ""
    who = text.removeprefix("*")
    # What somebody only says of themselves, without a signature, is the person's who only says so.
    person = who[2:] if who.startswith("s:") else people.CLAIM + who[2:]
    return (person if who else ""), text.startswith("*")


async def _used(client: Client, name: str) -> bool:
    """Whether something ran there, as where an agent answers another: that belongs to no conversation of theirs."""
    try:
        if await client.bus.command("EXISTS", client.names.stream(name)):
            return True
    except BusUnreachable:
        pass
    try:
        return await (await client.store()).count(TurnRow, {"session_id": name}) > 0
    except StoreUnavailable:
        return False


async def _row(client: Client, name: str) -> Session | None:
    try:
        rows = await (await client.store()).select(Session, {"key": name}, limit=1)
    except StoreUnavailable:
        return None
    return rows[0] if rows else None
