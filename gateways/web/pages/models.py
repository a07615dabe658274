"""Which model answers, which there are, and the key by which a provider is reached."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass

from fastapi import APIRouter
from starlette.responses import Response

from gateways.web.errors import HttpError
from gateways.web.pages.frame import Here, Seat, back, given, view
from shared.client import connect
from shared.client.local import key
from shared.client.views import models
from shared.errors import ConfigurationError, PromptDockError
from shared.settings import Settings, load

router = APIRouter()
_PATIENCE = 6.0  # seconds that providers may take to list their models


@dataclass(frozen=True)
class ProviderHere:
    """One provider: "" as its state where nothing of it is set; `needed` is a variable that is missing."""

    name: str
    called: str
    variable: str
    state: str
    told: str
    needed: str
    models: tuple[str, ...]


@router.get("/models")
async def listed(here: Here) -> Response:
    """The providers, what each lists, and what is chosen."""
    settings = await _fresh(here)
    found = list[models.ModelList]()
    if key.is_set(settings):
        with contextlib.suppress(PromptDockError, TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                found = await models.listings(settings)
    names = models.names(found)
    said = {one.provider: one for one in found}
    return await view(
        *(here, "models", "models.html"),
        is_set=key.is_set(settings),
        answering=await _answering(here),
        providers=[_provider(settings, one.name, said.get(one.name)) for one in connect.known_providers()],
        chosen=models.chosen(settings, found),
        missing={one.name: one for one in models.missing(settings, names, found)},
    )


async def _answering(here: Seat) -> list[tuple[str, str]]:
    """Who is here, and the model by which it really answers."""
    with contextlib.suppress(PromptDockError):
        cards = await here.client.presence.here()
        found = {
            (str(card["agent"]), "demo" if card.get("demo") else str(card.get("model") or ""))
            for card in cards
        }
        return sorted((agent, model) for agent, model in found if model)
    return []


def _provider(settings: Settings, name: str, said: models.ModelList | None) -> ProviderHere:
    configured = name in key.configured(settings)
    state = said.state if said else ("silent" if configured else "")
    told = models.told(said) if said else ("it did not answer in time" if configured else "")
    needed = key.still_needs(settings, name)
    listed = said.models if said else ()
    return ProviderHere(
        name, key.company(settings, name), key.name(settings, name), state, told, needed, listed
    )


async def _fresh(here: Seat) -> Settings:
    """The settings as they are by now: a key may have been set since this process began."""
    there = here.client.settings
    fresh = await asyncio.to_thread(load, None, True)
    return fresh if fresh.home == there.home else there


@router.post("/models/key")
async def set_key(here: Here) -> Response:
    """Check a key with its provider and keep it where `promptdock key set` does; it is never shown again."""
    if not here.person.owner:
        raise HttpError(403, "only the owner sets a key")
    form, settings = await here.request.form(), await _fresh(here)
    provider = given(form, "provider", 40)
    if provider not in [one.name for one in connect.known_providers()]:
        raise HttpError(422, "there is no such provider")
    name = key.name(settings, provider)
    try:
        typed = key.clean(given(form, "key", 1000), name)
        if key.shadowed(name):
            raise ConfigurationError(
                f"{name} is set in the environment, which wins",
                "",
                "change it there, and start the cluster again",
            )
        file, unchecked = settings.home / ".env", bool(form.get("unchecked"))
        verdict, why = await key.keep(settings, typed, provider, file, unchecked)
    except PromptDockError as error:
        return back(here, "/models", "bad", error.told())
    unsure = f" It is UNCHECKED: the provider could not be asked ({why})." if verdict == "unknown" else ""
    needed = key.still_needs(settings, provider)
    more = f" It is asked once {needed} is set, too." if needed else ""
    return back(
        here,
        "/models",
        "bad" if unsure else "",
        f"The key is kept; the agents take it up within seconds.{unsure}{more}",
    )
