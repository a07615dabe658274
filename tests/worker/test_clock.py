"""The time of a task: it ends the work, but for the time in which a person is asked."""

from __future__ import annotations

import asyncio

import pytest

from shared.worker.coding.clock import WorkClock


async def test_work_that_takes_too_long_is_ended() -> None:
    with pytest.raises(TimeoutError):
        async with WorkClock(60.0) as clock:
            clock._timeout.reschedule(asyncio.get_running_loop().time())
            await asyncio.Event().wait()


async def test_the_clock_stands_still_while_a_person_is_asked() -> None:
    loop = asyncio.get_running_loop()
    async with WorkClock(5.0) as clock:
        before = clock._timeout.when()
        assert before is not None
        clock.stand_still(True)
        assert clock._timeout.when() is None, "nothing ends it now"
        await asyncio.sleep(0)
        clock.stand_still(False)
        after = clock._timeout.when()
        assert after is not None
        assert after >= before
        assert after - loop.time() <= 5.0
