"""`project`: what repositories, tasks, notes and hooks belong to, and on which one a conversation works."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from gateways.cli import complete, screen
from gateways.cli.calling import call, result_for_people
from gateways.cli.options import Json, Session, User, Yes, group
from gateways.cli.run import run
from shared.client import Client
from shared.client.views import lookup, projects
from shared.errors import UsageError
from shared.settings import Settings

_CLONING = 600.0  # seconds that the first mirror of its repository may take

app = group()
Id = Annotated[
    str, typer.Argument(metavar="ID", help="Its id, or a part of it.", autocompletion=complete.projects)
]


@app.command("list")
def list_(
    user: User,
    session: Session = None,
    everything: Annotated[bool, typer.Option("--all", help="Archived ones too.")] = False,
    as_json: Json = False,
) -> NoReturn:
    """All projects; works with the cluster down."""
    run(lambda settings: _list(settings, user, session, everything, as_json))


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


@app.command("edit")
def edit(
    project: Id,
    user: User,
    name: Annotated[str | None, typer.Option(help="What people call it; its id stays.")] = None,
    description: Annotated[str | None, typer.Option(help="What it is about.")] = None,
    at_once: Annotated[
        int | None, typer.Option("--at-once", min=1, max=100, help="How many tasks may run.")
    ] = None,
    branch: Annotated[str | None, typer.Option(help="The default branch of its repositories.")] = None,
    as_json: Json = False,
) -> NoReturn:
    """Change a project: only what is given. Its budget: promptdock budget project."""
    given = {"name": name, "description": description, "max_concurrent_agents": at_once}
    given |= {"repo_default_branch": branch}
    changes = {key: value for key, value in given.items() if value is not None}
    run(lambda settings: _edit(settings, project, changes, user, as_json))


@app.command("pause")
def pause(project: Id, user: User, as_json: Json = False) -> NoReturn:
    """Begin no task of a project; those that run go on."""
    run(lambda settings: _switch(settings, "pause", project, user, as_json))


@app.command("resume")
def resume(project: Id, user: User, as_json: Json = False) -> NoReturn:
    """Let a paused or archived project go on."""
    run(lambda settings: _switch(settings, "resume", project, user, as_json))


@app.command("archive")
def archive(project: Id, user: User, as_json: Json = False) -> NoReturn:
    """Put a project away that is done with: nothing is lost, and `resume` takes it back."""
    run(lambda settings: _switch(settings, "archive", project, user, as_json))


@app.command("delete")
def delete(project: Id, user: User, yes: Yes = False, as_json: Json = False) -> NoReturn:
    """Delete a project with its tasks, notes and hooks for good; folders and repositories stay on disk."""
    run(lambda settings: _delete(settings, project, yes, user, as_json))


async def _list(settings: Settings, user: str, session: str | None, everything: bool, as_json: bool) -> None:
    async with Client(settings) as client:
        found = await projects.listing(client)
        away = 0 if everything else sum(card["status"] == "ARCHIVED" for card in found)
        found = [card for card in found if everything or card["status"] != "ARCHIVED"]
        active = await projects.active(client, user, session)
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
    if away:
        screen.talk(f"archived: {away} more (promptdock project list --all)")


async def _show(settings: Settings, typed: str | None, user: str, session: str | None, as_json: bool) -> None:
    async with Client(settings) as client:
        active = await projects.active(client, user, session)
        card = await projects.card(client, await lookup.project(client, typed) if typed else active)
    if as_json:
        screen.document("project", **card, active=card["id"] == active)
        return
    budget = "none" if card["budget"] is None else f"${card['budget']:.2f}"
    screen.out(screen.strong(card["id"]), f"  {card['name']}  {card['status'].lower()}")
    if card["description"]:
        screen.out(f"  {card['description']}")
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
    if not name.strip():
        raise UsageError(
            "a project needs a name", "the one that was given is empty", "give one, as 'Web shop'"
        )
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


async def _edit(settings: Settings, typed: str, changes: dict[str, Any], user: str, as_json: bool) -> None:
    if not changes:
        raise UsageError("nothing is to be changed", "no option was given", "promptdock help project edit")
    async with Client(settings) as client:
        slug = await lookup.project(client, typed)
    result = await call(settings, "edit_project", user, {"project_id": slug, **changes}, exact=True)
    if as_json:
        screen.document("project_edit", **result)
        return
    screen.out(f"{result['updated']} is changed: {', '.join(result['fields'])}")


_NAMED = 10  # tasks in a line
_SWITCHED = {
    "pause": ("paused", "is paused: no task of it begins; those that run go on"),
    "resume": ("resumed", "goes on"),
    "archive": ("archived", "is archived: no task of it begins, and nothing of it is lost"),
}


async def _switch(settings: Settings, verb: str, typed: str, user: str, as_json: bool) -> None:
    result = await result_for_people(
        settings, f"{verb}_project", f"project_{verb}", user, as_json, project_id=typed
    )
    if result is None:
        return
    key, words = _SWITCHED[verb]
    screen.out(f"{result[key]} {words}")
    if verb != "resume":
        screen.talk(f"take it back with: promptdock project resume {result[key]}")


async def _delete(settings: Settings, typed: str, yes: bool, user: str, as_json: bool) -> None:
    async with Client(settings) as client:
        card = await projects.card(client, await lookup.project(client, typed))
    slug, tasks = card["id"], sum(card["tasks"].values())
    count = f"{tasks} task{'' if tasks == 1 else 's'}"
    what = f"this deletes the project {slug} with its {count}, notes, hooks and costs for good"
    if left := card["unmerged"]:
        names = ", ".join(left[:_NAMED]) + (" …" if left[_NAMED:] else "")
        screen.talk(
            f"work that is not merged: {names}; it stays on the branches promptdock/…, which no command "
            "lists or clears away then"
        )
    screen.sure(
        f"{what} (promptdock project archive {slug} keeps them)", yes, f"promptdock project delete {slug}"
    )
    result = await call(settings, "delete_project", user, {"project_id": slug}, exact=True)
    if as_json:
        screen.document("project_delete", **result)
        return
    screen.out(f"{result['deleted']} is deleted")
    if kept := result.get("files_kept"):
        screen.talk(f"its files stay as they are, in {kept}")
    for place, branches in result.get("branches_kept", {}).items():
        screen.talk(f"branches that are not merged stay in {place}: {', '.join(branches)}")


def _place(repo: str) -> str:
    """A url as it is, a folder as it is called everywhere: the worker runs elsewhere."""
    folder = Path(repo).expanduser()
    return str(folder.resolve()) if folder.is_dir() else repo
