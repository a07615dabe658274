"""What a turn of a conversation remembers, and what is remembered of it; a message may want neither.

Recall stands in the newest message, behind the date: what comes before it stays byte for byte as the provider has
cached it. Nothing of it is ever in the way of the answer.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from shared import log
from shared.conversation.past import History
from shared.conversation.prompt import is_situation
from shared.conversation.window import FOREIGN
from shared.errors import PromptDockError
from shared.guard.permissions import marks
from shared.guard.permissions.display import tagless
from shared.memory import bundle, episodes, recall, scope
from shared.memory.episodes import TurnSide
from shared.redaction import conceal
from shared.store.base import Store
from shared.store.origin import Origin
from shared.store.records import Memory
from shared.turns.records import Record, RememberedRecord
from shared.turns.turn import Turn
from shared.worker.runners.inputs import TurnInput

_PATIENCE = 2.0  # seconds that an answer waits for what is remembered
_SAID = re.compile(r"\A\[from ([^\]\n]*)\]: ")


def wanted(given: TurnInput) -> bool:
    """Whether people speak in this turn, and all of them want it remembered."""
    return bool(given.said) and all(message.use_memory for message in given.said)


async def lines(store: Store, turn: Turn, given: TurnInput, project: str, past: History) -> list[str]:
    """What the model is told of earlier; noted in the journal, with the mark of what others wrote."""
    if not wanted(given) or turn.records.first(RememberedRecord):
        return []  # a successor sends what was sent before
    person = given.said[0].user_id
    query = "\n".join(message.content for message in given.said)[:4000]
    last = past.summary["last"] if past.summary else 0
    shown = frozenset((turn.session, int(item["seq"])) for item in past.window if item["seq"] > last)
    try:
        async with asyncio.timeout(_PATIENCE):
            reach = await scope.of(store, person, project)
            found = await recall.remember(store, query, reach, shown=shown)
    except (PromptDockError, TimeoutError) as error:
        log.get().warning("Nothing is remembered for this turn", why=str(error) or "it took too long")
        return []
    if not found.items:
        return []
    items = [item.record() for item in found.items]
    text = f"remembered {len(items)} of earlier"
    turn.keep(RememberedRecord(at=turn.now(), text=text, query=query[:500], items=items))
    marks.note(turn.records, turn.keep, found.foreign, "in what was remembered")
    return [tagless(conceal(line)) for line in bundle.lines(found)]


def rows(turn: Turn, given: TurnInput, added: Sequence[Record], project: str, agent: str) -> list[Memory]:
    """Both sides of what was said in a turn, as they are remembered."""
    if not wanted(given):
        return []
    person = given.said[0].user_id
    said = [one for record in added if (one := _utterance(turn, record, agent, person))]
    return episodes.rows(
        said, session=turn.session, user_id=person, project=project, turn_id=turn.id, agent=agent
    )


def _utterance(turn: Turn, record: Record, agent: str, person: str) -> TurnSide | None:
    blocks = [str(block["text"]) for block in record["content"] if block.get("type") == "text"]
    if record["role"] == "user":
        named = [found for text in blocks if (found := _SAID.match(text))]
        blocks = [_SAID.sub("", text, count=1) for text in blocks if _SAID.match(text)]
        speaker = named[0][1] if named else ""
    else:
        speaker = agent
        blocks = [text for text in blocks if not is_situation(text)]
    text = "\n".join(blocks).strip()
    if not text:
        return None
    origin = Origin(by=agent, user=person, session=turn.session, foreign=str(record[FOREIGN]))
    # Messages of one turn were kept in one moment; their rows are read in the order in which they were said.
    at = datetime.fromtimestamp(record["at"] / 1000, UTC) + timedelta(microseconds=record["seq"] % 1000)
    message = record.get("message_id") or (turn.id if record["role"] == "user" else None)
    return TurnSide(record["seq"], speaker, text, at, record["role"], message, origin.kept())
