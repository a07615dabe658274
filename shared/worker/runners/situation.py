"""What holds while a turn is carried out, as its newest message ends with it: the one place that says so.

It is noted in the journal: a successor sends what was sent before, byte for byte, and the conversation keeps it.
"""

from __future__ import annotations

from collections.abc import Sequence

from shared.conversation import prompt
from shared.turns.records import SituationRecord
from shared.turns.turn import Turn


def of(turn: Turn, project: str, told: Sequence[str] = (), news: Sequence[str] = ()) -> str:
    """The situation of a turn, as it was when it began in `project`; `told` are lines beside the date, `news` what
    changed around the conversation.
    """
    record = turn.records.first(SituationRecord)
    if record is None:
        text = prompt.situation([*news, prompt.active_project(project), *told])
        record = SituationRecord(at=turn.claimed_at + turn.elapsed_ms(), text=text, project=project)
        turn.keep(record)
    return record.text


def project(turn: Turn) -> str:
    """The project in which the turn began, whoever began it; "" where it did not begin."""
    record = turn.records.first(SituationRecord)
    return record.project if record else ""
