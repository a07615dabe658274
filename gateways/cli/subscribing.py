"""What `webhook` and `notify` share: both are subscriptions, which differ in how they are sent."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from gateways.cli import screen
from gateways.cli.calling import call
from shared.errors import PromptDockError, UsageError

if TYPE_CHECKING:
    from shared.client.views.notifications import SubscriptionOrder, SubscriptionView, Transport
    from shared.client.views.visible import Sight
    from shared.settings import Settings

_COMMANDS = {"webhook": "promptdock webhook", "push": "promptdock notify"}


def _sight(user: str) -> Sight:
    """Who types here has the cluster's secret: they see all."""
    from shared.client.views.visible import Sight

    return Sight(user, everything=True)


async def _do(settings: Settings, order: SubscriptionOrder, user: str) -> dict[str, Any]:
    return await call(settings, order.tool, user, order.arguments, exact=True)


async def add(
    settings: Settings,
    transport: Transport,
    url: str | None,
    events: str,
    user: str,
    name: str,
    project: str,
    everybody: bool,
    as_json: bool,
) -> None:
    """Add one; the address may come on standard input, so that it stands in no history of a shell."""
    from shared.client import Client
    from shared.client.views import notifications

    address = url or _asked(transport)
    words = [word.strip() for word in events.split(",") if word.strip()]
    async with Client(settings) as client:
        order = await notifications.adding(
            client, _sight(user), transport, address, words, name=name, project=project, everything=everybody
        )
    result = await _do(settings, order, user)
    secret = {"secret": order.secret} if order.secret else {}
    if as_json:
        screen.document("subscription_added", **result, **secret)
        return
    screen.out(f"{result['added']} is told of {', '.join(result['events'])}")
    if order.secret:
        screen.out(f"secret {order.secret}")
        screen.talk("the receiver checks signatures with it; it is shown this once")
    screen.talk(f"try it: {_COMMANDS[transport]} test {result['added']}")


def _asked(transport: Transport) -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().strip()
    from getpass import getpass

    told = "The address (it is not shown): " if transport == "push" else "The address: "
    try:
        return (getpass(told) if transport == "push" else input(told)).strip()
    except EOFError:
        raise UsageError("no address was given", "", f"{_COMMANDS[transport]} add URL") from None


async def listed(settings: Settings, transport: Transport, user: str, as_json: bool) -> None:
    """All of this kind."""
    from shared.client import Client
    from shared.client.views import notifications

    async with Client(settings) as client:
        found = await notifications.subscriptions(client, _sight(user), transport)
    if as_json:
        screen.document("subscriptions", subscriptions=[asdict(one) for one in found])
        return
    rows = [(one.name, one.to, one.about, _brief(one), screen.state(one.state), _news(one)) for one in found]
    told = _COMMANDS[transport]
    screen.table(rows, ("name", "to", "about", "events", "", "news"), f"Nobody is told; add: {told} add URL")


def _brief(one: SubscriptionView) -> str:
    from shared.client.views.notifications import brief

    return brief(one.events)


def _news(one: SubscriptionView) -> str:
    parts = [one.error] if one.error else []
    parts += [f"since {screen.moment(one.failing_since.isoformat())}"] if one.failing_since else []
    parts += [f"{one.waiting} wait"] if one.waiting else []
    parts += [f"{one.dead} given up"] if one.dead else []
    if not parts and one.delivered:
        parts = [f"last told {screen.moment(one.delivered.isoformat())}"]
    return ", ".join(parts)


async def test(settings: Settings, transport: Transport, name: str, user: str, as_json: bool) -> None:
    """Send one, and wait for what becomes of it."""
    from shared.client import Client
    from shared.client.views import notifications

    async with Client(settings) as client:
        order = await notifications.changing(client, _sight(user), name, "test", transport)
    result = await _do(settings, order, user)
    async with Client(settings) as client:
        how = await notifications.tried(client, str(result["delivery"]))
    if as_json:
        screen.document("subscription_tested", name=name, **asdict(how))
    if how.state == "delivered":
        if not as_json:
            screen.out(f"{name} took it" + (f" ({how.status})" if how.status else ""))
        return
    if how.state == "pending":
        raise PromptDockError(f"{name} has not been told yet", "no Chatter may be here", "promptdock status")
    raise PromptDockError(f"{name} did not take it", how.error, f"{_COMMANDS[transport]} list")


async def retry(settings: Settings, transport: Transport, name: str, user: str, as_json: bool) -> None:
    """Try again what could not be delivered."""
    result = await _changed(settings, transport, name, "retry", user)
    if as_json:
        screen.document("subscription_retried", **result)
        return
    screen.out(f"{name}: {result['dead'] + result['waiting']} on their way")


async def remove(
    settings: Settings, transport: Transport, name: str, yes: bool, user: str, as_json: bool
) -> None:
    """Remove one."""
    screen.sure(f"{name} is told nothing any more", yes, f"{_COMMANDS[transport]} remove {name}")
    result = await _changed(settings, transport, name, "remove", user)
    if as_json:
        screen.document("subscription_removed", **result)
        return
    screen.out(f"{name} is removed")


async def _changed(
    settings: Settings, transport: Transport, name: str, does: str, user: str
) -> dict[str, Any]:
    from shared.client import Client
    from shared.client.views import notifications

    async with Client(settings) as client:
        order = await notifications.changing(client, _sight(user), name, does, transport)
    return await _do(settings, order, user)
