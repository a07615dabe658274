"""What became of a task's work, over what was tried since."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from shared.store.records import TaskEvent
from shared.store.row import new_id
from shared.tasks import fate
from tests.support.sqlite import opened

Told = tuple[str, dict[str, Any]]
AGAIN: Told = ("started", {})
NOTHING: Told = ("completed", {"unchanged": True})
WORK: Told = ("completed", {})
MERGED: Told = ("merged", {})


@pytest.mark.parametrize(
    ("history", "became", "in_main"),
    [
        ([AGAIN, WORK], None, False),
        ([AGAIN, WORK, MERGED], "merged", True),
        ([AGAIN, WORK, MERGED, AGAIN], None, True),
        ([AGAIN, WORK, MERGED, AGAIN, NOTHING], "merged", True),
        ([AGAIN, WORK, MERGED, AGAIN, AGAIN, NOTHING], "merged", True),
        ([AGAIN, WORK, MERGED, AGAIN, WORK], None, True),
        ([AGAIN, WORK, MERGED, ("unmerged", {}), AGAIN, NOTHING], None, False),
        ([AGAIN, NOTHING], None, False),
        ([AGAIN, WORK, MERGED, ("discarded", {})], "merged", True),
        ([AGAIN, WORK, MERGED, AGAIN, WORK, ("discarded", {})], "merged", True),
        ([AGAIN, WORK, MERGED, ("unmerged", {}), ("discarded", {})], "discarded", False),
    ],
)
async def test_an_attempt_that_changes_nothing_leaves_the_work_what_it_was(
    tmp_path: Path, history: list[Told], became: str | None, in_main: bool
) -> None:
    task, at = new_id(), datetime(2026, 1, 1, tzinfo=UTC)
    async with opened(tmp_path) as store:
        await store.upsert(
            [
                TaskEvent(
                    id=new_id(),
                    task_id=task,
                    event=event,
                    detail=detail,
                    created_at=at + timedelta(seconds=n),
                )
                for n, (event, detail) in enumerate(history)
            ]
        )
        assert (await fate.fates(store, [task])).get(task) == became
        assert await fate.was_merged(store, task) == in_main
