"""The models that are configured now: a key or an address that is set or changed later needs no restart."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

from shared import folders
from shared.errors import ModelRefused, ModelUnusable, PromptDockError
from shared.models import factory
from shared.models.base import Answer, Delta, Model, OnDelta, Request
from shared.models.factory import Provider
from shared.models.fallback import FallbackModel, Outages
from shared.models.listing import ModelListCache
from shared.models.remote import KEY_FIX
from shared.models.router import RouterModel
from shared.settings import Settings

Load = Callable[[], Settings]

_LOOK = 60.0  # seconds between two looks at the lists of models


class ReloadingModel(Model):
    """The real providers as soon as one is set, until then the demo model, which production refuses."""

    def __init__(
        self,
        settings: Settings,
        load: Load,
        file: Path | None = None,
        cache: ModelListCache | None = None,
        outages: Outages | None = None,
    ) -> None:
        self._settings, self._load, self._cache = settings, load, cache
        self._outages = outages or Outages(settings.model_fallback_ms / 1000)
        self._files = (file,) if file else folders.files(settings.home)
        self._seen = self._stamp()
        self._made_of = _made_of(settings)
        self._model = self._make()
        self._before: list[Model] = []
        self._changed = asyncio.Event()

    @property
    def name(self) -> str:  # type: ignore[override]
        return self._current().name

    @property
    def called(self) -> str:  # type: ignore[override]
        return self._current().called

    @property
    def recommended(self) -> str:  # type: ignore[override]
        return self._current().recommended

    @property
    def demo(self) -> bool:  # type: ignore[override]
        return self._current().demo

    async def answer(self, request: Request, on_delta: OnDelta | None = None) -> Answer:
        model = self._current()
        try:
            return await self._asked(model, request, on_delta)
        except ModelRefused as error:
            now = self._current()
            if now is model or now.demo:
                raise
            if on_delta:
                on_delta(Delta("waiting", f"{error.what}; it is asked anew as keys and addresses are now"))
            try:
                return await self._asked(now, request, on_delta)
            except ModelUnusable:
                raise error from None

    async def _asked(self, model: Model, request: Request, on_delta: OnDelta | None) -> Answer:
        # Who knows what a model is shown has chosen of a chain already; all others may name one here.
        return await FallbackModel(model, self._outages).answer(request, on_delta)

    async def models(self) -> list[str]:
        return await self._current().models()

    async def check(self) -> None:
        await self._current().check()

    def defers(self, model: str) -> bool:
        return self._current().defers(model)

    def warmest(self, model: str) -> float:
        return self._current().warmest(model)

    async def need(self, model: str) -> None:
        await self._current().need(model)

    def speaker(self, model: str) -> str:
        return self._current().speaker(model)

    async def warm(self) -> None:
        await self._current().warm()

    async def look(self) -> None:
        """Have the lists of models as they are now; none where the demo model answers."""
        model = self._current()
        if not isinstance(model, RouterModel):
            self._changed.clear()
            return
        if self._changed.is_set():  # with another key a provider may have other models, or refuse it
            self._changed.clear()
            await model.refresh()
        else:
            await model.look()

    async def change(self) -> None:
        """Wait until keys or addresses are others; whoever asks for the name of the model finds that out."""
        await self._changed.wait()

    async def close(self) -> None:
        for model in (self._model, *self._before):
            await model.close()

    def _current(self) -> Model:
        stamp = self._stamp()
        if stamp != self._seen:
            self._seen = stamp
            try:
                self._settings = self._load()
            except PromptDockError:
                return self._model  # a file that is being written; the old settings hold
            if (made_of := _made_of(self._settings)) != self._made_of:
                self._before.append(self._model)  # a turn may still wait for its answer
                self._made_of = made_of
                self._changed.set()
                self._model = self._make()
                self._before[-1].hurry()
        return self._model

    def _make(self) -> Model:
        if not self._made_of:
            return factory.make_demo(self._settings)
        providers = [provider for provider, _address, _key in self._made_of]
        there = {provider.name: address for provider, address, _key in self._made_of}
        return factory.make_router(
            providers, self._settings, lambda one: self._key(one, there[one.name]), self._cache
        )

    def _key(self, provider: Provider, address: str | None) -> str:
        """Its key as it is now; ModelRefused where it is asked no more, or elsewhere: who still waits for it ends."""
        self._current()
        if not provider.configured(self._settings) or provider.address(self._settings) != address:
            why = "its key or its address was changed or taken away meanwhile"
            raise ModelRefused(f"{provider.called} is not asked any more", why, KEY_FIX)
        return provider.key(self._settings) or ""

    def _stamp(self) -> tuple[tuple[int, int], ...]:
        return tuple(map(_stamped, self._files))


async def keep(model: Model) -> None:
    """Have the lists of models as all workers have them, and keys that change tried, as long as this runs."""
    while isinstance(model, ReloadingModel):
        await model.look()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LOOK):
                await model.change()


def _stamped(file: Path) -> tuple[int, int]:
    try:
        status = file.stat()
    except OSError:
        return (0, 0)
    return (status.st_mtime_ns, status.st_size)


def _made_of(settings: Settings) -> tuple[tuple[Provider, str | None, str | None], ...]:
    """What needs other models when it changes: with another key a provider may have others, too."""
    return tuple((one, one.address(settings), one.key(settings)) for one in factory.configured(settings))
