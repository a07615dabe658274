"""What a message waits behind."""

from __future__ import annotations

from shared.client import Client
from shared.client.views import pending


async def test_a_message_waits_behind_the_oldest_of_its_conversation_and_of_no_other(
    visitor: Client,
) -> None:
    await visitor.bus.command("SADD", visitor.names.agents, "chatter")  # somebody was here once
    first = await visitor.say("Build a\nguest book", "ada")
    other = await visitor.say("Hello", "bob")
    second = await visitor.say("and a fence", "ada")
    assert await pending.behind(visitor, "user:ada", second.id) == "Build a guest book"
    assert await pending.behind(visitor, "user:ada", first.id) == ""
    assert await pending.behind(visitor, "user:bob", other.id) == ""
