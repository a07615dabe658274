"""A person's threads, as Chatter's tools see and end them."""

from __future__ import annotations

import pytest

from shared.store.row import now
from shared.turns.threads import Thread, ThreadState
from tests.tools.bench import Bench


class Cluster:
    """Has one thread, and notes whether it was killed."""

    channel = "discord:7"

    def __init__(self, state: ThreadState) -> None:
        self.thread = Thread(self.channel, 2, "fence", state, "s:ada", "Paint it", now())
        self.killed: list[str] = []

    async def threads(self, channel: str = "") -> list[Thread]:
        return [self.thread] if channel in ("", self.channel) else []

    async def kill(self, thread: Thread, key: str) -> None:
        self.killed.append(thread.session)


@pytest.mark.parametrize("state", ["running", "waiting for permission"])
async def test_a_thread_in_which_something_is_done_is_killed(bench: Bench, state: ThreadState) -> None:
    cluster = Cluster(state)
    told = await bench.run("kill_thread", number=2, here={"cluster": cluster})
    assert (told["was"], cluster.killed) == (state, ["fence"])


async def test_one_that_is_finished_is_said_to_be_and_nothing_is_sent_into_it(bench: Bench) -> None:
    cluster = Cluster("completed")
    assert "#2 is finished" in await bench.no("kill_thread", number=2, here={"cluster": cluster})
    assert cluster.killed == []


async def test_one_that_was_killed_is_not_killed_again_by_a_call_that_is_made_again(bench: Bench) -> None:
    cluster = Cluster("killed")
    told = await bench.run("kill_thread", number=2, here={"cluster": cluster})
    assert (told["was"], cluster.killed) == ("killed", [])
