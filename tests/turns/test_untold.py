"""What the person was not shown comes with their next message, until a gateway acknowledges it."""

from __future__ import annotations

import pytest

from shared.turns.queue import Claim, Keep, Queue
from tests.turns.ground import claimed, closing, lapse, mail, state

OUT = "chatter-output"


async def answered(queue: Queue, id: str, keep: Keep = "shown") -> None:
    """A message, and the turn that answers it with `to <id>`."""
    await queue.post(mail(id))
    claim = await claimed(queue)
    await queue.finish("s", claim.epoch, closing(f"to {id}", keep=keep))


async def later(queue: Queue) -> None:
    """Until the server's clock has gone on, by whose milliseconds what is said and sent is put in order."""

    async def moment() -> int:
        seconds, microseconds = await queue.bus.command("TIME")
        return int(seconds) * 1000 + int(microseconds) // 1000

    now = await moment()
    while await moment() == now:
        pass


async def written(queue: Queue, id: str = "next") -> Claim:
    """The person writes again."""
    await later(queue)
    await queue.post(mail(id))
    return await claimed(queue)


def texts(claim: Claim) -> list[str]:
    return [text.decode() for _, text in claim.untold]


async def test_an_answer_that_nobody_was_shown_comes_with_the_next_message(queue: Queue) -> None:
    await answered(queue, "m1")
    await queue.announce(OUT, "news", "s", "news")
    await queue.announce(OUT, "of another", "s2", "always")
    assert texts(await written(queue)) == ["to m1", "news"]


async def test_what_was_acknowledged_does_not_come_again(queue: Queue) -> None:
    await answered(queue, "m1")
    await answered(queue, "m2")
    claim = await written(queue)
    await queue.acknowledge("s", claim.untold[0][0])
    await lapse(queue)
    assert texts(await claimed(queue, "w2")) == ["to m2"]


async def test_a_message_that_was_typed_ahead_brings_no_answer_that_was_on_its_way(queue: Queue) -> None:
    await queue.post(mail("m1"))
    claim = await claimed(queue)
    await queue.post(mail("m2"))
    await later(queue)
    await queue.finish("s", claim.epoch, closing("to m1", keep="shown"))
    assert texts(await claimed(queue)) == []


@pytest.mark.parametrize(("keep", "kept"), [("", []), ("news", []), ("always", ["news"])])
async def test_where_no_gateway_acknowledges_only_what_nobody_heard_is_kept(
    queue: Queue, keep: Keep, kept: list[str]
) -> None:
    await answered(queue, "m1", keep="")
    await queue.announce(OUT, "news", "s", keep)
    assert texts(await written(queue)) == kept


async def test_what_is_told_again_is_kept_in_its_new_words_and_once(queue: Queue) -> None:
    await answered(queue, "m1")
    claim = await written(queue)
    [(id, _)] = claim.untold
    for _ in range(2):  # a worker that took over says it no second time
        await queue.send("s", claim.epoch, OUT, "away: to m1", "shown", id)
    await queue.finish("s", claim.epoch, closing("end"))
    assert (await state(queue)).said == ["to m1", "away: to m1", "end"]
    assert texts(await written(queue, "after")) == ["away: to m1"]


async def test_what_is_acknowledged_at_the_last_moment_is_not_told_again(queue: Queue) -> None:
    await answered(queue, "m1")
    claim = await written(queue)
    [(id, _)] = claim.untold
    await queue.acknowledge("s", id)
    await queue.send("s", claim.epoch, OUT, "away: to m1", "shown", id)
    assert (await state(queue)).said == ["to m1"]


async def test_of_what_is_never_acknowledged_the_newest_fifty_are_kept(queue: Queue) -> None:
    for number in range(60):
        await queue.announce(OUT, str(number), "s", "always")
    assert texts(await written(queue)) == [str(number) for number in range(10, 60)]
