"""Category models: a person chooses the model and the profile of a conversation. No model may call these tools."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from shared.conversation import model_choice
from shared.errors import ToolError
from shared.guard.permissions.touching import touching
from shared.models.listing import chain
from shared.tools import lookup
from shared.tools.context import Context
from shared.tools.registry import Category, Result

category = Category("models", "Choose the model and the profile that answer in a conversation")

_LONGEST = 500  # characters of a chain of names


async def need(here: Context, model: str, later: bool = False) -> str:
    """The chain as it is kept; ModelUnusable where a name in it is nobody's.

    `later`: where no provider is configured yet, any name may be right.
    """
    names = chain(model)
    if not names:
        raise ToolError("no model is named", "", "name one, or several as in a,b")
    if here.models is not None and not (later and here.models.demo):
        for name in names:
            await here.models.need(name)
    return ",".join(names)


async def kept(here: Context, model: str | None) -> str | None:
    """The chain that a profile is to name; ModelUnusable where a name in it is nobody's."""
    return await need(here, model, later=True) if model and model.strip() else model


def warm(here: Context, model: str | None, temperature: float | None) -> None:
    """ToolError for a temperature that a model which a profile names would refuse in each turn."""
    for name in chain(model or "") if here.models is not None and temperature is not None else ():
        assert here.models is not None and temperature is not None
        if temperature > (most := here.models.warmest(name)):
            raise ToolError(
                f"{name} cannot be asked with a temperature of {temperature:g}",
                f"its provider takes 0 to {most:g}",
                f"give at most {most:g}, or a model of another provider",
            )


@category.tool(
    effect="idempotent",
    detail=lambda arguments: str(arguments.get("model") or ""),
    personal=True,
    touches=touching("records"),
)
async def choose_model(here: Context, model: Annotated[str, Field(max_length=_LONGEST)] = "") -> Result:
    """Choose the model that answers in this conversation, from the next message on; "" takes the agent's own again."""
    here.need_person()
    name = await need(here, model) if model.strip() else None
    scope = lookup.session_scope(here)
    await lookup.keep_setting(here.store, scope, model_choice.KEY, {"model": name})
    return {"model": name, "conversation": scope.removeprefix("session:")}


@category.tool(
    effect="idempotent",
    detail=lambda arguments: str(arguments.get("profile_id") or ""),
    personal=True,
    touches=touching("records"),
)
async def choose_profile(here: Context, profile_id: Annotated[str, Field(max_length=200)] = "") -> Result:
    """Choose the profile that answers in this conversation, from the next message on; "" takes it back."""
    here.need_person()
    name = (await lookup.profile(here.store, profile_id)).slug if profile_id.strip() else None
    scope = lookup.session_scope(here)
    await lookup.keep_setting(here.store, scope, model_choice.PROFILE, {"profile": name})
    return {"profile_id": name, "conversation": scope.removeprefix("session:")}
