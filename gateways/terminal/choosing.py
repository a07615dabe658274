"""`/model`: which models there are, which one answers here, another one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from gateways.terminal.conversation import Conversation
from shared.client.text.safe import line
from shared.client.views import models

DEFAULT = "default"  # what takes the agent's own model again
_SHOWN = 30  # models of one provider

Call = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]


async def choose(here: Conversation, name: str, call: Call) -> str:
    """Choose a model for this conversation; without a name show what there is."""
    if not name:
        return await _shown(here)
    found = await call("choose_model", {"model": "" if name == DEFAULT else name})
    here.watch.chosen = str(found["model"] or "")
    if not found["model"]:
        return "This conversation is answered by the agent's own model again."
    return f"This conversation is answered by {found['model']} from the next message on."


async def offers(here: Conversation) -> list[tuple[str, str]]:
    """The names that may be chosen, each with its provider."""
    found = await models.known(here.client)
    told = [(name, one.provider) for one in found for name in one.models]
    return [*told, (DEFAULT, "the agent's own")]


async def _shown(here: Conversation) -> str:
    chosen = here.watch.chosen = await models.here(here.client, here.user, here.session)
    lines = []
    for one in await models.known(here.client):
        names = list(one.models[:_SHOWN])
        more = [f"and {len(one.models) - _SHOWN} more"] if len(one.models) > _SHOWN else []
        lines += [line(models.told(one), 200), *(f"  {text}" for text in [*names, *more])]
    now = chosen or here.watch.model or "unknown"
    why = "chosen for it" if chosen else "the agent's own"
    how = f"Another one: /model NAME, or /model {DEFAULT}" if lines else "There is no provider yet: /key"
    return "\n".join([*lines, f"This conversation is answered by {now} ({why}). {how}"])
