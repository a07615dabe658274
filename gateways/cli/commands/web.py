"""`web`: where the page is, and the people who may sign in at it."""

from __future__ import annotations

import getpass
import sys
from typing import Annotated, NoReturn

import typer

from gateways.cli import screen
from gateways.cli.options import Json, group
from gateways.cli.run import run
from shared.client.local import web_address
from shared.client.local.people import OWNER, People
from shared.errors import Unreachable, UsageError
from shared.settings import Settings

app = group()
user = group()
app.add_typer(user, name="user", help="Who may sign in at the page.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="As they sign in.")]


@app.command("show")
def show(as_json: Json = False) -> NoReturn:
    """The address of the page that runs here."""
    run(lambda settings: _show(settings, as_json))


@user.command("list")
def list_(as_json: Json = False) -> NoReturn:
    """Who may sign in, with their roles and projects."""
    run(lambda settings: _list(settings, as_json))


@user.command("add")
def add(
    name: Name,
    role: Annotated[
        list[str] | None,
        typer.Option(
            "--role", metavar="ROLE", help=f"`{OWNER}` sees everything; others as APPROVER_ROLES has them."
        ),
    ] = None,
    project: Annotated[
        list[str] | None, typer.Option("--project", metavar="ID", help="A project whose work they see.")
    ] = None,
) -> NoReturn:
    """Let somebody sign in; asks for their password (hidden)."""
    run(lambda settings: _add(settings, name, role or [], project or []))


@user.command("password")
def password(name: Name) -> NoReturn:
    """Give somebody another password; it signs them out everywhere."""
    run(lambda settings: _password(settings, name))


@user.command("token")
def token(name: Name) -> NoReturn:
    """Make a token for somebody's programs; it is printed once."""
    run(lambda settings: _token(settings, name))


@user.command("remove")
def remove(name: Name) -> NoReturn:
    """Let somebody sign in no more; they are out at once."""
    run(lambda settings: _remove(settings, name))


async def _show(settings: Settings, as_json: bool) -> None:
    url = web_address.found(settings.home)
    if not url:
        raise Unreachable("no page runs here", f"in {settings.home}", "start it with: promptdock up")
    if as_json:
        screen.document("web", url=url)
    else:
        screen.out(url)


async def _list(settings: Settings, as_json: bool) -> None:
    people = People(settings.home).all()
    if as_json:
        rows = [{"name": one.name, "roles": one.roles, "projects": one.projects} for one in people]
        screen.document("people", people=rows)
        return
    table = [(one.name, " ".join(one.roles), " ".join(one.projects)) for one in people]
    screen.table(
        table, ("name", "roles", "projects"), "Nobody signs in: whoever is on this machine is the owner."
    )


async def _add(settings: Settings, name: str, roles: list[str], projects: list[str]) -> None:
    people = People(settings.home)
    if people.find(name):
        raise UsageError(f"{name} is there already", "", f"promptdock web user password {name}")
    first = not people.all()
    people.add(name, _asked(), tuple(roles), tuple(projects))
    screen.talk(f"{name} can sign in now.")
    if first and settings.web_token is None:
        screen.talk("From now on the page asks everybody to sign in, on this machine too.")
    if OWNER not in roles and not any(OWNER in one.roles for one in people.all()):
        screen.talk(f"Nobody is the owner yet: promptdock web user add NAME --role {OWNER}")


async def _password(settings: Settings, name: str) -> None:
    people = People(settings.home)
    people.there(name)
    people.change(name, _asked())
    screen.talk(f"{name} has another password, and has to sign in again everywhere; tokens ended too.")


async def _token(settings: Settings, name: str) -> None:
    made = People(settings.home).token(name)
    screen.talk(f"A token of {name}, for Authorization: Bearer. It is not shown again:")
    screen.out(made)


async def _remove(settings: Settings, name: str) -> None:
    people = People(settings.home)
    people.remove(name)
    screen.talk(f"{name} cannot sign in any more.")
    if not people.all() and settings.web_token is None:
        screen.talk("Nobody is left: whoever is on this machine is the owner again.")


def _asked() -> str:
    """A password, typed twice on a terminal, else one line."""
    with screen.asking():
        if not sys.stdin.isatty():
            return sys.stdin.readline().rstrip("\n")
        first = getpass.getpass("Password (hidden): ")
        if getpass.getpass("Once more: ") != first:
            raise UsageError("the two are not the same", "", "type it again")
        return first
