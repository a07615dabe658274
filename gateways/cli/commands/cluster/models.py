"""`models`: what the provider has, and who uses what."""

from __future__ import annotations

from gateways.cli import screen
from shared.client.local import key
from shared.client.views import models
from shared.settings import Settings


async def show(settings: Settings, as_json: bool) -> int:
    """1 where a setting names one that is not listed."""
    demo = not key.is_set(settings)
    names = ["demo"] if demo else await models.listed(settings)
    users = {} if demo else models.chosen(settings)
    wrong = [] if demo else models.missing(settings, names)
    if as_json:
        unlisted = [{"name": one.name, "setting": one.setting, "near": list(one.near)} for one in wrong]
        screen.document("models", models=names, chosen=users, missing=unlisted)
    else:
        rows = [(name, ", ".join(by for by, used in users.items() if used == name)) for name in names]
        screen.table(rows, ("model", "chosen by"))
        if demo:
            screen.talk("… no key is set, so that the scripted demo model answers (promptdock key set)")
    for one in wrong:
        screen.talk(f"promptdock: {one.told}\n  do:  {one.fix}")
    return 1 if wrong else 0
