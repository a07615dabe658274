"""What a chat shows as it opens: how the conversation ended, what its person was not shown, and what is open."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from shared.bus.messages import Output
from shared.client import Client, last_words
from shared.client.text import times
from shared.client.text.safe import line
from shared.client.types import Heard
from shared.client.views import questions as asked
from shared.client.views.permissions import approvals
from shared.errors import PromptDockError

_AWAY = "While you were away: "
_QUOTED = 60  # characters of what was said before


@dataclass(frozen=True)
class Entry:
    """`at` is in seconds since 1970; `notes` stand above the output; `heard` is what nobody had been shown."""

    at: float
    notes: tuple[str, ...] = ()
    output: Output | None = None
    heard: Heard | None = None


async def entries(client: Client, session: str, user: str) -> list[Entry]:
    """In the order in which they came; without the Store those that Redis has."""
    last: last_words.Last | None = None
    questions: dict[str, asked.Question] | None = None
    with contextlib.suppress(PromptDockError):
        last = await last_words.last(client, session, user)
        questions = {one.id: one for one in await asked.questions(client, user, session)}
    with contextlib.suppress(PromptDockError):
        waits = await last_words.unanswered(client, session, user)
        last = waits if waits and (last is None or last.at < waits.at) else last
    news: list[Entry] = []
    with contextlib.suppress(PromptDockError):
        for heard in await last_words.missed(client, session, user):
            if heard.output.status != "awaiting_input":
                news.append(_missed(heard))
            elif questions is None or heard.output.id in questions:  # else it was answered
                news.append(_asked(heard.output, heard))
                (questions or {}).pop(heard.output.id, None)
    for one in (questions or {}).values():
        news.append(_asked(one.output(user)))
    with contextlib.suppress(PromptDockError):
        for output in await approvals.waiting(client, session, user):
            news.append(Entry(_at(output), output=output))
    whole = {turn for entry in news if entry.output for turn in entry.output.answers}
    quoted = [_quote(last, whole=last.turn in whole)] if last else []
    return sorted([*quoted, *news], key=lambda entry: entry.at)


def _quote(last: last_words.Last, whole: bool) -> Entry:
    """The last words and their answer in short; without the answer, where it is shown `whole` below."""
    notes = [f"{times.since(last.at.isoformat())} ago you said: {line(last.said, _QUOTED)}"]
    if last.answered and not whole:
        notes.append(f"{(last.by or 'chatter').capitalize()}: {line(last.answered, 2 * _QUOTED)}")
    return Entry(last.at.timestamp(), tuple(notes))


def _missed(heard: Heard) -> Entry:
    told = _AWAY + heard.output.content.removeprefix(_AWAY)
    return Entry(_ms(heard.cursor) / 1000, (), heard.output.model_copy(update={"content": told}), heard)


def _asked(output: Output, heard: Heard | None = None) -> Entry:
    note = f"{times.since(output.timestamp)} ago Chatter asked, and waits for your answer:"
    return Entry(_ms(heard.cursor) / 1000 if heard else _at(output), (note,), output, heard)


def _at(output: Output) -> float:
    moment = times.parsed(output.timestamp)
    return moment.timestamp() if moment else 0.0


def _ms(cursor: str) -> float:
    return float(cursor.split("-")[0])
