"""`repo`: repositories that agents may read and work on."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from gateways.cli import complete, screen
from gateways.cli.calling import call
from gateways.cli.options import Json, User, group
from gateways.cli.run import run
from shared.errors import UsageError

if TYPE_CHECKING:
    from shared.client import Client
    from shared.settings import Settings

app = group()
_CLONING = 600.0  # seconds that the first mirror of a repository may take
_KINDS = ("frontend", "backend", "both")


@app.command()
def add(
    place: Annotated[str, typer.Argument(metavar="PATH|URL")],
    user: User,
    kind: Annotated[str | None, typer.Option(help="frontend, backend or both; both for a new one.")] = None,
    name: Annotated[str | None, typer.Option(help="How it is called; the folder's name by default.")] = None,
    project: Annotated[
        str | None,
        typer.Option(
            help="The project that it belongs to; the active one.", autocompletion=complete.projects
        ),
    ] = None,
    push: Annotated[
        bool | None, typer.Option("--push/--no-push", help="Whether tasks may push their branches.")
    ] = None,
    as_json: Json = False,
) -> NoReturn:
    """Register a repository: a folder stays where it is, a URL is mirrored."""
    adding = Adding(place, kind, name, project, push)
    run(lambda settings: _add(settings, adding, user, as_json))


@app.command()
def remove(
    name: Annotated[str, typer.Argument(metavar="NAME|PATH|URL", autocompletion=complete.repos)],
    user: User,
    project: Annotated[
        str | None,
        typer.Option(
            help="The project that it belongs to; the active one.", autocompletion=complete.projects
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Also with commits that are nowhere else.")] = False,
    as_json: Json = False,
) -> NoReturn:
    """Take a repository out of its project: a folder stays as it is, a mirror goes."""
    run(lambda settings: _remove(settings, name, project, force, user, as_json))


@app.command("list")
def list_(as_json: Json = False) -> NoReturn:
    """The registered repositories; works with the cluster down."""
    run(lambda settings: _list(settings, as_json))


@dataclass(frozen=True)
class Adding:
    """What is to be registered."""

    place: str
    kind: str | None
    name: str | None
    project: str | None
    push: bool | None

    def arguments(self) -> dict[str, Any]:
        """As the tool takes them; a path is made absolute, since the worker runs elsewhere."""
        if self.kind not in (None, *_KINDS):
            raise UsageError(f"there is no kind {self.kind!r}", f"there are: {', '.join(_KINDS)}")
        if re.match(r"[\w+.-]+://|[^/\s]+@[^/\s]+:|[\w+.-]+::", self.place):
            where = {"source": "clone", "url": self.place}
        else:
            folder = Path(self.place).expanduser().resolve()
            if not folder.is_dir():
                raise UsageError(
                    f"there is no folder {folder}", "", "give the path of a git repository, or its url"
                )
            where = {"source": "link", "path": str(folder)}
        more = {"name": self.name, "project_id": self.project, "kind": self.kind, "push_tasks": self.push}
        return where | {key: value for key, value in more.items() if value is not None}


async def _add(settings: Settings, adding: Adding, user: str, as_json: bool) -> int:
    """Register it, by a command to the cluster."""
    arguments = adding.arguments()
    result = await call(settings, "add_repo", user, arguments, patience=_CLONING)
    if as_json:
        screen.document("repo", **result)
    else:
        place = arguments.get("path") or arguments.get("url")
        screen.out(f"{result['name']}  {result['kind']}  {result['default_branch']}  {place}")
        if "updated" in result:
            changed = ", ".join(f"{name} {value}" for name, value in result["changed"].items())
            screen.talk(f"it was registered already; changed: {changed or 'nothing'}")
        screen.talk(f"in project {result['project_id']}")
    return 0


async def _remove(
    settings: Settings, name: str, project: str | None, force: bool, user: str, as_json: bool
) -> None:
    """Take it out of its project, by a command to the cluster."""
    more = {"project_id": project, "force": force or None}
    arguments = {"repo_id": name} | {key: value for key, value in more.items() if value is not None}
    result = await call(settings, "remove_repo", user, arguments)
    if as_json:
        screen.document("repo_remove", **result)
        return
    screen.out(f"{result['removed']} is out of project {result['project_id']}")
    if kept := result.get("files_kept"):
        screen.talk(f"its files stay as they are, in {kept}")


async def offer(client: Client) -> None:
    """One line where a person stands in a repository that agents do not know."""
    from shared.client import elsewhere
    from shared.client.views import projects

    top = await projects.unregistered(client, Path.cwd())
    if top and (other := elsewhere.find(client.settings.home, Path.cwd())):
        screen.talk(f"  Note: {other.told}; {other.fix}")
    elif top:
        here = "." if Path(top) == Path.cwd().resolve() else shlex.quote(top)
        screen.talk(f"  This git repository is not known to the agents: promptdock repo add {here}")


async def _list(settings: Settings, as_json: bool) -> None:
    """All of them, from the Store."""
    from shared.client import Client
    from shared.client.views.tasks import tasks

    async with Client(settings) as client:
        rows = await tasks.repos(client)
    if as_json:
        screen.document("repos", repos=rows)
        return
    heads = ("name", "project", "kind", "branch", "place", "made")
    screen.table(
        [
            (r["name"], r["project"], r["kind"], r["default_branch"], r["url"] or r["path"], r["made"])
            for r in rows
        ],
        heads,
        "No repository is registered: promptdock repo add PATH",
    )
