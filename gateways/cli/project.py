"""`project`: what repositories, tasks, notes and hooks belong to, and on which one a conversation works."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NoReturn

import typer

from gateways.cli import complete, screen
from gateways.cli.calling import call
from gateways.cli.options import Json, Session, User, group
from gateways.cli.run import run
from shared.settings import Settings
from shared.visitor import Visitor, named, projects

_CLONING = 600.0  # seconds that the first mirror of its repository may take

app = group()
Id = Annotated[
    str, typer.Argument(metavar="ID", help="Its id, or a part of it.", autocompletion=complete.projects)
]


@app.command("list")
def list_(user: User, session: Session = None, as_json: Json = False) -> NoReturn:
    """All projects; works with the cluster down."""
    run(lambda settings: _list(settings, user, session, as_json))


@app.command("show")
def show(
    user: User,
    project: Annotated[
        str | None,
        typer.Argument(metavar="ID", help="The active one by default.", autocompletion=complete.projects),
    ] = None,
    session: Session = None,
    as_json: Json = False,
) -> NoReturn:
    """One project, with what is in it; works with the cluster down."""
    run(lambda settings: _show(settings, project, user, session, as_json))


@app.command("use")
def use(project: Id, user: User, session: Session = None, as_json: Json = False) -> NoReturn:
    """Let a conversation work on a project: yours, or another one of yours."""
    run(lambda settings: _use(settings, project, user, session, as_json))


@app.command("create")
def create(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    user: User,
    repo: Annotated[str | None, typer.Option(metavar="PATH|URL", help="Its first repository.")] = None,
    branch: Annotated[str | None, typer.Option(help="The default branch of its repositories.")] = None,
    use_it: Annotated[bool, typer.Option("--use", help="Go on there at once.")] = False,
    session: Session = None,
    as_json: Json = False,
) -> NoReturn:
    """Make a project."""
    run(lambda settings: _create(settings, name, repo, branch, use_it, user, session, as_json))


async def _list(settings: Settings, user: str, session: str | None, as_json: bool) -> None:
    async with Visitor(settings) as visitor:
        found = await projects.listing(visitor)
        active = await projects.active(visitor, user, session)
    if as_json:
        screen.document("projects", active=active, projects=found)
        return
    rows = [
        (
            screen.strong(card["id"]) if card["id"] == active else card["id"],
            "active" if card["id"] == active else "",
            card["status"].lower(),
            card["repositories"],
            card["open_tasks"],
            card["name"],
        )
        for card in found
    ]
    screen.table(rows, ("id", "", "status", "repositories", "open tasks", "name"))


async def _show(settings: Settings, typed: str | None, user: str, session: str | None, as_json: bool) -> None:
    async with Visitor(settings) as visitor:
        active = await projects.active(visitor, user, session)
        card = await projects.card(visitor, await named.project(visitor, typed) if typed else active)
    if as_json:
        screen.document("project", **card, active=card["id"] == active)
        return
    budget = "none" if card["budget"] is None else f"${card['budget']:.2f}"
    screen.out(screen.strong(card["id"]), f"  {card['name']}  {card['status'].lower()}")
    screen.out(f"  default branch {card['default_branch']}, {card['at_once']} tasks at once, budget {budget}")
    for repo in card["repositories"]:
        screen.out(f"  repository {repo['name']}  {repo['kind']}  {repo['default_branch']}  {repo['place']}")
    for space in card["workspaces"]:
        screen.out(f"  workspace {space['name']}  {space['path']}")
    tasks = ", ".join(f"{count} {state.lower()}" for state, count in card["tasks"].items())
    screen.out(f"  tasks: {tasks or 'none'}")
    if not card["repositories"]:
        screen.talk(f"it has no repository: promptdock repo add PATH|URL --project {card['id']}")


async def _use(settings: Settings, typed: str, user: str, session: str | None, as_json: bool) -> None:
    result = await call(settings, "set_active_project", user, {"project_id": typed}, session=session or "")
    if as_json:
        screen.document("project_use", **result)
        return
    screen.out(f"{result['conversation']} works on {result['active_project']} from now on")
    known = ", ".join(result["repositories"])
    screen.talk(
        f"repositories: {known}" if known else "it has no repository yet: promptdock repo add PATH|URL"
    )


async def _create(
    settings: Settings, name: str, repo: str | None, branch: str | None, use_it: bool, user: str,
    session: str | None, as_json: bool,
) -> None:  # fmt: skip
    given = {"repo_url": _place(repo) if repo else None, "default_branch": branch}
    arguments = {"name": name} | {key: value for key, value in given.items() if value}
    result = await call(settings, "create_project", user, arguments, patience=_CLONING, exact=True)
    if use_it:
        chosen = {"project_id": result["created"]}
        await call(settings, "set_active_project", user, chosen, session=session or "", exact=True)
    if as_json:
        screen.document("project_create", **result, active=use_it)
        return
    screen.out(f"{result['created']} is made" + (f", with {result['repo']}" if "repo" in result else ""))
    if "warning" in result:
        screen.talk(result["warning"])
    if not use_it:
        screen.talk(f"go there with: promptdock project use {result['created']}")


def _place(repo: str) -> str:
    """A url as it is, a folder as it is called everywhere: the worker runs elsewhere."""
    folder = Path(repo).expanduser()
    return str(folder.resolve()) if folder.is_dir() else repo
