"""A library that takes long to import is loaded beside the work, and given up when nobody waits for it."""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path

import pytest

from shared.models.loading import load
from tests.models.conftest import until


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A library of two parts; between them it waits until the test lets it go on."""
    (tmp_path / "slowlib.py").write_text(
        "import builtins\nbuiltins.slowlib_began.set()\nbuiltins.slowlib_goes_on.wait(30)\nimport slowlib_rest\n"
    )
    (tmp_path / "slowlib_rest.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("builtins.slowlib_began", threading.Event(), raising=False)
    monkeypatch.setattr("builtins.slowlib_goes_on", threading.Event(), raising=False)
    for name in ("slowlib", "slowlib_rest"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return "slowlib"


async def _begun(slow: str) -> asyncio.Task[None]:
    import builtins

    task = asyncio.create_task(load(slow))
    await until(builtins.slowlib_began.is_set)  # type: ignore[attr-defined]
    return task


async def test_it_is_loaded_while_the_loop_goes_on(slow: str) -> None:
    import builtins

    task = await _begun(slow)
    builtins.slowlib_goes_on.set()  # type: ignore[attr-defined]
    await task
    assert {"slowlib", "slowlib_rest"} <= sys.modules.keys()


async def test_one_that_is_given_up_loads_no_further_part(slow: str) -> None:
    import builtins

    task = await _begun(slow)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    builtins.slowlib_goes_on.set()  # type: ignore[attr-defined]
    await until(lambda: "slowlib" not in sys.modules)
    assert not {"slowlib", "slowlib_rest"} & sys.modules.keys()


async def test_a_library_that_is_missing_is_told() -> None:
    with pytest.raises(ImportError, match="no_such_library"):
        await load("no_such_library")
