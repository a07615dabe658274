"""`key`: set, check and take away the provider's key. It is never printed."""

from __future__ import annotations

import getpass
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from gateways.cli import screen
from gateways.cli.options import Json, group
from gateways.cli.run import run

if TYPE_CHECKING:
    from shared.settings import Settings

app = group()


@app.command("set")
def set_() -> NoReturn:
    """Ask for a key (hidden), check it, write it to the data folder's .env."""
    run(lambda settings: _set(settings, settings.home / ".env"))


@app.command()
def check(as_json: Json = False) -> NoReturn:
    """Ask the provider whether it takes the key."""
    run(lambda settings: _check(settings, as_json))


@app.command()
def unset() -> NoReturn:
    """Take the key out of the data folder's .env; without one the demo model answers."""
    run(lambda settings: _unset(settings, settings.home / ".env"))


async def _set(settings: Settings, file: Path) -> None:
    """Ask, check, write. A key that the provider refuses is not written."""
    from shared.client.local import key as keys
    from shared.client.local import supervision

    name, whose = keys.name(settings), keys.company(settings)
    with screen.asking():
        asked = sys.stdin.isatty()
        typed = getpass.getpass(f"{whose} API key (hidden): ") if asked else sys.stdin.readline()
    value = keys.clean(typed, name)
    screen.talk("Asking the provider whether it takes the key …")
    verdict, why = await keys.check(settings, value)
    keys.write(value, name, file)
    if verdict == "taken":
        screen.talk(f"The provider takes it. Written to {file} (mode 0600).")
    else:
        screen.talk(f"Written to {file} (mode 0600), but it could not be checked: {why}")
        screen.talk("  do:  promptdock key check, later")
    if keys.shadowed(name):
        screen.talk(f"{name} is set in the environment too, and that one wins over {file}: unset it.")
        screen.talk("Workers that were started with it keep it: promptdock down, then promptdock up.")
    elif supervision.running(settings.home):
        screen.talk("The workers that run here use it from now on; nothing needs to be restarted.")


async def _unset(settings: Settings, file: Path) -> None:
    from shared.client.local import key as keys
    from shared.client.local import supervision
    from shared.settings import load

    name = keys.name(settings)
    gone = keys.remove(name, file)
    screen.talk(f"{name} is taken out of {file}." if gone else f"There is no {name} in {file}.")
    if keys.shadowed(name):
        screen.talk(f"{name} is set in the environment too, and counts: unset it.")
        screen.talk("Workers that were started with it keep it: promptdock down, then promptdock up.")
    elif keys.is_set(load(lenient=True)):
        screen.talk("Another file still sets it: promptdock config show says which.")
    elif gone and supervision.running(settings.home):
        screen.talk("The workers that run here do without it from now on; nothing needs to be restarted.")


async def _check(settings: Settings, as_json: bool) -> int:
    """0 if it is taken, 1 if nobody can say; a refused or missing one is an error."""
    from shared.client.local import key as keys

    key = keys.current(settings)
    if not as_json:
        screen.talk("Asking the provider …")
    verdict, why = await keys.check(settings, key)
    if as_json:
        screen.document("key", verdict=verdict, why=why)
    elif verdict == "taken":
        screen.out("The provider takes the key.")
    else:
        screen.talk(f"promptdock: the key could not be checked\n  why: {why}")
    return 0 if verdict == "taken" else 1
