"""`notify`: people who are told on their phone, by mail or in a chat of what needs them."""

from __future__ import annotations

from gateways.cli import subscribing

app = subscribing.commands(
    "push",
    usual="attention",
    adds="Tell a person of what needs them, by any service of apprise, such as ntfy://TOPIC. The address is never "
    "shown again.",
    tests="Send one notification now, and say how it went.",
)
