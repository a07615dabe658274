"""Which of a text's lines fit some words best. Words are stemmed, stop words left out, any of them may fit.

Rows are searched by their Store; a line is in no index, and of one text there are few.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from shared.memory import stemming

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_K, _B = 1.4, 0.7


def stems(text: str) -> list[str]:
    """The stems of the words that carry meaning, also of those that stand within a name of code."""
    return stemming.stems(_CAMEL.sub(" ", text))


def rank(query: str, texts: Sequence[str]) -> list[tuple[int, float]]:
    """The places of the texts in which a word of the query stands, best first, with their scores."""
    wanted = list(dict.fromkeys(stems(query)))
    counted = [Counter(stems(text)) for text in texts]
    sizes = [sum(counts.values()) for counts in counted]
    mean = (sum(sizes) / len(sizes) if sizes else 0) or 1.0
    rarity = {word: _rarity(sum(word in counts for counts in counted), len(texts)) for word in wanted}
    scored = []
    for place, (counts, size) in enumerate(zip(counted, sizes, strict=True)):
        score = sum(
            rarity[word] * counts[word] * (_K + 1) / (counts[word] + _K * (1 - _B + _B * size / mean))
            for word in wanted
            if counts[word]
        )
        if score > 0:
            scored.append((place, round(score, 4)))
    return sorted(scored, key=lambda pair: (-pair[1], pair[0]))


def _rarity(found: int, total: int) -> float:
    return math.log(1 + (total - found + 0.5) / (found + 0.5))
