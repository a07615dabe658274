"""`key`: set, check and take away the keys of providers of models. They are never printed."""

from __future__ import annotations

import getpass
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from gateways.cli import screen
from gateways.cli.options import Json, group
from gateways.cli.run import run

if TYPE_CHECKING:
    from shared.settings import Settings

app = group()

Provider = Annotated[
    str,
    typer.Argument(
        help="anthropic, openai or ollama; left out, the first one that is set, else anthropic",
        show_default=False,
    ),
]


Unchecked = Annotated[
    bool,
    typer.Option("--unchecked", help="Keep it also where the provider cannot be asked whether it takes it."),
]


@app.command("set")
def set_(provider: Provider = "", unchecked: Unchecked = False) -> NoReturn:
    """Ask for a key (hidden), check it, write it to the data folder's .env."""
    run(lambda settings: _set(settings, settings.home / ".env", provider, unchecked))


@app.command()
def check(provider: Provider = "", as_json: Json = False) -> NoReturn:
    """Ask a provider whether it takes the key; without a name all that are set."""
    run(lambda settings: _check(settings, provider, as_json))


@app.command()
def unset(provider: Provider = "") -> NoReturn:
    """Take a key out of the data folder's .env; without any the demo model answers."""
    run(lambda settings: _unset(settings, settings.home / ".env", provider))


async def _set(settings: Settings, file: Path, provider: str, unchecked: bool) -> None:
    """Ask, check, write. One that is refused is not written, one that cannot be checked only where that is wanted."""
    from shared.client.local import key as keys
    from shared.client.local import supervision

    name, whose = keys.name(settings, provider), keys.company(settings, provider)
    with screen.asking():
        asked = sys.stdin.isatty()
        typed = getpass.getpass(f"{whose} API key (hidden): ") if asked else sys.stdin.readline()
    value = keys.clean(typed, name)
    screen.talk("Asking the provider whether it takes the key …")
    verdict, why = await keys.keep(settings, value, provider, file, unchecked)
    if verdict == "taken":
        screen.talk(f"The provider takes it. Written to {file} (mode 0600).")
    else:
        screen.talk(
            f"Written to {file} (mode 0600), UNCHECKED: all agents use it, and nobody knows whether it is taken."
        )
        screen.talk(f"  why: {why}\n  do:  promptdock key check, later")
    if needed := keys.still_needs(settings, provider):
        screen.talk(f"{whose} is asked once {needed} is set, too.")
    if keys.shadowed(name):
        screen.talk(f"{name} is set in the environment too, and that one wins over {file}: unset it.")
        screen.talk("Workers that were started with it keep it: promptdock down, then promptdock up.")
    elif supervision.running(settings.home):
        screen.talk("The workers that run here use it from now on; nothing needs to be restarted.")


async def _unset(settings: Settings, file: Path, provider: str) -> None:
    from shared.client.local import key as keys
    from shared.client.local import supervision
    from shared.settings import load

    name = keys.name(settings, provider)
    gone = keys.remove(name, file)
    screen.talk(f"{name} is taken out of {file}." if gone else f"There is no {name} in {file}.")
    if keys.shadowed(name):
        screen.talk(f"{name} is set in the environment too, and counts: unset it.")
        screen.talk("Workers that were started with it keep it: promptdock down, then promptdock up.")
    elif keys.name_is_set(load(lenient=True), name):
        screen.talk("Another file still sets it: promptdock config show says which.")
    elif gone and supervision.running(settings.home):
        screen.talk("The workers that run here do without it from now on; nothing needs to be restarted.")


async def _check(settings: Settings, provider: str, as_json: bool) -> int:
    """0 if all are taken, 1 if nobody can say of one; a refused or missing one is an error, told last."""
    from shared.client.local import key as keys
    from shared.errors import ConfigurationError

    names = [provider] if provider or not keys.is_set(settings) else keys.configured(settings)
    found, refused = [], []
    for name in names:
        whose = keys.company(settings, name) if len(names) > 1 else "the provider"
        key = keys.current(settings, name)
        if not as_json:
            screen.talk(f"Asking {whose} …")
        try:
            verdict, why = await keys.check(settings, key, name)
        except ConfigurationError as error:
            refused.append(error)
            continue
        found.append({"provider": name, "verdict": verdict, "why": why})
        if not as_json and verdict == "taken":
            screen.out(f"{whose[0].upper()}{whose[1:]} takes the key.")
        elif not as_json:
            screen.talk(f"promptdock: the key could not be checked\n  why: {why}")
    if refused:
        raise refused[0]
    worst = next((one for one in found if one["verdict"] != "taken"), found[0])
    if as_json:
        screen.document("key", verdict=worst["verdict"], why=worst["why"], keys=found)
    return 0 if worst["verdict"] == "taken" else 1
