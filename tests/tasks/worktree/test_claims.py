"""Two tasks about to change one file learn of each other before they do."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from shared.bus.keys import Names
from shared.bus.redis import RedisBus
from shared.tasks.worktree import claims
from shared.tasks.worktree.claims import Claims
from tests.support.valkey import names, redis, valkey

__all__ = ["names", "redis", "valkey"]


async def test_both_are_told_and_each_once(redis: RedisBus, names: Names) -> None:
    one, two = Claims(redis, names, "r", "one"), Claims(redis, names, "r", "two")
    elsewhere = Claims(redis, names, "another", "three")
    assert await one.claim("a.py") == [] and await elsewhere.claim("a.py") == []
    assert await two.claim("a.py") == ["one"] and await two.claim("b.py") == []
    assert await one.told() == ["The task two is about to change a.py, as you do."]
    assert await two.claim("a.py") == ["one"] and await one.told() == []


async def test_a_task_that_ended_or_died_holds_nothing(
    redis: RedisBus, names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = Claims(redis, names, "r", "one"), Claims(redis, names, "r", "two")
    await one.claim("a.py")
    await one.release()
    assert await two.claim("a.py") == []
    three, hour = Claims(redis, names, "r", "three"), 3600.0
    with monkeypatch.context() as earlier:
        earlier.setattr(claims, "time", SimpleNamespace(time=lambda: time.time() - hour))
        await three.claim("c.py")
    assert await one.claim("c.py") == []
    assert await three.claim("c.py") == ["one"]  # it lives after all, and says so again
