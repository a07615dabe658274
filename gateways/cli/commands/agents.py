"""`agents`: who is known; agents that are rows, their prompts and their channels."""

from __future__ import annotations

from typing import Annotated, Any, NoReturn

import typer

from gateways.cli import complete, screen
from gateways.cli.calling import call
from gateways.cli.options import Json, User, Yes, group
from gateways.cli.run import run
from shared.client import Client
from shared.client.views import agents as roster
from shared.client.views import prompts
from shared.errors import UsageError
from shared.settings import Settings

app = group()
Name = Annotated[str, typer.Argument(metavar="NAME", autocompletion=complete.agents)]
New = Annotated[str, typer.Argument(metavar="NAME", help="Letters, digits and hyphens.")]
About = Annotated[str | None, typer.Option("--description", help="What the others are told about it.")]
Persona = Annotated[str | None, typer.Option("--prompt", help="Who it is and what it does; - reads stdin.")]
OfModel = Annotated[str | None, typer.Option("--model", help="The model that it thinks with.")]
Mode = Annotated[
    str | None, typer.Option("--permissions", help="open, standard, guarded, locked or builder.")
]
Profile = Annotated[str | None, typer.Option("--profile", help="A profile that there is, by its id.")]
Place = Annotated[str, typer.Argument(metavar="CHANNEL", help="SURFACE:ID, such as discord:123456.")]


@app.command("list")
def list_(as_json: Json = False) -> NoReturn:
    """All agents: here or not, whose they are, and what they are for."""
    run(lambda settings: _list(settings, as_json))


@app.command("forget")
def forget(
    name: Annotated[str, typer.Argument(metavar="NAME", autocompletion=complete.agents)],
    force: Annotated[bool, typer.Option("--force", help="What waits for it goes too.")] = False,
    as_json: Json = False,
) -> NoReturn:
    """Take an agent that is gone off the roster."""
    run(lambda settings: _forget(settings, name, force, as_json))


@app.command("create")
def create(
    name: New,
    user: User,
    prompt: Persona = None,
    description: About = None,
    model: OfModel = None,
    permissions: Mode = None,
    profile: Profile = None,
    channel: Annotated[
        str | None, typer.Option("--channel", help="Where it answers; by default its own.")
    ] = None,
    repo: Annotated[
        str | None,
        typer.Option("--repo", help="Its repository: it takes tasks there.", autocompletion=complete.repos),
    ] = None,
    as_json: Json = False,
) -> NoReturn:
    """Make an agent that is a row: workspace under git, profile, channel. It runs a moment later."""
    given = {
        "name": name, "system_prompt": screen.typed(prompt) if prompt else None, "description": description,
        "model": model, "permission_mode": permissions, "profile_id": profile, "channel": channel, "repo_id": repo,
    }  # fmt: skip
    run(lambda settings: _create(settings, _given(given), user, as_json))


@app.command("configure")
def configure(
    name: Name,
    user: User,
    prompt: Persona = None,
    description: About = None,
    model: OfModel = None,
    permissions: Mode = None,
    profile: Profile = None,
    budget: Annotated[float | None, typer.Option("--budget", help="Dollars of one turn.")] = None,
    as_json: Json = False,
) -> NoReturn:
    """Change an agent that is a row, from its next turn on."""
    given = {
        "agent_id": name, "system_prompt": screen.typed(prompt) if prompt else None, "description": description,
        "model": model, "permission_mode": permissions, "profile_id": profile, "budget": budget,
    }  # fmt: skip
    run(lambda settings: _configure(settings, _given(given), user, as_json))


@app.command("destroy")
def destroy(
    name: Name,
    user: User,
    delete_files: Annotated[
        bool, typer.Option("--delete-files", help="Its workspace and own edits go too, for good.")
    ] = False,
    yes: Yes = False,
    as_json: Json = False,
) -> NoReturn:
    """End an agent that is a row; its files stay."""
    run(lambda settings: _destroy(settings, name, delete_files, yes, user, as_json))


@app.command("prompt")
def prompt_(name: Name, user: User, as_json: Json = False) -> NoReturn:
    """What an agent (or a profile) is told, part by part, as its next turn sends it."""
    run(lambda settings: _prompt(settings, name, user, as_json))


@app.command("global")
def global_(
    user: User,
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="The new words; - reads stdin; '' the shipped ones.")
    ] = None,
    as_json: Json = False,
) -> NoReturn:
    """Show or replace the words that stand before every agent's prompt."""
    run(lambda settings: _global(settings, text, user, as_json))


@app.command("channels")
def channels(user: User, as_json: Json = False) -> NoReturn:
    """The channels of surfaces that are bound, and to what."""
    run(lambda settings: _channels(settings, user, as_json))


@app.command("bind")
def bind(
    channel: Place,
    user: User,
    agent: Annotated[
        str | None, typer.Option("--agent", help="Who answers there.", autocompletion=complete.agents)
    ] = None,
    project: Annotated[
        str | None, typer.Option("--project", help="What it is about.", autocompletion=complete.projects)
    ] = None,
    note: Annotated[
        str | None, typer.Option("--note", help="The note in which all goes that is said there.")
    ] = None,
    as_json: Json = False,
) -> NoReturn:
    """Bind a channel to an agent, a project, or a note of it."""
    given = _given({"channel": channel, "agent": agent, "project_id": project, "note": note})
    run(lambda settings: _bind(settings, given, user, as_json))


