"""`memory`: what is remembered of a person, what was remembered for an answer, and putting it right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NoReturn

import typer

from gateways.cli import complete, screen
from gateways.cli.calling import call
from gateways.cli.options import Json, Project, User, Yes, group
from gateways.cli.run import run
from shared.client import Client
from shared.client.text.safe import line
from shared.client.views import memory
from shared.settings import Settings

_LINE = 100  # characters of what is remembered, in a table

app = group()
Kind = Literal["turn", "fact", "entity", "strategy", "goal"]
Id = Annotated[str, typer.Argument(metavar="ID", help="Its id, or the beginning of it.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, help="At most so many.")]
Of = Annotated[
    str | None,
    typer.Option("--session", help="Look through this conversation.", autocompletion=complete.sessions),
]


@app.command("list")
def list_(
    user: User,
    kind: Annotated[Kind | None, typer.Option(help="Only of this kind.")] = None,
    project: Project = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also what was corrected, ended or put away.")
    ] = False,
    limit: Limit = 20,
    as_json: Json = False,
) -> NoReturn:
    """What is remembered of you, the newest first; works with the cluster down."""
    run(lambda settings: _list(settings, user, kind, project, everything, limit, as_json))


@app.command("show")
def show(id: Id, user: User, as_json: Json = False) -> NoReturn:
    """One memory: where it comes from, and what became of it."""
    run(lambda settings: _show(settings, id, user, as_json))


@app.command("search")
def search(
    query: Annotated[
        list[str], typer.Argument(metavar="QUERY...", help="Words; any of them may stand there.")
    ],
    user: User,
    session: Of = None,
    project: Project = None,
    limit: Limit = 10,
    as_json: Json = False,
) -> NoReturn:
    """What is remembered that fits some words, the best first; works with the cluster down."""
    run(lambda settings: _search(settings, " ".join(query), user, session, project, limit, as_json))


@app.command("why")
def why(
    user: User,
    turn: Annotated[
        str, typer.Argument(metavar="[TURN]", help="The message that was answered; your last by default.")
    ] = "",
    as_json: Json = False,
) -> NoReturn:
    """What was remembered for an answer."""
    run(lambda settings: _why(settings, user, turn, as_json))


@app.command("correct")
def correct(
    id: Id,
    text: Annotated[list[str], typer.Argument(metavar="TEXT...", help="What holds; - reads stdin.")],
    user: User,
    as_json: Json = False,
) -> NoReturn:
    """Put other words in the place of a memory; the old one ends, and can still be listed."""
    run(lambda settings: _correct(settings, id, " ".join(text), user, as_json))


@app.command("forget")
def forget(id: Id, user: User, yes: Yes = False, as_json: Json = False) -> NoReturn:
    """Delete a memory for good; the conversation in which it was said stays."""
    run(lambda settings: _forget(settings, id, user, yes, as_json))


@app.command("share")
def share(
    project: Annotated[
        str, typer.Argument(metavar="PROJECT", help="Which one.", autocompletion=complete.projects)
    ],
    user: User,
    off: Annotated[bool, typer.Option("--off", help="End it.")] = False,
    as_json: Json = False,
) -> NoReturn:
    """Let all who work in a project recall what is remembered there."""
    run(lambda settings: _share(settings, project, user, off, as_json))


async def _list(
    settings: Settings, user: str, kind: Kind | None, project: str | None, everything: bool, limit: int,
    as_json: bool,
) -> None:  # fmt: skip
    async with Client(settings) as client:
        found = await memory.listed(client, user, kind, project, everything, limit)
    if as_json:
        screen.document("memories", memories=found)
        return
    states = {one["state"] for one in found} - {"valid"}
    rows = [
        (one["id"][:8], one["kind"], one["project"], screen.moment(one["at"]), _said(one))
        + ((one["state"],) if states else ())
        for one in found
    ]
    titles = ("id", "kind", "project", "since", "what") + (("state",) if states else ())
    screen.table(rows, titles, f"Nothing is remembered of {user} yet.")


def _said(one: dict[str, Any]) -> str:
    about = f"{one['subject']}: " if one.get("subject") else ""
    return line(f"{about}{one['text']}", _LINE)


async def _show(settings: Settings, typed: str, user: str, as_json: bool) -> None:
    async with Client(settings) as client:
        found = await memory.one(client, user, typed)
    if as_json:
        screen.document("memory", **found)
        return
    screen.out(found["text"])
    rows = [(name, str(value)) for name, value in found.items() if name != "text" and value not in (None, "")]
    screen.table(rows, ("", ""), "")


async def _search(
    settings: Settings, query: str, user: str, session: str | None, project: str | None, limit: int,
    as_json: bool,
) -> None:  # fmt: skip
    async with Client(settings) as client:
        found = await memory.search(client, query, user, session, project, limit)
    if as_json:
        screen.document("memory_search", query=query, found=found)
        return
    fits = _fits(found)
    rows = [
        (fit, one["kind"], screen.moment(one["at"]), one["session_id"] or "", _said(one))
        for fit, one in zip(fits, found, strict=True)
    ]
    screen.table(rows, ("fits", "kind", "since", "conversation", "what"), "Nothing that is remembered fits.")


async def _why(settings: Settings, user: str, turn: str, as_json: bool) -> None:
    async with Client(settings) as client:
        found = await memory.why(client, user, turn)
    if as_json:
        screen.document("memory_why", **found)
        return
    rows = [
        (one["id"][:8], one["kind"], screen.moment(one["at"]), fit, _said(one))
        for fit, one in zip(_fits(found["remembered"]), found["remembered"], strict=True)
    ]
    empty = f"Nothing was remembered for the answer to {found['turn']}."
    screen.table(rows, ("id", "kind", "since", "fits", "what"), empty)


def _fits(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """How well each fits, beside the best of them: a score is worth something only among those of one answer."""
    best = max((float(one["score"]) for one in found), default=0.0)
    return [f"{max(0.0, float(one['score']) / best):.0%}" if best > 0 else "" for one in found]


async def _correct(settings: Settings, typed: str, text: str, user: str, as_json: bool) -> None:
    words = screen.typed(text).strip()
    async with Client(settings) as client:
        meant = (await memory.one(client, user, typed))["id"]
    result = await call(settings, "correct_memory", user, {"memory_id": meant, "text": words}, exact=True)
    if as_json:
        screen.document("memory_correct", **result)
        return
    screen.out(f"{result['memory_id'][:8]} stands in its place")


async def _forget(settings: Settings, typed: str, user: str, yes: bool, as_json: bool) -> None:
    async with Client(settings) as client:
        found = await memory.one(client, user, typed)
    short = found["id"][:8]
    screen.sure(f"this deletes for good: {_said(found)}", yes, f"promptdock memory forget {short}")
    result = await call(settings, "forget_memory", user, {"memory_id": found["id"]}, exact=True)
    if as_json:
        screen.document("memory_forget", **result)
        return
    screen.out(f"{short} is forgotten")


async def _share(settings: Settings, project: str, user: str, off: bool, as_json: bool) -> None:
    result = await call(settings, "share_memory", user, {"project_id": project, "on": not off})
    if as_json:
        screen.document("memory_share", **result)
        return
    whose = "all who work in it" if result["shared"] else "whoever said it alone"
    screen.out(f"What is remembered in project {result['project_id']} is for {whose}")
