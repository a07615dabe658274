"""Which model answers, which there are, and the key by which a provider is reached."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter
from starlette.responses import Response

from gateways.web.errors import HttpError
from gateways.web.pages.frame import Here, Seat, back, given, view
from shared.client.local import key
from shared.client.views import models
from shared.errors import ConfigurationError, PromptDockError
from shared.settings import Settings, load

router = APIRouter()
_PATIENCE = 6.0  # seconds that a provider may take to list its models


@router.get("/models")
async def listed(here: Here) -> Response:
    """What is chosen, and what the provider lists."""
    settings = await _fresh(here)
    found, problem = list[models.ModelList](), ""
    if key.is_set(settings):
        try:
            async with asyncio.timeout(_PATIENCE):
                found = await models.listings(settings)
                problem = "; ".join(models.told(one) for one in found if one.state != "ok")
        except PromptDockError as error:
            problem = error.told()
        except TimeoutError:
            problem = "The provider did not answer in time."
    names = models.names(found)
    return await view(
        *(here, "models", "models.html"),
        is_set=key.is_set(settings),
        company=key.company(settings),
        variable=key.name(settings),
        chosen=models.chosen(settings, found),
        missing={one.name: one for one in models.missing(settings, names, found)},
        names=names,
        problem=problem,
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
    name = key.name(settings)
    try:
        typed = key.clean(given(form, "key", 1000), name)
        if key.shadowed(name):
            raise ConfigurationError(
                f"{name} is set in the environment, which wins",
                "",
                "change it there, and start the cluster again",
            )
        verdict, why = await key.check(settings, typed)
        await asyncio.to_thread(key.write, typed, name, settings.home / ".env")
    except PromptDockError as error:
        return back(here, "/models", "bad", error.told())
    unsure = f" The provider could not be asked ({why})." if verdict == "unknown" else ""
    return back(here, "/models", "", f"The key is kept; the agents take it up within seconds.{unsure}")
