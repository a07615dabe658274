"""All providers that are configured, as one model: the name of the model that is asked for picks who is asked."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from shared import log
from shared.errors import ModelError, ModelRefused, ModelUnusable, PromptDockError
from shared.models import listing
from shared.models.base import Answer, Model, OnDelta, Request
from shared.models.listing import ModelList, ModelListCache

FRESH = 3600.0  # seconds for which a list is believed
RETRY = 30.0  # seconds after which one is asked for again because a name is not on it, or it could not be had
PATIENCE = 10.0  # seconds that a list may take
_CLAIM = 15  # seconds for which one worker asks for all
_POLL = 0.2


@dataclass(frozen=True)
class ProviderLink:
    """One provider that is configured. `family` fits names that are its own also where no list says so."""

    name: str
    company: str
    recommended: str
    family: re.Pattern[str]
    address: str
    model: Model
    keyed: bool = False  # whether it is asked with a key


class _Nowhere:
    """Lists that nobody else reads."""

    async def read(self) -> dict[str, bytes]:
        return {}

    async def write(self, provider: str, data: str) -> None:
        return None

    async def claim(self, provider: str, seconds: int) -> bool:
        return True


class RouterModel(Model):
    """The providers in their order: of two that list a name, the first one answers."""

    def __init__(self, links: Sequence[ProviderLink], cache: ModelListCache | None = None) -> None:
        self.links = tuple(links)
        self._cache: ModelListCache = cache or _Nowhere()
        self._known: dict[str, ModelList] = {}
        self._looking = asyncio.Lock()
        self.name, self.called = self.links[0].model.name, self.links[0].model.called

    @property
    def recommended(self) -> str:  # type: ignore[override]
        """The first provider's recommended one, where it has it, else the newest that is listed."""
        for link in self.links:
            known = self._known.get(link.name)
            if link.recommended and (known is None or not known.models or known.has(link.recommended)):
                return link.recommended
            if known and known.models:
                return known.models[0]
        return self.links[0].recommended

    async def answer(self, request: Request, on_delta: OnDelta | None = None) -> Answer:
        link = await self.route(request.model)
        return await link.model.answer(request, on_delta)

    async def models(self) -> list[str]:
        await self.look()
        return list(dict.fromkeys(name for known in self.known() for name in known.models))

    async def check(self) -> None:
        """Raise where no provider answers."""
        await self.refresh()
        known = list(self.known())
        if any(one.state == "ok" for one in known):
            return
        why = "; ".join(f"{one.provider}: {one.why}" for one in known)
        raise (ModelRefused if all(one.state == "refused" for one in known) else ModelError)(
            "no provider can be asked", why, "promptdock key check"
        )

    def defers(self, model: str) -> bool:
        link = self._listed(model) or self._unlisted(model)
        return link is not None and link.model.defers(model)

    def warmest(self, model: str) -> float:
        link = self._listed(model) or self._unlisted(model)
        return link.model.warmest(model) if link else math.inf

    def speaker(self, model: str) -> str:
        link = self._listed(model) or self._unlisted(model)
        return link.model.called if link else self.called

    def hurry(self) -> None:
        for link in self.links:
            link.model.hurry()

    async def warm(self) -> None:
        """The libraries of all of them, and their lists, at the same time."""
        await asyncio.gather(self.look(), *(self._warmed(link) for link in self.links))

    async def close(self) -> None:
        for link in self.links:
            await link.model.close()

    def known(self) -> Iterator[ModelList]:
        """What the providers said, in their order."""
        return (self._known[link.name] for link in self.links if link.name in self._known)

    def forget(self) -> None:
        """Keys or addresses changed: what was said before does not count."""
        self._known.clear()

    async def need(self, model: str) -> None:
        await self.route(model)

    async def route(self, name: str) -> ProviderLink:
        """Who has the model of this name; ModelUnusable, with the nearest names, where nobody does."""
        if link := self._listed(name):
            return link
        if len(self.links) == 1 and not self._named():
            return self.links[0]  # nobody else could answer, and nobody waits for a list
        await self.look()
        if link := self._listed(name) or self._unlisted(name):
            return link
        if any(known.age() > RETRY for known in self.known()):
            await self.refresh()
            if link := self._listed(name) or self._unlisted(name):
                return link
        raise self._unknown(name)

    async def look(self) -> None:
        """Have the lists: as all workers have them, or asked for where nobody has."""
        async with self._looking:
            found = listing.read(await self._kept())
            for link in self.links:
                known = found.get(link.name)
                if known and known.address == link.address and not _old(known):
                    self._known[link.name] = known
            old = [link for link in self.links if _old(self._known.get(link.name))]
            await asyncio.gather(*(self._have(link) for link in old))

    async def refresh(self) -> None:
        """Ask all of them anew."""
        async with self._looking:
            await asyncio.gather(*(self._ask(link) for link in self.links))

    async def _warmed(self, link: ProviderLink) -> None:
        try:
            await link.model.warm()
        except PromptDockError as error:
            log.get().warning("A provider of models cannot be used", provider=link.company, why=str(error))

    async def _kept(self) -> dict[str, bytes]:
        try:
            return dict(await self._cache.read())
        except PromptDockError as error:
            log.get().warning("The lists of models cannot be read", why=str(error))
            return {}

    async def _have(self, link: ProviderLink) -> None:
        """Ask, or wait for the one who does."""
        try:
            ours = await self._cache.claim(link.name, _CLAIM)
        except PromptDockError:
            ours = True
        if ours:
            await self._ask(link)
            return
        for _ in range(round(_CLAIM / _POLL)):
            known = listing.read(await self._kept()).get(link.name)
            if known and known.address == link.address and not _old(known):
                self._known[link.name] = known
                return
            await asyncio.sleep(_POLL)
        await self._ask(link)

    async def _ask(self, link: ProviderLink) -> None:
        await self._warmed(link)  # its library takes seconds to load, which are not the provider's
        known = await ask(link)
        before = self._known.get(link.name)
        if known.state == "away" and before and before.models:  # it has what it had, when it is back
            known = known.model_copy(update={"models": before.models})
        self._known[link.name] = known
        if known.state != "ok":
            log.get().warning("A provider of models cannot be used", provider=link.company, why=known.why)
        try:
            await self._cache.write(link.name, known.model_dump_json())
        except PromptDockError as error:
            log.get().warning("A list of models was not kept", why=str(error))

    def _listed(self, name: str) -> ProviderLink | None:
        return next(
            (link for link in self.links if (known := self._known.get(link.name)) and known.has(name)), None
        )

    def _lists(self, link: ProviderLink) -> bool:
        known = self._known.get(link.name)
        return known is not None and bool(known.models)

    def _named(self) -> list[str]:
        return [name for known in self.known() for name in known.models]

    def _unlisted(self, name: str) -> ProviderLink | None:
        """Of those that list nothing, the one whose names look so, else the only one."""
        silent = [link for link in self.links if not self._lists(link)]
        own = next((link for link in silent if link.family.match(name)), None)
        return own or (silent[0] if len(silent) == 1 and len(self.links) == 1 else None)

    def _unknown(self, name: str) -> ModelUnusable:
        names = self._named()
        companies = listing.words([link.company for link in self.links if self._lists(link)])
        away = listing.words([link.company for link in self.links if not self._lists(link)])
        said = (
            f"{companies} {'list' if ' and ' in companies else 'lists'} none of that name"
            if companies
            else ""
        )
        why = "; ".join(filter(None, (said, f"{away} could not say" if away else "")))
        nearest = listing.near(names, name)
        fix = f"name one of: {', '.join(nearest)}" if nearest else "promptdock key check"
        return ModelUnusable(
            f"there is no model {name[:100]!r}",
            why,
            f"{fix} (promptdock models shows all)",
        )


async def ask(link: ProviderLink) -> ModelList:
    """Which models a provider has now, and so whether it takes the key."""
    said: dict[str, Any] = {"provider": link.name, "address": link.address, "keyed": link.keyed}
    try:
        async with asyncio.timeout(PATIENCE):
            return ModelList(state="ok", models=tuple(await link.model.models()), **said)
    except ModelRefused as error:
        return ModelList(state="refused", why=log.redact(error.why or error.what), **said)
    except ModelUnusable as error:  # it lists none, as a gateway may
        return ModelList(state="ok", why=log.redact(error.why), **said)
    except PromptDockError as error:
        return ModelList(state="away", why=log.redact(f"{error.what}: {error.why}"), **said)
    except TimeoutError:
        return ModelList(state="away", why=f"it did not say within {PATIENCE:.0f} s", **said)


def _old(known: ModelList | None) -> bool:
    return known is None or known.age() > (FRESH if known.state == "ok" else RETRY)
