"""`sessions`: a person's conversations: which there are, what was said in them, and what each is gone on from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

import typer

from gateways.cli import complete, screen
from gateways.cli.calling import call
from gateways.cli.options import Json, Session, User, group
from gateways.cli.run import run
from shared.bus.messages import default_session
from shared.client import Client
from shared.client.text.safe import line
from shared.client.views.conversation import own
from shared.errors import UsageError
from shared.settings import Settings

app = group()
Which = Annotated[
    str,
    typer.Argument(
        metavar="[SESSION]",
        help="Its name, or a part of it; your usual one by default.",
        autocompletion=complete.sessions,
    ),
]
Named = Annotated[
    str,
    typer.Argument(metavar="SESSION", help="Its name, or a part of it.", autocompletion=complete.sessions),
]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=200, help="At most so many.")]
Form = Literal["json", "markdown"]


@app.command("list")
def list_(
    user: User,
    archived: Annotated[bool, typer.Option("--archived", help="Those that were put away.")] = False,
    limit: Limit = 20,
    as_json: Json = False,
) -> NoReturn:
    """Your conversations, the last used first; works with the cluster down."""
    run(lambda settings: _list(settings, user, archived, limit, as_json))


@app.command("show")
def show(
    user: User,
    session: Which = "",
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="The newest so many messages.")] = 20,
    as_json: Json = False,
) -> NoReturn:
    """What was said in one of your conversations; works with the cluster down."""
    run(lambda settings: _show(settings, user, session, limit, as_json))


@app.command("search")
def search(
    query: Annotated[
        list[str], typer.Argument(metavar="QUERY...", help="Words; any of them may stand there.")
    ],
    user: User,
    limit: Limit = 10,
    as_json: Json = False,
) -> NoReturn:
    """Conversations in which some words were said, the best first; works with the cluster down."""
    run(lambda settings: _search(settings, user, " ".join(query), limit, as_json))


@app.command("new")
def new(
    title: Annotated[list[str], typer.Argument(metavar="TITLE...", help="What it is called.")],
    user: User,
    as_json: Json = False,
) -> NoReturn:
    """Begin another conversation."""
    arguments = {"title": " ".join(title)}
    run(lambda settings: _make(settings, "new_session", arguments, user, "", as_json))


@app.command("rename")
def rename(
    session: Named,
    title: Annotated[list[str], typer.Argument(metavar="TITLE...", help="What it is called now.")],
    user: User,
    as_json: Json = False,
) -> NoReturn:
    """Call a conversation something else."""
    run(lambda settings: _rename(settings, user, session, " ".join(title), as_json))


@app.command("archive")
def archive(
    session: Named,
    user: User,
    undo: Annotated[bool, typer.Option("--undo", help="Take it back.")] = False,
    as_json: Json = False,
) -> NoReturn:
    """Put a conversation away: it is listed no more, and loses nothing."""
    run(lambda settings: _archive(settings, user, session, not undo, as_json))


@app.command("fork")
def fork(
    user: User,
    session: Which = "",
    at: Annotated[
        str,
        typer.Option(
            "--at", metavar="MESSAGE", help="The id of its last message, or #4; the newest by default."
        ),
    ] = "",
    title: Annotated[str, typer.Option("--title", help="What it is called.")] = "",
    as_json: Json = False,
) -> NoReturn:
    """Begin a conversation that goes on from a message of another one, which stays as it is."""
    arguments = {"message_id": at, "title": title}
    run(lambda settings: _make(settings, "fork_session", arguments, user, session, as_json))


@app.command("export")
def export(
    user: User,
    session: Which = "",
    format: Annotated[Form, typer.Option("--format", help="json is what `import` reads.")] = "json",
    to: Annotated[Path | None, typer.Option("--to", metavar="FILE", help="Into this new file.")] = None,
) -> NoReturn:
    """Print what was said in a conversation, as JSON or as Markdown; works with the cluster down."""
    run(lambda settings: _export(settings, user, session, format, to))


@app.command("import")
def import_(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="What `export` wrote, or like it; - reads stdin.")
    ],
    user: User,
    title: Annotated[str, typer.Option("--title", help="What it is called.")] = "",
    no_memory: Annotated[bool, typer.Option("--no-memory", help="Remember nothing of it.")] = False,
    as_json: Json = False,
) -> NoReturn:
    """Make a conversation of a file; ids and times of its messages are kept."""
    run(lambda settings: _import(settings, user, file, title, not no_memory, as_json))


@app.command("saved")
def saved(user: User, limit: Limit = 20, as_json: Json = False) -> NoReturn:
    """What was saved of your conversations, the newest first; works with the cluster down."""
    run(lambda settings: _saved(settings, user, limit, as_json))


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
    saved: Annotated[
        list[str],
        typer.Argument(metavar="ID...", help="Of what was saved, or the beginning of what it is about."),
    ],
    user: User,
    session: Session = None,
    as_json: Json = False,
) -> NoReturn:
    """Go on where a conversation was when it was saved."""
    meant = {"id": " ".join(saved)}
    run(lambda settings: _change(settings, "restore_context", meant, user, session, as_json))


async def _saved(settings: Settings, user: str, limit: int, as_json: bool) -> None:
    async with Client(settings) as client:
        found = [one.card() for one in await own.saved(client, user, limit)]
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
    meant = await _there(settings, user, session, exact=tool == "clear_context")
    result = await call(settings, tool, user, arguments, session=meant, exact=True)
    if as_json:
        screen.document(tool, session_id=meant, **result)
        return
    screen.out(str(result["told"]))


async def _there(settings: Settings, user: str, session: str | None, exact: bool) -> str:
    """The conversation that is meant; one that was named must be there, so that none begins by a slip."""
    if session in (None, default_session(user)):
        return default_session(user)
    async with Client(settings) as client:
        await own.settled(client)
        return (await own.meant(client, user, str(session), exact)).key


async def _list(settings: Settings, user: str, archived: bool, limit: int, as_json: bool) -> None:
    async with Client(settings) as client:
        found = await own.listed(client, user, archived, limit)
    if as_json:
        screen.document("sessions", sessions=found)
        return
    rows = [(one["session_id"], _called(one), screen.moment(one["last_active"])) for one in found]
    empty = "Nothing is put away." if archived else f"{user} has no conversation yet: promptdock chat"
    screen.table(rows, ("conversation", "title", "last used"), empty)


def _called(card: dict[str, Any]) -> str:
    return f"{card['title']}  (unsigned)" if card.get("unsigned") else str(card["title"])


async def _show(settings: Settings, user: str, session: str, limit: int, as_json: bool) -> None:
    async with Client(settings) as client:
        found = await own.read(client, user, session)
    if as_json:
        said = [one.model_dump(mode="json", exclude_none=True) for one in found.said[-limit:]]
        screen.document("session", session_id=found.key, title=found.title, messages=said)
        return
    if len(found.said) > limit:
        screen.talk(f"The newest {limit} of {len(found.said)} messages; -n shows more.")
    with screen.paged():
        screen.answer(found.written("markdown", limit))


async def _search(settings: Settings, user: str, query: str, limit: int, as_json: bool) -> None:
    async with Client(settings) as client:
        found = await own.search(client, user, query, limit)
    if as_json:
        screen.document("session_search", query=query, sessions=found)
        return
    rows = [
        (one["session_id"], line(one["title"], 40), screen.moment(one["last_active"]), one["found"])
        for one in found
    ]
    screen.table(
        rows, ("conversation", "title", "last used", "found"), "Nobody said that in your conversations."
    )


async def _meant(settings: Settings, user: str, typed: str) -> str:
    async with Client(settings) as client:
        return (await own.meant(client, user, typed)).key


async def _make(
    settings: Settings, tool: str, arguments: dict[str, Any], user: str, session: str, as_json: bool
) -> None:
    if tool == "fork_session":
        arguments = {**arguments, "session_id": await _meant(settings, user, session)}
    _made(tool, await call(settings, tool, user, arguments, exact=True), as_json)


def _made(kind: str, result: dict[str, Any], as_json: bool) -> None:
    if as_json:
        screen.document(kind, **result)
        return
    screen.out(result["session_id"])
    screen.talk(f"{result['title']}: promptdock chat --session {result['session_id']}")


async def _rename(settings: Settings, user: str, session: str, title: str, as_json: bool) -> None:
    arguments = {"session_id": await _meant(settings, user, session), "title": title}
    result = await call(settings, "rename_session", user, arguments, exact=True)
    if as_json:
        screen.document("rename_session", **result)
        return
    screen.out(f"{result['session_id']} is called {result['title']}")


async def _archive(settings: Settings, user: str, session: str, archived: bool, as_json: bool) -> None:
    arguments = {"session_id": await _meant(settings, user, session), "archived": archived}
    result = await call(settings, "archive_session", user, arguments, exact=True)
    if as_json:
        screen.document("archive_session", **result)
        return
    key = result["session_id"]
    back = f"{key} is put away; promptdock sessions archive --undo {key} takes it back"
    screen.out(back if archived else f"{key} is listed again")


async def _export(settings: Settings, user: str, session: str, format: Form, to: Path | None) -> None:
    async with Client(settings) as client:
        text = (await own.read(client, user, session)).written(format)
    if to is None:
        screen.out(text.rstrip("\n"))
        return
    _write(to, text)
    screen.talk(f"It stands in {to}")


def _write(to: Path, text: str) -> None:
    """A new file that its owner alone may read."""
    try:
        with os.fdopen(
            os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
        ) as file:
            file.write(text)
    except OSError as error:
        why = str(error.strerror)
        raise UsageError(f"{to} cannot be written", why, "name a file that is not there") from None


async def _import(settings: Settings, user: str, file: str, title: str, memory: bool, as_json: bool) -> None:
    async def part(arguments: dict[str, Any]) -> dict[str, Any]:
        return await call(settings, "import_session", user, arguments, exact=True)

    result = await own.take_in(_read(file), part, title=title, use_memory=memory)
    _made("import_session", result, as_json)


def _read(file: str) -> str:
    """A file's text; what is no text, or more than a conversation, is refused."""
    if file == "-":
        return screen.typed("-")
    try:
        with Path(file).open("rb") as source:
            return own.document(source.read(own.LARGEST + 1))
    except OSError as error:
        raise UsageError(f"{file} cannot be read", str(error.strerror), "") from None
