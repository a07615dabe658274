"""`webhook`: programs that are told by HTTP of what happens, signed."""

from __future__ import annotations

from gateways.cli import subscribing

app = subscribing.commands(
    "webhook",
    usual="attention,task",
    adds="Tell a program of events: POST, signed as Standard Webhooks says. Its secret is shown once.",
    tests="Send one event now, and say how it went.",
)
