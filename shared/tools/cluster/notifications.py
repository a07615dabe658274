"""Category notifications: who is told of what outside. For people alone, and only by the word of a gateway.

A gateway has looked who the person is, what they may see and where the address leads, and seals all that into an
order: whoever calls a tool by hand, or publishes on the bus, cannot write one.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from shared.errors import Conflict, Missing, ToolError
from shared.guard.permissions.touching import touching
from shared.notify import events
from shared.store.records import Delivery, Subscription, Transport
from shared.store.row import now
from shared.tools.context import Context
from shared.tools.registry import Category, Result

category = Category("notifications", "Who is told of what outside of the cluster")

SubscriptionName = Annotated[str, Field(min_length=1, max_length=60, pattern=r"^[a-z0-9][a-z0-9-]*$")]
SealedOrder = Annotated[str, Field(min_length=1, max_length=20_000)]
SubscriptionChange = Literal["remove", "test", "retry"]
_MOST = 100  # subscriptions of one cluster


def _spelled(arguments: dict[str, Any]) -> str:
    does = str(arguments.get("does") or arguments.get("transport") or "")
    return f"{does} {arguments.get('name') or ''} {arguments.get('shown') or ''}".strip()


@category.tool(effect="idempotent", detail=_spelled, personal=True, touches=touching("address", "schedule"))
async def add_subscription(
    here: Context, name: SubscriptionName, transport: Transport, shown: str, order: SealedOrder
) -> Result:
    """Tell an address of events from now on. `order` is a gateway's, which holds the address, sealed."""
    asked = _ordered(here, order, {"does": "add", "name": name, "transport": transport, "shown": shown})
    if await here.store.count(Subscription) >= _MOST:
        raise ToolError("there are too many subscriptions", f"{_MOST} are the most", "remove one")
    project = asked.get("project_id")
    row = Subscription(
        id=UUID(str(asked["id"])),
        slug=name,
        transport=transport,
        address=str(asked["address"]),
        shown=shown,
        user_id=here.user_id,
        project_id=UUID(str(project)) if project else None,
        everything=bool(asked.get("everything")),
        events=events.meant(map(str, asked["events"])),
    )
    try:
        await here.store.insert(row)
    except Conflict:
        there = await here.store.select(Subscription, {"id": row.id}, limit=1)
        if not there:  # else this very call was made before
            raise ToolError(f"{name} is there already", "", "give it another name, or remove that") from None
    return {"added": name, "events": row.events}


@category.tool(effect="idempotent", detail=_spelled, personal=True, touches=touching("schedule"))
async def change_subscription(
    here: Context, name: SubscriptionName, does: SubscriptionChange, order: SealedOrder
) -> Result:
    """Remove a subscription with what is on its way there, send a test, or try what could not be delivered again."""
    asked = _ordered(here, order, {"does": does, "name": name})
    rows = await here.store.select(Subscription, {"slug": name}, limit=1)
    if not rows or (rows[0].user_id != here.user_id and not asked.get("everything")):
        raise Missing(f"there is no subscription {name!r}", "", "")
    row = rows[0]
    if does == "remove":
        await here.store.delete(Delivery, {"subscription_id": row.id})
        await here.store.delete(Subscription, {"id": row.id})
        return {"removed": name}
    if does == "test":
        key = f"test {asked['id']}"
        sent = Delivery(
            id=UUID(str(asked["id"])),
            subscription_id=row.id,
            event=events.TEST,
            position=int(now().timestamp() * 1000),
            body=events.of_test(row, key).body(str(asked.get("page") or "")),
        )
        await here.store.upsert([sent])
        await _wake(here, row)
        return {"tested": name, "delivery": str(sent.id)}
    found = await here.store.update(
        Delivery,
        {"state": "pending", "due_at": now(), "created_at": now(), "tries": 0, "ended_at": None},
        {"subscription_id": row.id, "state": "dead"},
    )
    waiting = await here.store.update(
        Delivery, {"due_at": now()}, {"subscription_id": row.id, "state": "pending"}
    )
    await _wake(here, row)
    return {"retried": name, "dead": len(found), "waiting": len(waiting)}


async def _wake(here: Context, row: Subscription) -> None:
    """Have it looked at now: also one whose receiver wanted nothing more, since a person asks for it."""
    await here.store.update(Subscription, {"enabled": True}, {"id": row.id})


def _ordered(here: Context, order: str, said: dict[str, str]) -> dict[str, Any]:
    """What a gateway ordered for this person, and for nothing but what is said beside it."""
    person = here.need_person()
    if here.services is None:
        raise ToolError("nobody can read this order here", "this worker serves no conversations", "")
    asked = here.services.seal.ordered(order)
    if asked.get("user_id") != person or any(asked.get(name) != value for name, value in said.items()):
        raise ToolError("this order is for something else", "it was given for another person or call", "")
    return asked
