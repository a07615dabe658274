"""Which messages of a conversation a question is about: its words find some, and these speak for those beside them.

An answer seldom repeats the words of what it answers. So each message that holds words of the question hands a share
of its score to the one before it and to the two behind it; what asks hands more to its answer. What somebody said
counts more where the question names them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

BEFORE, BEHIND, ANSWER, SECOND, NAMED = 0.3, 0.4, 0.8, 0.3, 0.4
_WORD = re.compile(r"[^\W_]+")
Number = tuple[str, int]  # a conversation, and the number of a message in it


@dataclass(frozen=True)
class Speech:
    """One message as it counts: who said what."""

    speaker: str
    text: str


def beside(places: Iterable[Number]) -> set[Number]:
    """The places that those hand something to."""
    return {(session, seq + by) for session, seq in places for by in (-1, 1, 2) if seq + by > 0}


def spread(query: str, scores: Mapping[Number, float], heard: Mapping[Number, Speech]) -> dict[Number, float]:
    """What each message is worth for a question, from what the words of each are worth."""
    total = dict.fromkeys(heard, 0.0)
    for (session, seq), own in scores.items():
        if (session, seq) not in heard:
            continue
        asks = heard[session, seq].text.rstrip().endswith("?") or "? " in heard[session, seq].text
        shares = ((0, 1.0), (-1, BEFORE), (1, ANSWER if asks else BEHIND), (2, SECOND))
        for by, share in shares:
            if (place := (session, seq + by)) in total:
                total[place] += share * own
    named = _named(query, {one.speaker for one in heard.values()})
    return {
        place: worth * (1 + NAMED * (heard[place].speaker in named))
        for place, worth in total.items()
        if worth > 0
    }


def _named(query: str, speakers: set[str]) -> set[str]:
    """The one who is named in a question; nobody where several are."""
    words = {word.casefold() for word in _WORD.findall(query)}
    found = {
        name for name in speakers if name and (parts := _WORD.findall(name.casefold())) and parts[0] in words
    }
    return found if len(found) == 1 else set()
