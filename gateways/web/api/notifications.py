"""Who is told outside: webhooks of programs, notifications of people. What an address keeps secret is never told."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import Field, StringConstraints

from gateways.web.access import Line, Person, Visitor
from gateways.web.api.fields import Body, Name, NamePart
from gateways.web.calls import call
from shared.client.client import Client
from shared.client.views import notifications as views
from shared.client.views.notifications import SubscriptionOrder, Transport

Address = Annotated[str, StringConstraints(min_length=1, max_length=2000)]
Events = Annotated[list[NamePart], Field(min_length=1, max_length=30)]


class NewWebhook(Body):
    """Where to, and of what; `everybody` is for the owner."""

    url: Address
    events: Events = Field(["attention", "task"])
    name: NamePart | None = None
    project: NamePart | None = None
    everybody: bool = False


class NewNotification(NewWebhook):
    """An address of apprise."""

    events: Events = Field(["attention"])


async def _do(client: Client, visitor: Person, order: SubscriptionOrder) -> dict[str, Any]:
    return await call(client, visitor, order.tool, order.arguments)


async def _add(client: Client, visitor: Person, transport: Transport, asked: NewWebhook) -> dict[str, Any]:
    order = await views.adding(
        client,
        visitor.sight,
        transport,
        asked.url,
        asked.events,
        name=asked.name or "",
        project=asked.project or "",
        everything=asked.everybody,
    )
    result = await _do(client, visitor, order)
    return {**result, "secret": order.secret} if order.secret else result


async def _change(
    client: Client, visitor: Person, name: str, does: str, transport: Transport
) -> dict[str, Any]:
    return await _do(client, visitor, await views.changing(client, visitor.sight, name, does, transport))


async def _test(client: Client, visitor: Person, name: str, transport: Transport) -> dict[str, Any]:
    result = await _change(client, visitor, name, "test", transport)
    return asdict(await views.tried(client, str(result["delivery"])))


async def _all(client: Client, visitor: Person, transport: Transport) -> list[dict[str, Any]]:
    return [asdict(row) for row in await views.subscriptions(client, visitor.sight, transport)]


webhooks = APIRouter(prefix="/api/webhooks", tags=["notifications"])
people = APIRouter(prefix="/api/notifications", tags=["notifications"])
router = APIRouter()


@webhooks.get("")
async def list_webhooks(client: Line, visitor: Visitor) -> dict[str, Any]:
    """Those of this person, or all for the owner: whether it arrives, what waits, what was given up."""
    return {"webhooks": await _all(client, visitor, "webhook")}


@webhooks.post("", status_code=201)
async def add_webhook(asked: NewWebhook, client: Line, visitor: Visitor) -> dict[str, Any]:
    """Tell a program of events. `secret` is told this once."""
    return await _add(client, visitor, "webhook", asked)


@webhooks.post("/{name}/test")
async def test_webhook(name: Name, client: Line, visitor: Visitor) -> dict[str, Any]:
    """Send one event now; how it went."""
    return await _test(client, visitor, name, "webhook")


@webhooks.post("/{name}/retry")
async def retry_webhook(name: Name, client: Line, visitor: Visitor) -> dict[str, Any]:
    """Send what waits and what was given up now."""
    return await _change(client, visitor, name, "retry", "webhook")


@webhooks.delete("/{name}")
async def remove_webhook(name: Name, client: Line, visitor: Visitor) -> dict[str, Any]:
    """Tell it no more."""
    return await _change(client, visitor, name, "remove", "webhook")


@people.get("")
async def list_notifications(client: Line, visitor: Visitor) -> dict[str, Any]:
    """Those of this person, or all for the owner."""
    return {"notifications": await _all(client, visitor, "push")}


@people.post("", status_code=201)
async def add_notification(asked: NewNotification, client: Line, visitor: Visitor) -> dict[str, Any]:
    """Tell a person of what needs them, by a service of apprise."""
    return await _add(client, visitor, "push", asked)


@people.post("/{name}/test")
async def test_notification(name: Name, client: Line, visitor: Visitor) -> dict[str, Any]:
    """Send one now; how it went."""
    return await _test(client, visitor, name, "push")


@people.post("/{name}/retry")
async def retry_notification(name: Name, client: Line, visitor: Visitor) -> dict[str, Any]:
    """Send what waits and what was given up now."""
    return await _change(client, visitor, name, "retry", "push")


@people.delete("/{name}")
async def remove_notification(name: Name, client: Line, visitor: Visitor) -> dict[str, Any]:
    """Tell them no more."""
    return await _change(client, visitor, name, "remove", "push")


router.include_router(webhooks)
router.include_router(people)
