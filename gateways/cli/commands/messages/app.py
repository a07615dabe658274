"""Messages; what each command does is in the module of its name, imported when it runs."""

from __future__ import annotations

from typing import Annotated, NoReturn

import typer

from gateways.cli import complete
from gateways.cli.options import Json, Session, User, plain
from gateways.cli.run import run

app = plain()


@app.command()
def chat(user: User, session: Session = None) -> NoReturn:
    """Talk with Chatter in the terminal."""
    from gateways.cli.commands.messages import chat as work

    work.chat(user, session)


@app.command()
def ask(
    text: Annotated[str, typer.Argument(help="What to ask; - reads it from stdin.")],
    user: User,
    session: Session = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Seconds to wait for the answer; 0 only sends. Else 900, and 60 for a permission "
            "where nobody sits at a terminal.",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Override the checks that come before a task is assigned.")
    ] = False,
    agent: Annotated[
        str | None,
        typer.Option("--agent", help="An agent that is data answers itself.", autocompletion=complete.agents),
    ] = None,
    channel: Annotated[
        str | None, typer.Option("--channel", help="As if it were said there: SURFACE:ID.")
    ] = None,
    new_thread: Annotated[bool, typer.Option("--new-thread", help="Begin a thread of that channel.")] = False,
    thread: Annotated[
        int | None, typer.Option("--thread", min=1, help="Go on in the thread of this number there.")
    ] = None,
    reply_to: Annotated[
        str | None, typer.Option("--reply-to", metavar="ID", help="Go on where this was said.")
    ] = None,
    profile: Annotated[
        str | None, typer.Option("--profile", help="The profile by which this turn goes.")
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Plan it, choose a strategy, go step by step.")
    ] = False,
    notes: Annotated[bool, typer.Option("--notes", help="Put it into the note that it fits.")] = False,
    as_json: Json = False,
) -> NoReturn:
    """Ask one thing: progress goes to stderr, the answer to stdout."""
    from gateways.cli.commands.messages import ask as work
    from gateways.cli.commands.messages import request as asked

    place = asked.channel_of(agent, channel)
    way = asked.Way(place, profile, full, notes, new_thread, thread, reply_to)
    request = asked.Request(text, user, session, timeout, force, as_json, way)
    run(lambda settings: work.ask(settings, request))


@app.command()
def tail(
    channels: Annotated[
        list[str] | None, typer.Argument(help="Channels or patterns, e.g. 'events:*'.")
    ] = None,
    as_json: Json = False,
) -> NoReturn:
    """Print what passes on the channels: in words on a terminal, else one JSON object a line."""
    from gateways.cli.commands.messages import channels as work

    run(lambda settings: work.tail(settings, channels or [], as_json))


@app.command()
def publish(
    channel: Annotated[str, typer.Argument(help="human-input, agent:NAME, or any other channel.")],
    message: Annotated[str, typer.Argument(metavar="JSON", help="One JSON object; - reads it from stdin.")],
    as_json: Json = False,
) -> NoReturn:
    """Send one message; what has an inbox is stored before it is reported as sent."""
    from gateways.cli.commands.messages import channels as work

    run(lambda settings: work.publish(settings, channel, message, as_json))


@app.command()
def inbox(user: User, as_json: Json = False) -> NoReturn:
    """All that waits for you, in all conversations, each with the command that answers it."""
    from gateways.cli.commands.messages import inbox as work

    run(lambda settings: work.show(settings, user, as_json))


@app.command()
def pending(as_json: Json = False) -> NoReturn:
    """Accepted messages that have not ended, by agent."""
    from gateways.cli.commands.messages import pending as work

    run(lambda settings: work.show(settings, as_json))


@app.command()
def trace(
    user: User,
    turn: Annotated[
        str, typer.Argument(metavar="ID", help="A message, a turn or a task; your last turn by default.")
    ] = "",
    as_json: Json = False,
) -> NoReturn:
    """A turn after the fact: its steps and those of the agents that it asked, with time, tokens and cost."""
    from gateways.cli.commands.messages import trace as work

    run(lambda settings: work.show(settings, turn, user, as_json))
