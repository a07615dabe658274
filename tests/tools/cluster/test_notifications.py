"""Subscriptions are made by a gateway's order alone, and for the person whom it is for."""

from __future__ import annotations

from typing import Any

import pytest

from shared.bus.signing import Signer
from shared.notify import events
from shared.notify.sealing import Seal
from shared.store.origin import PERSON
from shared.store.records import Delivery, Subscription, new_id, now
from tests.tools.bench import Bench

SAID: dict[str, Any] = {"name": "ci", "transport": "webhook", "shown": "https://ci.example"}
SEAL = Seal(Signer("x" * 64))


class Services:
    """A worker's, as far as it opens orders."""

    seal = SEAL


@pytest.fixture
def person(bench: Bench) -> Bench:
    bench.given |= {"agent": PERSON, "services": Services()}
    return bench


def order(**more: Any) -> str:
    given = {
        "does": "add",
        "user_id": "ada",
        "id": str(new_id()),
        "address": SEAL.close("https://ci.example/s"),
    }
    return SEAL.order(**{**given, "events": ["task"], **SAID, **more})


async def test_an_order_makes_a_subscription_once(person: Bench) -> None:
    given = order()
    for _ in range(2):  # a crash may run it again
        assert await person.ok("add_subscription", **SAID, order=given) == {
            "added": "ci",
            "events": list(events.GROUPS["task"]),
        }
    [row] = await person.store.select(Subscription)
    assert (row.user_id, row.everything, SEAL.open(row.address)) == ("ada", False, "https://ci.example/s")
    assert "is there already" in (await person.run("add_subscription", **SAID, order=order()))["error"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"user_id": "eve"},
        {"does": "remove"},
        {"name": "other"},
        {"transport": "push"},
        {"shown": "https://elsewhere.example"},
    ],
)
async def test_an_order_is_for_nothing_but_what_it_says(person: Bench, wrong: dict[str, str]) -> None:
    assert "something else" in (await person.run("add_subscription", **SAID, order=order(**wrong)))["error"]
    assert await person.store.count(Subscription) == 0


async def test_nobody_writes_an_order_themselves(person: Bench) -> None:
    for forged in ("x", Seal(Signer("y" * 64)).order(**SAID, does="add", user_id="ada")):
        assert "not ours" in (await person.run("add_subscription", **SAID, order=forged))["error"]
    by_model = await person.run("add_subscription", here={"agent": "chatter"}, **SAID, order=order())
    assert "only a person" in by_model["error"]


async def changed(bench: Bench, does: str, **more: Any) -> dict[str, Any]:
    given = {"does": does, "name": "ci", "user_id": "ada", "id": str(new_id()), "page": "http://dock.example"}
    return await bench.run("change_subscription", name="ci", does=does, order=SEAL.order(**{**given, **more}))


async def test_what_was_given_up_is_tried_again_and_a_test_is_one_more(person: Bench) -> None:
    await person.ok("add_subscription", **SAID, order=order())
    [row] = await person.store.select(Subscription)
    await person.store.update(Subscription, {"enabled": False}, {"id": row.id})
    dead = Delivery(
        subscription_id=row.id, event="task.failed", body={}, state="dead", tries=9, ended_at=now()
    )
    await person.store.insert(dead)
    assert await changed(person, "retry") == {"retried": "ci", "dead": 1, "waiting": 1}
    [again] = await person.store.select(Delivery)
    assert (again.state, again.tries) == ("pending", 0)
    assert (await person.store.select(Subscription))[0].enabled
    tested = await changed(person, "test")
    [test] = await person.store.select(Delivery, {"event": "test"})
    assert str(test.id) == tested["delivery"]
    assert await changed(person, "remove") == {"removed": "ci"}
    assert await person.store.count(Delivery) == await person.store.count(Subscription) == 0


async def test_only_their_own_is_changed_unless_a_gateway_knows_them_as_the_owner(person: Bench) -> None:
    await person.ok("add_subscription", **SAID, order=order())
    await person.store.update(Subscription, {"user_id": "bob"}, {"slug": "ci"})
    assert "there is no" in (await changed(person, "remove"))["error"]
    assert await changed(person, "remove", everything=True) == {"removed": "ci"}
