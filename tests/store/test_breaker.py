"""The breaker: a Store that fails is left alone for a moment, and what still works of it is used."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest

from shared.errors import StoreUnavailable
from shared.store.breaker import Breaker
from shared.store.records import Project
from shared.store.sqlite import SqliteStore


class Failing(SqliteStore):
    """A Store that counts how often it is asked in vain."""

    tried = 0

    def fail(self) -> NoReturn:
        self.tried += 1
        raise StoreUnavailable("the database is locked", "", "")


class Locked(Failing):
    """A Store that somebody else writes."""

    async def upsert(self, *_: object) -> None:
        self.fail()


class Down(Locked):
    """A Store that does not answer at all."""

    async def select(self, *_: object) -> NoReturn:
        self.fail()


async def test_what_cannot_be_written_now_is_read_still(tmp_path: Path) -> None:
    store = Locked(tmp_path / "store.db")
    await store.open()
    breaker = Breaker(store)
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            await breaker.upsert([])
        assert await breaker.select(Project, {"slug": "nothing"}) == []
    await store.close()
    assert store.tried == 1, "the second write waits for nothing"


async def test_what_cannot_be_read_is_neither_read_nor_written_for_a_moment(tmp_path: Path) -> None:
    store = Down(tmp_path / "store.db")
    breaker = Breaker(store)
    with pytest.raises(StoreUnavailable, match="locked"):
        await breaker.select(Project)
    with pytest.raises(StoreUnavailable, match="unavailable"):
        await breaker.select(Project)
    with pytest.raises(StoreUnavailable, match="unavailable"):
        await breaker.upsert([])
    assert store.tried == 1


async def test_a_store_that_failed_is_tried_again_after_the_pause(tmp_path: Path) -> None:
    store = Down(tmp_path / "store.db")
    breaker = Breaker(store, pause=0.0)
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="locked"):
            await breaker.select(Project)
    assert store.tried == 2
