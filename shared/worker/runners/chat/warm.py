"""What a conversation loaded stays loaded while the provider's cache of it is warm.

Where tools cannot be deferred they stand before everything else: to leave one out voids all that is cached, and to
send the whole conversation anew costs more than a few tools that are read from the cache for a tenth of their price
(docs/benchmarks.md). Once the cache has gone cold everything is sent anew in any case, with the core tools alone.
"""

from __future__ import annotations

from shared.conversation.past import History
from shared.tools.view import loaded
from shared.turns.records import SituationRecord
from shared.turns.turn import Turn

FIELD = "loaded"  # of the last record that a turn adds to the window
WARM = 300_000  # milliseconds for which a provider keeps what it has read


def before(turn: Turn, past: History) -> list[str]:
    """What was loaded when the turn began, the same for a successor: by the moment that is in the journal."""
    begun = turn.records.first(SituationRecord)
    at = begun.at if begun else 0
    last = next((item for item in reversed(past.window) if FIELD in item), None)
    return [str(name) for name in last[FIELD]] if last and at - last["at"] <= WARM else []


def after(turn: Turn, past: History) -> list[str]:
    """What is loaded when it ends, in the order in which it was."""
    return list(dict.fromkeys([*before(turn, past), *loaded(turn.records)]))
