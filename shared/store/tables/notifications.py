"""Who is told of what outside of the cluster, and what is on its way to them."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from pydantic import Field

from shared.store.row import Changing, Json, Time, Versioned, Whole, now

Transport = Literal["webhook", "push"]
DeliveryState = Literal["pending", "delivered", "dead", "quiet"]


class Subscription(Versioned):
    """One address that hears of events. `address` is sealed, `shown` is what lists show of it."""

    table = "subscriptions"
    unique = (("slug",),)
    index = (("user_id",),)

    slug: str
    transport: Transport
    address: str
    shown: str
    user_id: str
    project_id: UUID | None = None  # events of this project, instead of those of its person
    everything: bool = False  # events of everybody
    events: list[str]
    enabled: bool = True
    delivered_at: Time | None = None
    failing_since: Time | None = None
    error: str = ""


class Delivery(Changing):
    """One event on its way to one address; of a subject, what came first goes first."""

    table = "deliveries"
    index = (("subscription_id", "state", "position"), ("state", "created_at"))

    subscription_id: UUID
    event: str
    subject: str = ""
    position: Whole = 0  # milliseconds since 1970
    body: Json
    state: DeliveryState = "pending"
    tries: Whole = 0
    due_at: Time = Field(default_factory=now)
    status: Whole | None = None  # what the receiver answered last
    error: str = ""
    ended_at: Time | None = None
