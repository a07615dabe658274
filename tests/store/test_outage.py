"""A Supabase that dies under a running cluster: its endpoint, and the database behind it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.messages_api import MessagesApi
from tests.support.messages_script import Rules
from tests.support.postgres import Postgres
from tests.support.processes import Site, site, until
from tests.support.supabase_lite import SECRET, SupabaseLite
from tests.support.valkey import valkey
from tests.support.wire import Wire

__all__ = ["valkey"]

RULES: list[dict[str, Any]] = [{"steps": [{"text": "You said: {{user}}"}]}]


@pytest.fixture
def place(endpoint: SupabaseLite, valkey: str, tmp_path: Path) -> Iterator[Site]:
    """A Chatter whose Store is Supabase."""
    with MessagesApi(Rules(RULES)) as api:
        told = {
            "ANTHROPIC_API_KEY": "sk-ant-test-key-0000",
            "ANTHROPIC_BASE_URL": api.url,
            "SUPABASE_URL": endpoint.url,
            "SUPABASE_SERVICE_ROLE_KEY": SECRET,
        }
        with site(tmp_path / "site", valkey, **told) as made:
            made.up("chatter")
            yield made


@pytest.mark.timeout(300)  # the server's making and its removal count, too
def test_conversations_go_on_and_nothing_is_missing_or_double_when_it_is_back(
    place: Site, endpoint: SupabaseLite, postgres: Postgres
) -> None:
    with Wire(place.url, place.names) as wire:
        texts = [f"note {number}" for number in range(6)]
        wire.ask(texts[0], user="keeper")
        until(lambda: _rows(postgres), what="the first words in the store")
        postgres.crash()
        endpoint.kill()
        try:
            for text in texts[1:]:
                assert wire.ask(text, user="keeper")["content"].endswith(text)
            refused = wire.command("create_task", user="keeper", title="Wait", description="# Wait")
            assert refused["status"] == "error"
            assert "store" in refused["content"]
            assert len(_archive(wire)) > 0, "nothing waits for the store"
        finally:
            postgres.resume()
            endpoint.start()
        until(lambda: not _archive(wire), what="the archive being stored", told=place.workers[0].tail)
        assert wire.ask("and now?", user="keeper")["content"].endswith("and now?")
        until(lambda: len(_rows(postgres)) >= 2 * len(texts) + 2, what="the last words in the store")
    rows = _rows(postgres)
    assert [int(seq) for seq, _ in rows] == list(range(1, 2 * len(texts) + 3))
    assert [json.loads(content)[0]["text"].rpartition(": ")[2] for _, content in rows[::2]] == [
        *texts,
        "and now?",
    ]
    # Each message and its answer, the command and its refusal; what was said is stored a moment later.
    until(lambda: len(_sent(postgres)) >= 2 * len(texts) + 4, what="all that was said in the store")
    sent = _sent(postgres)
    assert ({count for _, count in sent}, len(sent)) == ({"1"}, 2 * len(texts) + 4)


def _sent(postgres: Postgres) -> list[list[str]]:
    return postgres.query("select message_id, count(*) from messages where user_id = 'keeper' group by 1")


def _rows(postgres: Postgres) -> list[list[str]]:
    return postgres.query(
        "select seq, content from conversation_messages where session_id = 'user:keeper' order by seq"
    )


def _archive(wire: Wire) -> list[Any]:
    found: Any = wire.redis.xrange(f"{wire.names.queue('chatter')}archive")
    return list(found)