@app.command("unbind")
def unbind(channel: Place, user: User, as_json: Json = False) -> NoReturn:
    """Take a channel's binding off."""
    run(lambda settings: _unbind(settings, channel, user, as_json))


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


async def _create(settings: Settings, given: dict[str, Any], user: str, as_json: bool) -> None:
    made = await call(settings, "create_agent", user, given)
    if as_json:
        screen.document("agent_create", **made)
        return
    asked = str(given.get("name") or made["created"])
    if asked != made["created"]:
        screen.talk(
            f"… {asked!r} is written {made['created']}: names have lower case letters, digits and hyphens"
        )
    where = f", its files in {made['workspace']}" if made.get("workspace") else ""
    screen.out(f"{made['created']} is made{where}; it answers on {made['channel']}")
    if made["channel"] == f"promptdock:{made['created']}":
        screen.talk(f'… talk with it: promptdock ask --agent {made["created"]} "…"')


async def _configure(settings: Settings, given: dict[str, Any], user: str, as_json: bool) -> None:
    done = await call(settings, "configure_agent", user, given)
    if as_json:
        screen.document("agent_configure", **done)
        return
    told = ", ".join(
        {"sections": "prompt", "profile_id": "profile"}.get(name, name) for name in done["fields"]
    )
    screen.out(f"{done['configured']} has another {told} from its next turn on")
    if done.get("warning"):
        screen.talk(f"… {done['warning']}")


async def _destroy(settings: Settings, name: str, delete: bool, yes: bool, user: str, as_json: bool) -> None:
    again = f"promptdock agents destroy {name}{' --delete-files' if delete else ''}"
    what = f"this ends the agent {name}" + (
        " and deletes its files for good" if delete else "; its files stay"
    )
    screen.sure(what, yes, again)
    done = await call(settings, "destroy_agent", user, {"agent_id": name, "keep_files": not delete})
    if as_json:
        screen.document("agent_destroy", **done)
        return
    kept = f"; its files are kept in {done['workspace']}" if done.get("workspace") else ""
    screen.out(f"{done['destroyed']} is destroyed{kept}")
    if done.get("warning"):
        screen.talk(f"… {done['warning']}")


async def _prompt(settings: Settings, name: str, user: str, as_json: bool) -> None:
    found = await call(settings, "show_prompt", user, {"agent_id": name})
    if as_json:
        screen.document("agent_prompt", **found)
        return
    with screen.paged():
        screen.out(prompts.prompt(found).text())


async def _global(settings: Settings, text: str | None, user: str, as_json: bool) -> None:
    if text is None:
        parts = (await call(settings, "show_prompt", user, {"agent_id": "chatter"}))["parts"]
        found = next((part["text"] for part in parts if part["name"] == "global"), "")
        if as_json:
            screen.document("agents_global", text=found)
        else:
            screen.out(found)
        return
    done = await call(settings, "set_global_prompt", user, {"text": screen.typed(text)})
    if as_json:
        screen.document("agents_global_set", **done)
    else:
        screen.out("every agent is told this first, from its next turn on")


async def _channels(settings: Settings, user: str, as_json: bool) -> None:
    found = (await call(settings, "list_channels", user, {}))["channels"]
    if as_json:
        screen.document("agents_channels", channels=found)
        return
    rows = [(one["channel"], one["name"], prompts.bound(one)) for one in found]
    empty = "No channel is bound: promptdock agents bind CHANNEL --agent NAME"
    screen.table(rows, ("channel", "name", "bound to"), empty)


async def _bind(settings: Settings, given: dict[str, Any], user: str, as_json: bool) -> None:
    if len(given) == 1:
        fix = "promptdock agents bind CHANNEL --agent NAME, --project NAME or --note TITLE"
        raise UsageError("it is not said what the channel is bound to", "", fix)
    done = await call(settings, "bind_channel", user, given)
    if as_json:
        screen.document("agents_bind", **done)
    else:
        screen.out(f"{done['bound']} is bound to {prompts.bound(done)}")


async def _unbind(settings: Settings, channel: str, user: str, as_json: bool) -> None:
    done = await call(settings, "unbind_channel", user, {"channel": channel})
    if as_json:
        screen.document("agents_unbind", **done)
    else:
        screen.out(f"{done['unbound']} is Chatter's again")


async def _list(settings: Settings, as_json: bool) -> None:
    async with Client(settings) as client:
        found = await roster.known(client)
    if as_json:
        screen.document("agents", agents=[one.card() for one in found])
        return
    rows = [(one.name, one.state, one.kind, one.workers, one.waiting, one.why or one.about) for one in found]
    screen.table(rows, ("agent", "state", "kind", "workers", "waiting", "about"))


async def _forget(settings: Settings, name: str, force: bool, as_json: bool) -> None:
    async with Client(settings) as client:
        gone = await roster.forget(client, name, force)
    if as_json:
        screen.document("agent_forgotten", agent=name, entries=gone)
    else:
        screen.out(f"{name} is forgotten" + (f", and {gone} entries with it" if gone else ""))
