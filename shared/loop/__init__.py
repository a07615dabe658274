"""Think, ask for permission, act, think: a turn until its answer. It is handed model, act, leave and journal."""

from shared.loop.base import Act, Call, Done, Journal, Leave, Limits, Live, Outcome, Verdict
from shared.loop.run import run

__all__ = [
    "Act",
    "Call",
    "Done",
    "Journal",
    "Leave",
    "Limits",
    "Live",
    "Outcome",
    "Verdict",
    "run",
    "tell_again",
]
