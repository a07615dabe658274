"""`models`: what the providers have, and who uses what."""

from __future__ import annotations

from gateways.cli import screen
from shared.client.local import key
from shared.client.views import models
from shared.errors import ConfigurationError, ModelError
from shared.settings import Settings


async def show(settings: Settings, as_json: bool, refresh: bool = False) -> int:
    """1 where a setting names one that is not listed, or a provider cannot be asked."""
    demo = not key.is_set(settings)
    found = [] if demo else await models.listings(settings, refresh)
    _need(found)
    names = ["demo"] if demo else models.names(found)
    users = {} if demo else models.chosen(settings, found)
    wrong = [] if demo else models.missing(settings, names, found)
    down = [one for one in found if one.state != "ok"]
    if as_json:
        unlisted = [{"name": one.name, "setting": one.setting, "near": list(one.near)} for one in wrong]
        providers = [models.card(one) for one in found]
        screen.document("models", models=names, chosen=users, missing=unlisted, providers=providers)
    else:
        _table(names, users, found)
        if demo:
            screen.talk("… no key is set, so that the scripted demo model answers (promptdock key set)")
    for listing in down:
        screen.talk(f"promptdock: {models.told(listing)}\n  do:  {_fix(listing)}")
    for one in wrong:
        screen.talk(f"promptdock: {one.told}\n  do:  {one.fix}")
    return 1 if wrong or down else 0


def _need(found: list[models.ModelList]) -> None:
    """An error where nobody says anything at all."""
    if not found or any(one.models or one.state == "ok" for one in found):
        return
    why = "; ".join(models.told(one) for one in found)
    if all(one.state == "refused" for one in found):
        raise ConfigurationError("the key is not taken", why, _fix(found[0]))
    raise ModelError("no provider can be asked", why, "promptdock key check, later")


def _fix(one: models.ModelList) -> str:
    return (
        f"promptdock key set {one.provider}"
        if one.state == "refused"
        else "promptdock models --refresh, later"
    )


def _table(names: list[str], users: dict[str, str], found: list[models.ModelList]) -> None:
    by = {name: one.provider for one in reversed(found) for name in one.models}
    rows = [
        (name, by.get(name, ""), ", ".join(who for who, used in users.items() if name in models.chain(used)))
        for name in names
    ]
    if len(found) < 2:
        screen.table([(name, users) for name, _, users in rows], ("model", "chosen by"))
    else:
        screen.table(rows, ("model", "provider", "chosen by"))
