"""The one owner of retries for calls to a provider: full jitter, a bound on time, and where it is asked for on tries.

An adapter turns its library's errors into ours first; here only ModelOverloaded is tried again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception_type,
    wait_random_exponential,
)

from shared import log
from shared.errors import ModelOverloaded

FIX = "try again in a few minutes"
LONGEST = 30  # seconds between two tries, where the provider does not ask for more

T = TypeVar("T")
Tell = Callable[[str], None]


class Naps:
    """The waits between tries; whoever is in one can be woken."""

    def __init__(self) -> None:
        self._woken = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        """Wait so long, or until all are woken."""
        woken = self._woken
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await woken.wait()

    def wake(self) -> None:
        """All who wait now wait no longer."""
        self._woken.set()
        self._woken = asyncio.Event()


def _pause(base: float) -> Callable[[RetryCallState], float]:
    """Full jitter below 1, 2, 4 … times `base` seconds, on top of what the provider asked for."""
    jitter = wait_random_exponential(multiplier=base, max=LONGEST * base)

    def pause(state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        asked = error.retry_after if isinstance(error, ModelOverloaded) else None
        return float(jitter(state)) if asked is None else asked + min(float(jitter(state)), base)

    return pause


async def persist(
    call: Callable[[], Awaitable[T]],
    *,
    deadline: float,
    tell: Tell | None = None,
    tries: int | None = None,
    base: float = 1.0,
    patience: float | None = None,
    naps: Naps | None = None,
) -> T:
    """Await `call()` until it answers, for at most `deadline` seconds, and `tries` times where that is given.

    After `patience` seconds no further try is begun; one that is under way goes on. Who is woken of `naps` tries
    at once.

    Overloads last minutes: who waits with work that is paid for waits on. Before each further try `tell` hears, in
    words for a person, what happened, since when, and when it goes on. A wait that would pass the deadline is not
    begun. Raises ModelOverloaded, or at once whatever else `call` raises.
    """
    now = asyncio.get_running_loop().time  # one clock for the bound, for what is told and for the waits
    started, since, failures = now(), list[float](), list[str]()
    last = deadline if patience is None else min(deadline, patience)

    def spent(state: RetryCallState) -> bool:
        return state.attempt_number == tries or now() - started + state.upcoming_sleep >= last

    def before_sleep(state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        what = error.what if isinstance(error, ModelOverloaded) else str(error)
        pause = max(1, round(state.upcoming_sleep))
        since[:], failures[:] = (
            since or [now()],
            [error.told() if isinstance(error, ModelOverloaded) else what],
        )
        lasts = round(now() - since[0])
        log.get().warning(
            "The model is tried again", why=str(error), tries=state.attempt_number, wait_s=pause
        )
        if tell:
            tell(f"{what}{f' for {lasts} s now' if lasts else ''}; trying again in {pause} s")

    retrying = AsyncRetrying(
        sleep=naps.sleep if naps else asyncio.sleep,
        retry=retry_if_exception_type(ModelOverloaded),
        stop=spent,
        wait=_pause(base),
        before_sleep=before_sleep,
        reraise=True,
    )
    try:
        async with asyncio.timeout(deadline):
            return await retrying(call)
    except TimeoutError as error:
        before = f"before that: {failures[0]}" if failures else ""
        raise ModelOverloaded(f"the model gave no whole answer within {deadline:g} s", before, FIX) from error
    except ModelOverloaded as error:
        count = retrying.statistics.get("attempt_number", 1)
        told = f"tried {count} times in {now() - started:.0f} s" if count > 1 else "tried once"
        if error.retry_after is not None and error.retry_after >= 1:
            told += f"; it asks to be left alone for {error.retry_after:.0f} s"
        why = f"{error.why}; {told}" if error.why else told
        raise ModelOverloaded(error.what, why, error.fix or FIX, error.retry_after) from error
