"""Which messages of a conversation a question is about: its words find some, and these speak for those around them.

An answer seldom repeats the words of what it answers. So each message that holds words of the question hands a share
of its worth to the two before it and the two behind it; what asks hands more to its answer, and is worth less itself.
Then it counts how much of the question is spoken of in the stretch around a message, and what somebody said counts
more where the question names them. Both Stores find the messages; here they are weighed in one way.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from shared.memory.stemming import stem, stems, words

SATURATION, LENGTH = (
    1.0,
    0.4,
)  # of BM25: how soon a word said again adds nothing, how far long messages count less
MORE, PAIR = 0.3, 0.3  # for each further word of the question, for two of them in the same order
SHARES = {-2: 0.15, -1: 0.3, 1: 0.4, 2: 0.3}  # of its worth, that a message hands to those beside it
ANSWER, ASKING = 0.8, 0.25  # what one that asks hands to the next; how much less it is worth itself
AROUND, REACH, STRETCH = 1.5, 10, 20  # of a stretch: what it counts, messages to both sides, messages in all
NAMED = 1.0
PAUSE = timedelta(hours=3)  # after which something else is talked of
Number = tuple[str, int]  # a conversation, and the number of a message in it


@dataclass(frozen=True)
class Speech:
    """One message as it counts: who said what, and when."""

    speaker: str
    text: str
    at: datetime | None = None

    @property
    def asks(self) -> bool:
        """Whether there is a question in it."""
        return "? " in self.text or self.text.rstrip().endswith("?")


def beside(places: Iterable[Number]) -> set[Number]:
    """The places that those hand something to."""
    return {(session, seq + by) for session, seq in places for by in SHARES if seq + by > 0}


def weigh(query: str, heard: Mapping[Number, Speech], among: int) -> dict[Number, float]:
    """What each message is worth for a question; the Store found them, and theirs beside them, among so many."""
    question = _Question(query, heard, among)
    own = question.own()
    total: dict[Number, float] = {}
    for (session, seq), worth in own.items():
        for by, share in {0: 1.0, **SHARES}.items():
            place = (session, seq + by)
            if place in heard and not _apart(heard[session, seq], heard[place]):
                share = ANSWER if by == 1 and heard[session, seq].asks else share
                total[place] = total.get(place, 0.0) + share * worth
    around = question.around(total)
    most = max(around.values(), default=0.0) or 1.0
    named = _named(query, {one.speaker for one in heard.values()})
    return {
        place: worth
        * (1 + AROUND * around[place] / most)
        * (1 + NAMED * (heard[place].speaker in named))
        * (1 - ASKING * heard[place].text.rstrip().endswith("?"))
        for place, worth in total.items()
    }


class _Question:
    """The words of a question, and where they are spoken."""

    def __init__(self, query: str, heard: Mapping[Number, Speech], among: int) -> None:
        self._heard = heard
        told = {place: stems(one.text) for place, one in heard.items()}
        self._sizes = {place: len(found) for place, found in told.items()}
        self._mean = sum(self._sizes.values()) / (len(told) or 1) or 1.0
        # Names of those who speak stand everywhere, and say who is meant rather than what.
        self._names = {stem(word) for one in heard.values() for word in words(one.speaker)}
        asked = list(dict.fromkeys(stems(query)))
        self._pairs = set(pairwise(stems(query)))
        self._spoken = {
            place: counts
            for place, found in told.items()
            if (counts := {word: found.count(word) for word in asked if word in found})
        }
        self._orders = {
            place: self._pairs & set(pairwise(found))
            for place, found in told.items()
            if place in self._spoken
        }
        held = Counter(word for counts in self._spoken.values() for word in counts)
        among = max(among, len(heard))
        self._rarity = {word: max(0.05, math.log((among - n + 0.5) / (n + 0.5))) for word, n in held.items()}
        stretches = {
            word: len({(s, n // STRETCH) for (s, n), c in self._spoken.items() if word in c}) for word in held
        }
        self._rare = {word: _rarity(n, max(among // STRETCH, n)) for word, n in stretches.items()}

    def own(self) -> dict[Number, float]:
        """What each message is worth by its own words."""
        return {place: self._own(place, counts) for place, counts in self._spoken.items()}

    def _own(self, place: Number, counts: dict[str, int]) -> float:
        size = 1 - LENGTH + LENGTH * self._sizes[place] / self._mean
        worth = sum(
            self._rarity[word] * n * (SATURATION + 1) / (n + SATURATION * size) for word, n in counts.items()
        )
        worth *= 1 + MORE * max(0, sum(word not in self._names for word in counts) - 1)
        return worth + PAIR * sum(self._rarity[a] + self._rarity[b] for a, b in self._orders[place])

    def around(self, places: Iterable[Number]) -> dict[Number, float]:
        """How much of the question is spoken of in the stretch around each of these."""
        return {place: self._stretch(place) for place in places}

    def _stretch(self, place: Number) -> float:
        session, seq = place
        counts: Counter[str] = Counter()
        for by in range(-REACH, REACH + 1):
            there = (session, seq + by)
            if there in self._spoken and not _apart(self._heard[place], self._heard[there]):
                counts.update(self._spoken[there])
        return sum(
            self._rare[word] * n * 2.2 / (n + 1.2) for word, n in counts.items() if word not in self._names
        )


def _rarity(held: int, among: int) -> float:
    return math.log(1 + (among - held + 0.5) / (held + 0.5))


def _apart(one: Speech, other: Speech) -> bool:
    return one.at is not None and other.at is not None and abs(one.at - other.at) > PAUSE


def _named(query: str, speakers: set[str]) -> set[str]:
    """The one who is named in a question; nobody where several are."""
    asked = set(words(query))
    found = {name for name in speakers if (parts := words(name)) and parts[0] in asked}
    return found if len(found) == 1 else set()
