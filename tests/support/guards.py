"""`guarded`: a test of a guard that runs twice, with the guard and, the other way round, without it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import pytest

from shared import failpoints
from shared.failpoints import Guard

Test = Callable[..., Any]


def guarded(*names: Guard) -> Callable[[Test], Test]:
    """The test below must pass, and must fail with an AssertionError where these guards are taken away.

    So it asserts that the harm did not happen: `assert not canary.exists()`. The guards are away in this process
    and in all that the test itself starts; what a fixture started before has them.
    """

    def around(test: Test) -> Test:
        @functools.wraps(test)
        async def run(*arguments: Any, guard: str, monkeypatch: pytest.MonkeyPatch, **fixtures: Any) -> None:
            if "monkeypatch" in wanted:
                fixtures["monkeypatch"] = monkeypatch
            if guard == "there":
                await _finished(test(*arguments, **fixtures))
                return
            monkeypatch.setenv("PROMPTDOCK_WITHOUT", ",".join(names))
            failpoints.read()
            try:
                await _finished(test(*arguments, **fixtures))
            except AssertionError:
                return
            pytest.fail(f"the attack did nothing, although {', '.join(names)} is taken away")

        wanted = inspect.signature(test).parameters
        kept = [one for one in wanted.values() if one.name != "monkeypatch"]
        more = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in ("guard", "monkeypatch")]
        setattr(run, "__signature__", inspect.Signature([*kept, *more]))  # noqa: B010 - mypy knows no such attribute
        twice: Test = pytest.mark.parametrize("guard", ["there", "taken away"])(run)
        return twice

    return around


async def _finished(result: Any) -> None:
    if inspect.isawaitable(result):
        await result
