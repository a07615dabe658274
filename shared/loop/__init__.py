"""Think, ask for permission, act, think: a turn until its answer. It is handed model, act, permit and journal."""

from shared.loop.base import Act, AskPermission, Call, Done, Journal, Limits, Outcome, PublishEvent, Verdict
from shared.loop.run import run

__all__ = [
    "Act",
    "AskPermission",
    "Call",
    "Done",
    "Journal",
    "Limits",
    "Outcome",
    "PublishEvent",
    "Verdict",
    "run",
    "tell_again",
]
