"""How full a conversation's window is, as its person is told."""

from __future__ import annotations

import pytest

from shared.conversation.fullness import fullness
from shared.conversation.past import History
from shared.store.records import TurnStep
from shared.store.sqlite import SqliteStore
from tests.conversation.ground import turns


async def _called(store: SqliteStore, model: str, provider: str) -> None:
    detail = {"usage": [40_000, 500, 10_000, 0], "model": model, "provider": provider}
    await store.insert(
        TurnStep(turn_id="t0", session_id="s", agent="chatter", number=1, kind="model", detail=detail)
    )


@pytest.mark.parametrize("provider", ["anthropic", "an address of one's own"])
async def test_the_tokens_of_the_last_call_are_told_beside_what_its_model_takes(
    store: SqliteStore, provider: str
) -> None:
    await _called(store, "claude-sonnet-4-5", provider)
    found = await fullness(store, "s", History(turns(4), 4))
    assert (found.tokens, found.limit, found.percent) == (50_000, 200_000, 25)
    assert "50,000 of the 200,000 tokens that claude-sonnet-4-5 takes (25 %)" in found.told()
    assert found.card()["percent"] == 25


async def test_of_a_model_that_no_list_knows_the_tokens_alone_are_told(store: SqliteStore) -> None:
    await _called(store, "grandmas-own", "openai")
    found = await fullness(store, "s", History(turns(4), 4))
    assert found.percent is None and "sent 50,000 tokens to grandmas-own" in found.told()
