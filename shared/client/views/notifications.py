"""Who is told of what outside: subscriptions as people look at them, and the orders that change them.

Here it is checked where an address leads and what the person may hear of; the worker takes nobody else's word for it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from shared.client.client import Client
from shared.client.views.visible import Sight, hidden, owner
from shared.client.views.visible import project as visible_project
from shared.errors import ToolError, UsageError
from shared.guard.sandbox.addresses import Reach
from shared.notify import events, pace, page, push, webhook
from shared.notify.sealing import Seal
from shared.store.records import Delivery, Project, Subscription
from shared.store.records import Transport as Transport
from shared.store.row import new_id, now

WORDS: dict[Transport, str] = {"webhook": "webhook", "push": "notification"}
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,59}")
_LOOK = 0.2  # seconds between two looks whether a test has arrived


@dataclass(frozen=True)
class SubscriptionView:
    """One of them. `to` never holds what the address keeps secret."""

    name: str
    transport: Transport
    to: str
    user: str
    about: str  # whose events: a project's, everybody's, or those of its person
    events: tuple[str, ...]
    state: str  # on, failing, off
    waiting: int
    dead: int
    delivered: datetime | None
    failing_since: datetime | None
    error: str


@dataclass(frozen=True)
class TestOutcome:
    """How a test went; `state` is `pending` where nobody knows yet."""

    state: str
    status: int | None = None
    error: str = ""


@dataclass(frozen=True)
class SubscriptionOrder:
    """A call of a tool that a gateway may make for a person; `secret` is shown to them once."""

    tool: str
    arguments: dict[str, Any]
    secret: str = ""


async def subscriptions(
    client: Client, sight: Sight, transport: Transport | None = None
) -> list[SubscriptionView]:
    """Those that this person may see, by name. Reads the Store."""
    store = await client.store()
    where = {"transport": transport} if transport else {}
    rows = await store.select(Subscription, where, order=[("slug", "asc")])
    projects = events.project_of(await store.select(Project))
    found = []
    for row in rows:
        if row.user_id != sight.user_id and not sight.everything:
            continue
        counts = [
            await store.count(Delivery, {"subscription_id": row.id, "state": state})
            for state in ("pending", "dead")
        ]
        found.append(_view(row, projects, *counts))
    return found


async def one(
    client: Client, sight: Sight, name: str, transport: Transport | None = None
) -> SubscriptionView:
    """One of them, by its name; Missing for all others."""
    found = [row for row in await subscriptions(client, sight, transport) if row.name == name]
    if not found:
        raise hidden(WORDS.get(transport, "subscription") if transport else "subscription", name)
    return found[0]


def _view(row: Subscription, projects: dict[UUID, str], waiting: int, dead: int) -> SubscriptionView:
    about = projects.get(row.project_id, "a project that is gone") if row.project_id else row.user_id
    state = "failing" if row.failing_since else "on"
    return SubscriptionView(
        name=row.slug,
        transport=row.transport,
        to=row.shown,
        user=row.user_id,
        about="everybody" if row.everything else about,
        events=tuple(row.events),
        state=state if row.enabled else "off",
        waiting=waiting,
        dead=dead,
        delivered=row.delivered_at,
        failing_since=row.failing_since,
        error=row.error,
    )


async def adding(
    client: Client,
    sight: Sight,
    transport: Transport,
    address: str,
    wanted: Sequence[str],
    *,
    name: str = "",
    project: str = "",
    everything: bool = False,
) -> SubscriptionOrder:
    """The call that adds one; UsageError for an address to which nothing is sent, Denied or Missing for what is not
    theirs to hear of.
    """
    if everything:
        owner(sight, "what everybody does")
    row = await visible_project(client, sight, project) if project else None
    reach = Reach(hosts=client.settings.allowed_hosts)
    if transport == "push":
        push.installed()
        shown = push.check(address, reach)
        await push.need(address)
    else:
        shown = webhook.check(address, reach)
    if name and not _NAME.fullmatch(name):
        raise UsageError(
            f"nothing can be called {name[:60]!r}", "names are lower case letters, digits and -", "e.g. ci"
        )
    id, seal = new_id(), Seal(client.signer)
    name = name or await _free(client, transport, shown)
    said = {"name": name, "transport": transport, "shown": shown}
    order = seal.order(
        does="add",
        user_id=sight.user_id,
        id=str(id),
        address=seal.close(address),
        events=events.meant(wanted),
        project_id=str(row.id) if row else None,
        everything=everything,
        **said,
    )
    secret = seal.signing_secret(id) if transport == "webhook" else ""
    return SubscriptionOrder("add_subscription", {**said, "order": order}, secret)


async def _free(client: Client, transport: Transport, shown: str) -> str:
    """A name after where it leads, with a number where that is taken."""
    middle = shown.partition("://")[2].split("/")[0].split(":")[0] if transport == "webhook" else ""
    begun = (
        re.sub(r"[^a-z0-9]+", "-", (middle or shown.partition("://")[0]).lower()).strip("-")[:50] or "hook"
    )
    rows = await (await client.store()).select(Subscription)
    taken = {row.slug for row in rows}
    return next(name for n in range(1, 1000) if (name := begun if n == 1 else f"{begun}-{n}") not in taken)


async def changing(
    client: Client, sight: Sight, name: str, does: str, transport: Transport | None = None
) -> SubscriptionOrder:
    """The call that removes, tests or retries one; Missing for what is not theirs."""
    await one(client, sight, name, transport)
    order = Seal(client.signer).order(
        does=does,
        name=name,
        user_id=sight.user_id,
        everything=sight.everything,
        id=str(new_id()),
        page=page.address(client.settings),
    )
    return SubscriptionOrder("change_subscription", {"name": name, "does": does, "order": order})


async def tried(client: Client, delivery: str, patience: float = 60.0) -> TestOutcome:
    """How a test went, when that is known."""
    store = await client.store()
    end = now().timestamp() + patience
    while True:
        rows = await store.select(Delivery, {"id": UUID(delivery)}, limit=1)
        if not rows:
            raise ToolError("the test is not there any more", "it was removed", "")
        row = rows[0]
        if row.state != "pending" or now().timestamp() > end:
            return TestOutcome(row.state, row.status, row.error)
        await asyncio.sleep(_LOOK)


DAYS = pace.DAYS


def brief(names: Sequence[str]) -> str:
    """Events in few words: groups by their names where they are whole."""
    left = list(names)
    told = []
    for group, members in events.GROUPS.items():
        if set(members) <= set(names):
            told.append(group)
            left = [name for name in left if name not in members]
    return ", ".join([*told, *left])
