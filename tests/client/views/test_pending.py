"""What a message waits behind."""

from __future__ import annotations

from shared.client import Client
from shared.client.views import pending


async def test_a_message_waits_behind_the_oldest_of_its_conversation_and_of_no_other(
    client: Client,
) -> None:
    await client.bus.command("SADD", client.names.agents, "chatter")  # somebody was here once
    first = await client.say("Build a\nguest book", "ada")
    other = await client.say("Hello", "bob")
    second = await client.say("and a fence", "ada")
    assert await pending.behind(client, "user:ada", second.id) == "Build a guest book"
    assert await pending.behind(client, "user:ada", first.id) == ""
    assert await pending.behind(client, "user:bob", other.id) == ""
