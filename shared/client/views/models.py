"""The models that the providers have, and whether those that the settings name are among them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shared.bus.messages import default_session
from shared.bus.model_lists import ModelLists
from shared.client import connect
from shared.client.client import Client
from shared.conversation import model_choice
from shared.errors import ConfigurationError, PromptDockError
from shared.models import listing
from shared.models.listing import ModelList as ModelList
from shared.models.listing import chain as chain
from shared.settings import Settings

_REACH = 2.0  # seconds that the cluster may take to say what it knows


@dataclass(frozen=True)
class MissingModel:
    """A name that no provider lists, the setting that has it, and names that may be meant."""

    name: str
    setting: str
    near: tuple[str, ...]

    @property
    def told(self) -> str:
        """What is wrong."""
        return f"no provider lists the model {self.name} ({self.setting})"

    @property
    def fix(self) -> str:
        """What to do."""
        near = f", e.g. {' or '.join(self.near)}" if self.near else ""
        setting = self.setting.removesuffix(" by default")
        return f"set {setting} to one that promptdock models lists{near}"


async def known(client: Client) -> list[ModelList]:
    """What the workers know of the providers that are configured here, in their order."""
    found = listing.read(await ModelLists(client.bus, client.names).read())
    order = [one.name for one in connect.providers(client.settings)]
    rest = sorted(set(found) - set(order)) if not order else []  # another machine's settings choose
    return [found[name] for name in (*order, *rest) if name in found]


async def here(client: Client, user: str, session: str | None = None) -> str:
    """The model that was chosen for a conversation; "" where the agent's own answers."""
    return await model_choice.chosen(await client.store(), session or default_session(user)) or ""


async def asked(settings: Settings, client: Client | None = None) -> list[ModelList]:
    """What the providers say now; the workers of the cluster, where there is one, hear it too."""
    if not connect.providers(settings):
        return []
    router = connect.make_router(settings, ModelLists(client.bus, client.names) if client else None)
    try:
        await router.refresh()
        return list(router.known())
    finally:
        await router.close()


async def listings(settings: Settings, refresh: bool = False) -> list[ModelList]:
    """As the cluster knows them where it has all that are configured, else as the providers say now."""
    async with Client(settings) as client:
        try:
            async with asyncio.timeout(_REACH):
                await client.reach()
                found = await known(client)
        except (PromptDockError, TimeoutError):
            return await asked(settings)
        if refresh or {one.provider for one in found} != {one.name for one in connect.providers(settings)}:
            return await asked(settings, client)
        return found


def names(found: Sequence[ModelList]) -> list[str]:
    """All models, each once; of one name, the first provider's answers."""
    return list(dict.fromkeys(name for one in found for name in one.models))


async def listed(settings: Settings) -> list[str]:
    """All models by name; ConfigurationError where no provider is set, or each that is refuses its key."""
    if not connect.providers(settings):
        why = "the demo model answers, which is scripted"
        raise ConfigurationError("no key is set", why, "set one with: promptdock key set")
    found = await listings(settings)
    if found and all(one.state == "refused" for one in found):
        why = "; ".join(told(one) for one in found)
        raise ConfigurationError("the key is not taken", why, "set another one: promptdock key set")
    return names(found)


def told(one: ModelList) -> str:
    """One provider's state, in words."""
    match one.state:
        case "ok":
            count = len(one.models)
            key = ", the key is checked" if one.key == "checked" else ""
            if not one.models:
                return f"{one.provider}: lists no models{key}"
            return f"{one.provider}: {count} model{'' if count == 1 else 's'}{key}"
        case "refused":
            return f"{one.provider} does not take the key ({one.why})"
    key = ", so that its key is unchecked" if one.key == "unchecked" else ""
    return f"{one.provider} does not answer{key} ({one.why})"


def card(one: ModelList) -> dict[str, Any]:
    """One provider, for programs."""
    return {**one.model_dump(mode="json", exclude={"keyed"}), "key": one.key, "told": told(one)}


def chosen(settings: Settings, found: Sequence[ModelList] = ()) -> dict[str, str]:
    """The names that the settings choose, by the setting: the default one, and those of single agents.

    None where the demo model answers, whatever the settings name.
    """
    if not connect.providers(settings):
        return {}
    setting = "PROMPTDOCK_MODEL" if settings.model else "PROMPTDOCK_MODEL by default"
    default = settings.model or _default(settings, found)
    return {setting: default} | settings.own_models()


def _default(settings: Settings, found: Sequence[ModelList]) -> str:
    """The first provider's recommended one, else the newest that it lists."""
    provider = connect.provider(settings)
    here = next((one for one in found if one.provider == provider.name), None)
    own = provider.needs == "key" or not provider.address(settings)
    if provider.recommended and own and (here is None or not here.models or here.has(provider.recommended)):
        return provider.recommended
    return here.models[0] if here and here.models else provider.recommended


def missing(settings: Settings, known: Sequence[str], found: Sequence[ModelList] = ()) -> list[MissingModel]:
    """Those that are not among these names. Providers that list nothing say nothing."""
    if not known or any(not one.models for one in found):
        return []
    return [
        MissingModel(name, setting, listing.near(known, name))
        for setting, names in chosen(settings, found).items()
        for name in chain(names)
        if not listing.lists(known, name)
    ]
