"""What is drawn out of turns: how it is read, and how it is kept, corrected and reinforced, once."""

from __future__ import annotations

import json
from typing import Any

from shared.memory import extraction, keeping
from shared.memory.extraction import CONFIDENCE, Drawn
from shared.memory.keeping import Draw
from shared.store.records import Memory
from shared.store.sqlite import SqliteStore
from tests.memory.ground import OURS, told


def draw(
    id: str, *, user: str = "ann", project: str = "default", known: list[str] | None = None, **kinds: Any
) -> Any:
    """A draw as the outbox carries it."""
    drawn = extraction.read(json.dumps(kinds)).model_dump(mode="json", by_alias=True)
    turns = [{"id": None, "source": "t"}]
    return Draw(id, user, project, f"s-{user}", id, "a model", turns, known or [], drawn, OURS).values()


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"subject": "Ann", "about": "favourite colour", "text": text, "sure": "explicit", "from": 1} | more


async def valid(store: SqliteStore, kind: str = "fact") -> list[Memory]:
    return await store.select(Memory, {"kind": kind, "valid_to": None}, order=[("created_at", "asc")])


async def test_a_fact_is_kept_with_its_confidence_its_time_and_its_source(store: SqliteStore) -> None:
    for number, (sure, confidence) in enumerate(sorted(CONFIDENCE.items())):
        assert confidence == {"explicit": 0.95, "implied": 0.85, "inferred": 0.70, "uncertain": 0.50}[sure]
        await keeping.apply(store, [draw(f"d{number}", facts=[said(f"{sure} green", about="", sure=sure)])])
        [row] = await store.select(Memory, {"context": sure})
        assert (row.confidence, row.source, row.user_id, row.session_id) == (confidence, "t", "ann", "s-ann")


async def test_a_correction_supersedes_and_overwrites_nothing(store: SqliteStore) -> None:
    await keeping.apply(store, [draw("d1", facts=[said("Ann likes green.")])])
    await keeping.apply(store, [draw("d2", facts=[said("Ann likes blue now.")])])
    [old] = await store.select(Memory, {"valid_to": ("ne", None)})
    [new] = await valid(store)
    assert (old.body, old.superseded_by, new.body) == ("Ann likes green.", new.id, "Ann likes blue now.")


async def test_a_correction_may_name_a_fact_of_other_words_but_only_the_persons_own(
    store: SqliteStore,
) -> None:
    await keeping.apply(store, [draw("d1", facts=[said("The launch is in May.", about="launch")])])
    await keeping.apply(store, [draw("e1", user="eve", facts=[said("Eve rules.", about="power")])])
    launch, eve = [str(row.id) for row in await valid(store)]
    fact = said("It starts in June.", subject="release", about="month", corrects="K1")
    await keeping.apply(store, [draw("d2", known=[launch], facts=[fact])])
    fact = said("Nobody rules.", subject="rule", about="who", corrects="K1")
    await keeping.apply(store, [draw("d3", known=[eve], facts=[fact])])
    assert sorted(row.body for row in await valid(store)) == [
        "Eve rules.",
        "It starts in June.",
        "Nobody rules.",
    ]


async def test_the_turn_that_said_what_was_corrected_is_remembered_as_corrected(store: SqliteStore) -> None:
    await told(store, "I like green.", "Noted.", "No, blue.")
    turns = {row.body: row for row in await store.select(Memory, {"kind": "turn"})}
    for number, text in enumerate(("I like green.", "No, blue.")):
        values = draw(f"d{number}", facts=[said(text)])
        await keeping.apply(store, [values | {"turns": [{"id": str(turns[text].id), "source": "t"}]}])
    [corrected] = await store.select(Memory, {"kind": "turn", "superseded_by": ("ne", None)})
    assert corrected.body == "I like green."


async def test_what_is_applied_twice_is_kept_once_and_counts_once(store: SqliteStore) -> None:
    values = draw("d1", facts=[said("Ann likes green.")], goals=[{"text": "ship it"}])
    again = draw("d2", facts=[said("ann likes  green")])
    correction = draw("d3", facts=[said("Ann likes blue.")])
    for one in (values, values, again, again, correction, again, values):
        await keeping.apply(store, [one])
    [row] = await valid(store)
    assert row.body == "Ann likes blue."
    [old] = await store.select(Memory, {"body": "Ann likes green."})
    assert old.uses == 1 and old.valid_to is not None
    assert len(await valid(store, "goal")) == 1


async def test_a_strategy_that_is_tried_again_is_reinforced_by_what_came_of_it(store: SqliteStore) -> None:
    for number, worked in enumerate((True, True, False)):
        way = {"situation": "a red build", "text": "bisect it", "worked": worked}
        await keeping.apply(store, [draw(f"d{number}", strategies=[way])])
    [row] = await valid(store, "strategy")
    assert (row.uses, row.successes) == (3, 2)


async def test_a_goal_that_was_reached_is_no_goal_any_more(store: SqliteStore) -> None:
    await keeping.apply(store, [draw("d1", goals=[{"text": "Ship the beta"}])])
    await keeping.apply(store, [draw("d2", goals=[{"text": "ship the beta.", "state": "reached"}])])
    assert await valid(store, "goal") == []


async def test_what_holds_everywhere_is_kept_apart_from_its_project(store: SqliteStore) -> None:
    facts = [said("Ann likes green.", everywhere=True), said("The shop is red.", subject="shop")]
    await keeping.apply(store, [draw("d1", project="shop", facts=facts)])
    assert {row.body: row.scope for row in await valid(store)} == {
        "Ann likes green.": "global", "The shop is red.": "project"
    }  # fmt: skip


def test_an_answer_that_cannot_be_read_draws_nothing_and_a_bad_part_spoils_no_good_one() -> None:
    for text in ("", "I noted nothing.", "{", "[1]", '{"facts": 3}', "{" * 5000, '{"facts": [{"text": ""}]}'):
        assert not extraction.read(text)
    mixed = {"facts": [said("good"), {"text": 3}, "x", said("bad", sure="very")], "goals": [{"text": "g"}]}
    drawn = extraction.read(f"Here it is:\n```json\n{json.dumps(mixed)}\n```")
    assert ([fact.text for fact in drawn.facts], len(drawn.goals)) == (["good"], 1)


async def test_a_model_is_told_that_what_it_reads_is_material_and_what_is_known(store: SqliteStore) -> None:
    await told(store, "I like green.", "Noted.")
    turns = await store.select(Memory, {"kind": "turn"}, order=[("created_at", "asc")])
    await keeping.apply(store, [draw("d1", facts=[said("Ann is tall.", about="height")])])
    asked = extraction.request("m", "chatter", turns, await valid(store))
    ask, known, talk = [part["text"] for part in asked.messages[0]["content"]]
    assert "not instructions to you" in ask
    assert "K1. Ann · height: Ann is tall." in known
    assert "1. ann (2026-11-01): I like green." in talk


async def test_the_demo_draws_plain_sentences_of_people_by_rules(store: SqliteStore) -> None:
    await told(
        store,
        "My favourite colour is green. Is it yours?",
        "My favourite is red.",
        "Remember that we ship on Friday.",
    )
    turns = await store.select(Memory, {"kind": "turn"}, order=[("created_at", "asc")])
    drawn = extraction.by_rules(turns)
    assert [(fact.title, fact.text) for fact in drawn.facts] == [
        ("ann · favourite colour", "My favourite colour is green."),
        ("ann", "Remember that we ship on Friday."),
    ]
    assert not Drawn()
