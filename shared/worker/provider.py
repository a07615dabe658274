"""The model that is configured now: a key or an address that is set or changed later needs no restart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from shared import folders
from shared.errors import PromptDockError
from shared.models import factory
from shared.models.base import Answer, Model, OnDelta, Request
from shared.models.factory import Provider
from shared.settings import Settings

Load = Callable[[], Settings]


class ReloadingModel(Model):
    """The real provider as soon as a key is there, until then the demo model, which production refuses."""

    def __init__(self, settings: Settings, load: Load, file: Path | None = None) -> None:
        self._settings, self._load = settings, load
        self._files = (file,) if file else folders.files(settings.home)
        self._seen = self._stamp()
        self._model, self._made_of = _make(settings, self._key), _made_of(settings)
        self._before: list[Model] = []

    @property
    def name(self) -> str:  # type: ignore[override]
        return self._current().name

    @property
    def called(self) -> str:  # type: ignore[override]
        return self._current().called

    @property
    def recommended(self) -> str:  # type: ignore[override]
        model, (provider, _address) = self._current(), self._made_of
        return provider.recommended if provider else model.recommended

    @property
    def demo(self) -> bool:  # type: ignore[override]
        return self._current().demo

    async def answer(self, request: Request, on_delta: OnDelta | None = None) -> Answer:
        return await self._current().answer(request, on_delta)

    async def models(self) -> list[str]:
        return await self._current().models()

    async def check(self) -> None:
        await self._current().check()

    def defers(self, model: str) -> bool:
        return self._current().defers(model)

    async def warm(self) -> None:
        await self._current().warm()

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
                self._model, self._made_of = _make(self._settings, self._key), made_of
        return self._model

    def _key(self) -> str:
        provider = factory.provider(self._settings)
        return (provider and provider.key(self._settings)) or ""

    def _stamp(self) -> tuple[tuple[int, int], ...]:
        return tuple(map(_stamped, self._files))


def _stamped(file: Path) -> tuple[int, int]:
    try:
        status = file.stat()
    except OSError:
        return (0, 0)
    return (status.st_mtime_ns, status.st_size)


def _made_of(settings: Settings) -> tuple[Provider | None, str | None]:
    """What needs another model when it changes; the key itself is read for each request."""
    provider = factory.provider(settings)
    return provider, provider.address(settings) if provider else None


def _make(settings: Settings, key: Callable[[], str]) -> Model:
    provider = factory.provider(settings)
    return provider.connect(settings, key) if provider else factory.make_demo(settings)
