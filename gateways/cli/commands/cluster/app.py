"""The cluster itself; what each command does is in the module of its name, imported when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

import typer

from gateways.cli import complete, screen
from gateways.cli.options import Agent, Json, plain
from gateways.cli.run import me, run
from shared.errors import UsageError

if TYPE_CHECKING:
    from shared.settings import Settings

Level = Literal["debug", "info", "warning", "error"]

app = plain()


@app.command()
def up(
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Leave it running in the background.")
    ] = False,
    without: Annotated[
        list[str] | None,
        typer.Option(
            metavar="AGENT",
            help="Leave this agent to somebody else; `web`: no page.",
            autocompletion=complete.agents,
        ),
    ] = None,
    added: Annotated[
        list[str] | None, typer.Option("--with", metavar="AGENT", help="Start this agent too.")
    ] = None,
    scale: Annotated[
        list[str] | None, typer.Option(metavar="AGENT=N", help="Run so many workers of this agent.")
    ] = None,
) -> NoReturn:
    """Run the cluster here, with an embedded Redis where REDIS_URL is unset. Ctrl-C ends it, drained."""
    from gateways.cli.commands.cluster import up as work

    run(lambda settings: work.up(settings, work.change(without, added, scale), detach), always=True)


@app.command()
def restart(
    agent: Annotated[
        str | None, typer.Argument(help="One agent; all of them by default.", autocompletion=complete.agents)
    ] = None,
) -> NoReturn:
    """Start the workers anew, one after the other; each hands over what it does."""
    from gateways.cli.commands.cluster import restart as work

    run(lambda settings: work.restart(settings, agent))


@app.command()
def down() -> NoReturn:
    """End what `up` started here, after it has handed over."""
    from gateways.cli.commands.cluster import up as work

    run(work.down, lenient="list")  # of the settings it needs the data folder alone


@app.command()
def status(
    agent: Annotated[
        str | None,
        typer.Argument(
            help="Exit with 0 if this agent is present, else with 1.", autocompletion=complete.agents
        ),
    ] = None,
    as_json: Json = False,
) -> NoReturn:
    """Who is here, what waits, and on what the cluster stands."""
    from gateways.cli.commands.cluster import status as work

    run(lambda settings: work.status(settings, agent, as_json, me()), lenient="tell")


@app.command()
def bridge(
    name: Annotated[str, typer.Option("--name", help="What the agent is called.")],
    command: Annotated[
        str, typer.Option("--exec", help="A command for a shell: stdin is the request, stdout the answer.")
    ],
    timeout: Annotated[float, typer.Option(min=1, help="Seconds that one request may take.")] = 600.0,
    about: Annotated[str, typer.Option(help="What the others are told about it.")] = "",
) -> NoReturn:
    """Make any command line an agent: it answers questions and tasks, one at a time."""
    from gateways.cli.commands.cluster import bridge as work
    from shared.client.local.bridge import Bridged

    run(lambda settings: work.serve(settings, Bridged(name, command, timeout, about)))


@app.command()
def logs(
    agent: Agent = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with what comes.")] = False,
    count: Annotated[int, typer.Option("--lines", "-n", min=0, help="How many lines.")] = 50,
    since: Annotated[str | None, typer.Option(help="Not before: 10m, 2h or 3d ago, or 14:30.")] = None,
    level: Annotated[Level, typer.Option(help="Of this level and above.")] = "debug",
    as_json: Json = False,
) -> NoReturn:
    """What the workers logged."""
    from gateways.cli.commands.cluster import logs as work
    from shared.client.local.logs import Wanted
    from shared.client.text.times import back

    async def show(settings: Settings) -> None:
        wanted = Wanted(agent, count, level, back(since) if since else None)
        await work.logs(settings, wanted, follow, as_json)

    run(show, lenient="tell")


@app.command()
def trust(folder: Annotated[Path, typer.Argument(help="The current one by default.")] = Path()) -> NoReturn:
    """Let a folder's .env, .promptdock and mcp.json count."""
    from shared.client.local import trust as trusting

    try:
        print(f"Trusted: {trusting.trust(folder)}")
    except OSError as error:
        screen.complain(UsageError(f"{folder} cannot be trusted", error.strerror or "", "name a folder"))
        raise typer.Exit(2) from None
    raise typer.Exit(0)


@app.command()
def models(
    refresh: Annotated[bool, typer.Option("--refresh", help="Ask the providers anew.")] = False,
    as_json: Json = False,
) -> NoReturn:
    """The models that the providers have, and which settings choose one."""
    from gateways.cli.commands.cluster import models as work

    run(lambda settings: work.show(settings, as_json, refresh))


@app.command()
def doctor(as_json: Json = False) -> NoReturn:
    """Look for what is wrong, with a remedy beside each finding; works with nothing running."""
    from gateways.cli.commands.cluster import doctor as work

    run(lambda settings: work.doctor(settings, settings.home / ".env", as_json), always=True, lenient="list")
