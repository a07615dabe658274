"""What the person was not shown comes with their next message, until a gateway acknowledges it."""

from __future__ import annotations

import pytest

from shared.turns.queue import Claim, Keep, Queue
from tests.turns.ground import claimed, closing, lapse, mail, state

OUT = "chatter-output"


async def answered(desk: Queue, id: str, keep: Keep = "shown") -> None:
    """A message, and the turn that answers it with `to <id>`."""
    await desk.post(mail(id))
    claim = await claimed(desk)
    await desk.finish("s", claim.epoch, closing(f"to {id}", keep=keep))


async def later(desk: Queue) -> None:
    """Until the server's clock has gone on, by whose milliseconds what is said and sent is put in order."""

    async def moment() -> int:
        seconds, microseconds = await desk.bus.command("TIME")
        return int(seconds) * 1000 + int(microseconds) // 1000

    now = await moment()
    while await moment() == now:
        pass


async def written(desk: Queue, id: str = "next") -> Claim:
    """The person writes again."""
    await later(desk)
    await desk.post(mail(id))
    return await claimed(desk)


def texts(claim: Claim) -> list[str]:
    return [text.decode() for _, text in claim.untold]


async def test_an_answer_that_nobody_was_shown_comes_with_the_next_message(desk: Queue) -> None:
    await answered(desk, "m1")
    await desk.announce(OUT, "news", "s", "news")
    await desk.announce(OUT, "of another", "s2", "always")
    assert texts(await written(desk)) == ["to m1", "news"]


async def test_what_was_acknowledged_does_not_come_again(desk: Queue) -> None:
    await answered(desk, "m1")
    await answered(desk, "m2")
    claim = await written(desk)
    await desk.shown("s", claim.untold[0][0])
    await lapse(desk)
    assert texts(await claimed(desk, "w2")) == ["to m2"]


async def test_a_message_that_was_typed_ahead_brings_no_answer_that_was_on_its_way(desk: Queue) -> None:
    await desk.post(mail("m1"))
    claim = await claimed(desk)
    await desk.post(mail("m2"))
    await later(desk)
    await desk.finish("s", claim.epoch, closing("to m1", keep="shown"))
    assert texts(await claimed(desk)) == []


@pytest.mark.parametrize(("keep", "kept"), [("", []), ("news", []), ("always", ["news"])])
async def test_where_no_gateway_acknowledges_only_what_nobody_heard_is_kept(
    desk: Queue, keep: Keep, kept: list[str]
) -> None:
    await answered(desk, "m1", keep="")
    await desk.announce(OUT, "news", "s", keep)
    assert texts(await written(desk)) == kept


async def test_what_is_told_again_is_kept_in_its_new_words_and_once(desk: Queue) -> None:
    await answered(desk, "m1")
    claim = await written(desk)
    [(id, _)] = claim.untold
    for _ in range(2):  # a worker that took over says it no second time
        await desk.tell("s", claim.epoch, OUT, "away: to m1", "shown", id)
    await desk.finish("s", claim.epoch, closing("end"))
    assert (await state(desk)).said == ["to m1", "away: to m1", "end"]
    assert texts(await written(desk, "after")) == ["away: to m1"]


async def test_what_is_acknowledged_at_the_last_moment_is_not_told_again(desk: Queue) -> None:
    await answered(desk, "m1")
    claim = await written(desk)
    [(id, _)] = claim.untold
    await desk.shown("s", id)
    await desk.tell("s", claim.epoch, OUT, "away: to m1", "shown", id)
    assert (await state(desk)).said == ["to m1"]


async def test_of_what_is_never_acknowledged_the_newest_fifty_are_kept(desk: Queue) -> None:
    for number in range(60):
        await desk.announce(OUT, str(number), "s", "always")
    assert texts(await written(desk)) == [str(number) for number in range(10, 60)]
