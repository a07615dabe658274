"""Who is known, and taking one off the roster."""

from __future__ import annotations

import pytest

from shared.client import Client
from shared.client.views import agents
from shared.errors import UsageError


async def states(client: Client) -> dict[str, tuple[str, str]]:
    return {one.name: (one.state, one.kind) for one in await agents.known(client)}


async def test_agents_are_known_whether_they_are_here_or_not(client: Client) -> None:
    await client.reach()
    await client.presence.beat("planner", "p-1", {"status": "idle"})
    await client.presence.beat("planner", "p-2", {"status": "working"})
    await client.bus.command("SADD", client.names.agents, "scribe")
    found = await states(client)
    assert found["planner"] == ("working", "builtin")
    assert found["chatter"] == ("offline", "builtin")
    assert found["scribe"] == ("offline", "foreign")


@pytest.mark.parametrize(("name", "why"), [("planner", "every cluster"), ("nobody", "there is no agent")])
async def test_whom_a_cluster_needs_or_nobody_knows_is_not_forgotten(
    client: Client, name: str, why: str
) -> None:
    with pytest.raises(UsageError, match=why):
        await agents.forget(client, name, force=True)


async def test_one_that_is_here_is_not_forgotten(client: Client) -> None:
    await client.reach()
    await client.presence.beat("scribe", "s-1", {"status": "idle"})
    with pytest.raises(UsageError, match="scribe is here"):
        await agents.forget(client, "scribe", force=True)


async def test_what_waits_for_one_that_is_gone_goes_with_it_only_by_force(client: Client) -> None:
    await client.reach()
    await client.bus.command("SADD", client.names.agents, "scribe")
    await client.bus.command("XADD", f"{client.names.queue('scribe')}dead", "*", "id", "m", "data", "{}")
    with pytest.raises(UsageError, match="1 dead letters lie in its queue"):
        await agents.forget(client, "scribe", force=False)
    assert await agents.forget(client, "scribe", force=True) == 1
    assert "scribe" not in await states(client)
