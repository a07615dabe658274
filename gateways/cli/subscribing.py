"""The commands of `webhook` and `notify`: both are subscriptions, which differ in how they are sent."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from gateways.cli import screen
from gateways.cli.calling import call
from gateways.cli.options import Json, Project, User, Yes, group
from gateways.cli.run import run
from shared.errors import PromptDockError, UsageError

if TYPE_CHECKING:
    from shared.client.views.notifications import SubscriptionOrder, SubscriptionView, Transport
    from shared.client.views.visible import Sight
    from shared.settings import Settings

_COMMANDS = {"webhook": "promptdock webhook", "push": "promptdock notify"}

Url = Annotated[
    str | None, typer.Argument(metavar="URL", help="Where it is sent to; asked for where it is left out.")
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="Its name, as the list shows it.")]
Events = Annotated[
    str,
    typer.Option(
        "--events",
        help="Which, with commas: attention (what needs a person), task, turn, all, or single ones.",
    ),
]
Everything = Annotated[bool, typer.Option("--everybody", help="What everybody does, not only you.")]
Called = Annotated[str, typer.Option("--name", help="What it is called; after its host by default.")]


def commands(transport: Transport, usual: str, adds: str, tests: str) -> typer.Typer:
    """Those of one noun; `usual` are the events where none are named, the other two lines of the help."""
    app = group()

    @app.command("add", help=adds)
    def add(
        url: Url = None,
        *,
        user: User,
        events: Events = usual,
        name: Called = "",
        project: Project = None,
        everybody: Everything = False,
        as_json: Json = False,
    ) -> NoReturn:
        run(
            lambda settings: _add(
                settings, transport, url, events, user, name, project or "", everybody, as_json
            )
        )

    @app.command("list")
    def list_(user: User, as_json: Json = False) -> NoReturn:
        """Who is told, whether it arrives, what waits and what was given up."""
        run(lambda settings: _listed(settings, transport, user, as_json))

    @app.command("test", help=tests)
    def test(name: Name, user: User, as_json: Json = False) -> NoReturn:
        run(lambda settings: _test(settings, transport, name, user, as_json))

    @app.command("retry")
    def retry(name: Name, user: User, as_json: Json = False) -> NoReturn:
        """Send what waits and what was given up now, and go on with one that was switched off."""
        run(lambda settings: _retry(settings, transport, name, user, as_json))

    @app.command("remove")
    def remove(name: Name, user: User, yes: Yes = False, as_json: Json = False) -> NoReturn:
        """Tell it no more; what is on its way is dropped."""
        run(lambda settings: _remove(settings, transport, name, yes, user, as_json))

    return app


def _sight(user: str) -> Sight:
    """Who types here has the cluster's secret: they see all."""
    from shared.client.views.visible import Sight

    return Sight(user, everything=True)


async def _do(settings: Settings, order: SubscriptionOrder, user: str) -> dict[str, Any]:
    return await call(settings, order.tool, user, order.arguments, exact=True)


async def _add(
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


async def _listed(settings: Settings, transport: Transport, user: str, as_json: bool) -> None:
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


async def _test(settings: Settings, transport: Transport, name: str, user: str, as_json: bool) -> None:
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


async def _retry(settings: Settings, transport: Transport, name: str, user: str, as_json: bool) -> None:
    """Try again what could not be delivered."""
    result = await _changed(settings, transport, name, "retry", user)
    if as_json:
        screen.document("subscription_retried", **result)
        return
    screen.out(f"{name}: {result['dead'] + result['waiting']} on their way")


async def _remove(
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
