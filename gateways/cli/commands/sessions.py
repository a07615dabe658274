"""`sessions`: what of a conversation is gone on from: clear it, save it, take up what was saved."""

from __future__ import annotations

from typing import Annotated, Any, NoReturn

import typer

from gateways.cli import screen
from gateways.cli.calling import call
from gateways.cli.options import Json, Session, User, group
from gateways.cli.run import run
from shared.bus.messages import default_session
from shared.settings import Settings

app = group()


@app.command("list")
def list_(
    user: User,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=200, help="At most so many.")] = 20,
    as_json: Json = False,
) -> NoReturn:
    """What was saved of your conversations, the newest first."""
    run(lambda settings: _list(settings, user, limit, as_json))


@app.command("save")
def save(
    user: User,
    description: Annotated[
        list[str] | None, typer.Argument(metavar="[DESCRIPTION]...", help="What it is about.")
    ] = None,
    session: Session = None,
    as_json: Json = False,
) -> NoReturn:
    """Save a conversation as it is, with a summary; it goes on."""
    arguments = {"description": " ".join(description or [])}
    run(lambda settings: _change(settings, "save_context", arguments, user, session, as_json))


@app.command("clear")
def clear(user: User, session: Session = None, as_json: Json = False) -> NoReturn:
    """Begin a conversation anew; what was said stays in its history."""
    run(lambda settings: _change(settings, "clear_context", {}, user, session, as_json))


@app.command("restore")
def restore(
    id: Annotated[str, typer.Argument(metavar="ID", help="Of what was saved, or its first letters.")],
    user: User,
    session: Session = None,
    as_json: Json = False,
) -> NoReturn:
    """Go on where a conversation was when it was saved."""
    run(lambda settings: _change(settings, "restore_context", {"id": id}, user, session, as_json))


async def _list(settings: Settings, user: str, limit: int, as_json: bool) -> None:
    found = (await call(settings, "list_saved", user, {"limit": limit}, exact=True))["saved"]
    if as_json:
        screen.document("saved_sessions", saved=found)
        return
    rows = [
        (one["id"], one["description"], str(one["messages"]), screen.moment(one["at"]), one["session_id"])
        for one in found
    ]
    empty = "Nothing is saved: promptdock sessions save DESCRIPTION"
    screen.table(rows, ("id", "about", "messages", "saved", "conversation"), empty)


async def _change(
    settings: Settings, tool: str, arguments: dict[str, Any], user: str, session: str | None, as_json: bool
) -> None:
    meant = session or default_session(user)
    result = await call(settings, tool, user, arguments, session=meant, exact=True)
    if as_json:
        screen.document(tool, session_id=meant, **result)
        return
    screen.out(str(result["told"]))
