"""A chain of models, `a,b`: where one cannot answer for long, the next one does, and the answer says so."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

from shared import log
from shared.errors import ModelError, ModelOverloaded, ModelRefused, ModelUnusable
from shared.models.base import Answer, Delta, Model, OnDelta, Request
from shared.models.listing import chain

REST = 300.0  # seconds for which one that could not answer is not asked first, where it does not ask for more
LONGEST_REST = 3600.0  # whatever it asks for: an account or a provider may be well again before


@dataclass
class Outages:
    """Which models could not answer, why, and until when they are left alone; one for all turns of a worker."""

    patience: float = 60.0  # seconds for which the next one waits
    _until: dict[str, tuple[float, str]] = field(default_factory=dict)

    def note(self, name: str, why: str, rest: float) -> None:
        """This one could not answer just now, and is left alone for so many seconds."""
        self._until[name] = (time.monotonic() + rest, why)

    def over(self, name: str) -> None:
        """This one answers."""
        self._until.pop(name, None)

    def why(self, name: str) -> str:
        """Why it is left alone; "" where it is not."""
        until, why = self._until.get(name, (0.0, ""))
        return why if until > time.monotonic() else ""

    def first(self, model: str) -> str:
        """The one of a chain that is asked first now."""
        names = chain(model)
        return next((name for name in names if not self.why(name)), names[-1] if names else model)


class FallbackModel(Model):
    """Asks the models of a chain through `model`, which knows single names."""

    def __init__(self, model: Model, outages: Outages) -> None:
        self._model, self._outages = model, outages
        self.name, self.called, self.demo = model.name, model.called, model.demo

    async def answer(self, request: Request, on_delta: OnDelta | None = None) -> Answer:
        names = chain(request.model)
        if len(names) < 2:
            alone = await self._model.answer(request, on_delta)
            self._outages.over(request.model)
            return alone
        began, passed = time.monotonic(), dict[str, str]()
        for place, name in enumerate(names):
            last = place == len(names) - 1
            if not last and (why := self._outages.why(name)):
                passed[name] = why
                continue
            left = request.deadline - (time.monotonic() - began)
            patience = None if last else self._outages.patience
            one = replace(request, model=name, deadline=left, patience=patience)
            try:
                answer = await self._model.answer(one, on_delta)
            except (ModelOverloaded, ModelRefused, ModelUnusable) as error:
                if last:
                    raise _all(error, passed) from error
                rest = _rest(error)
                passed[name] = _words(error, rest)
                self._outages.note(name, passed[name], rest)
                log.get().warning("The next model of the chain is asked", model=name, why=str(error))
                if on_delta:
                    on_delta(Delta("waiting", f"{error.what}; {names[place + 1]} is asked instead"))
                continue
            self._outages.over(name)
            told = [f"{before} could not answer ({why}): {name} did" for before, why in passed.items()]
            return replace(answer, notes=(*told, *answer.notes))
        raise AssertionError("a chain has a last link")

    async def models(self) -> list[str]:
        return await self._model.models()

    async def check(self) -> None:
        await self._model.check()

    def defers(self, model: str) -> bool:
        return self._model.defers(model)

    def warmest(self, model: str) -> float:
        return self._model.warmest(model)


def _rest(error: ModelError) -> float:
    """For how many seconds it is not asked first: as long as it wants to be left alone, within bounds."""
    asked = error.retry_after if isinstance(error, ModelOverloaded) else None
    return min(max(REST, asked or 0.0), LONGEST_REST)


def _words(error: ModelError, rest: float) -> str:
    told = log.redact(error.what)
    return f"{told}, and is left alone for {rest / 60:.0f} min" if rest > REST else told


def _all(error: ModelError, passed: dict[str, str]) -> ModelError:
    """The last one's error, with what kept those before it from answering."""
    before = "; ".join(f"{name}: {why}" for name, why in passed.items())
    why = "; ".join(part for part in (error.why, before) if part)
    if isinstance(error, ModelOverloaded):
        return ModelOverloaded(error.what, why, error.fix, error.retry_after)
    return type(error)(error.what, why, error.fix)
