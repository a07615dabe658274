"""The stems of words (Porter's algorithm), as both Stores take them: `deploys`, `deployed` and `deploying` are one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from shared.store.fulltext import STOP

_WORD = re.compile(r"[^\W_]+")
_VOWEL = re.compile(r"[aeiou]|(?<=[^aeiou])y")
_MEASURE = re.compile(r"(?:[aeiou]|(?<=[^aeiou])y)+(?:[^aeiouy]|^y|(?<=[aeiou])y)+")
_SHORT = re.compile(r"(?:^|.*[^aeiou])[aeiouy][^aeiouwxy]\Z")
_Rules = Sequence[tuple[str, str]]
_SECOND: _Rules = (
    ("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"), ("bli", "ble"),
    ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"), ("ization", "ize"), ("ation", "ate"),
    ("ator", "ate"), ("alism", "al"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous"), ("aliti", "al"),
    ("iviti", "ive"), ("biliti", "ble"), ("logi", "log"),
)  # fmt: skip
_THIRD: _Rules = (
    ("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", ""),
)  # fmt: skip
_FOURTH: _Rules = tuple((ending, "") for ending in (
    "ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ism", "ate", "iti", "ous", "ive", "ize", "ion",
    "al", "er", "ic", "ou",
))  # fmt: skip


def words(text: str) -> list[str]:
    """The words of a text, in small letters."""
    return _WORD.findall(text.casefold())


def stems(text: str) -> list[str]:
    """The stems of the words that carry meaning, in their order."""
    return [stem(word) for word in words(text) if word not in STOP]


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """A word in small letters without its endings; one of other letters than a to z as it is."""
    if len(word) < 3 or not (word.isascii() and word.isalpha()):
        return word
    word = _past(_plural(word))
    if word.endswith("y") and _VOWEL.search(word[:-1]):
        word = f"{word[:-1]}i"
    word = _replaced(_replaced(word, _SECOND, 1), _THIRD, 1)
    return _tidied(_replaced(word, _FOURTH, 2))


def _plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _past(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) else word
    for ending in ("ed", "ing"):
        if word.endswith(ending):
            rest = word[: -len(ending)]
            if not _VOWEL.search(rest):
                return word
            if rest.endswith(("at", "bl", "iz")) or (_measure(rest) == 1 and _SHORT.match(rest)):
                return f"{rest}e"
            return rest[:-1] if _double(rest) and rest[-1] not in "lsz" else rest
    return word


def _replaced(word: str, rules: _Rules, least: int) -> str:
    """With the longest ending that fits put in its other form, where enough is left before it."""
    fits = max(
        (rule for rule in rules if word.endswith(rule[0])), key=lambda rule: len(rule[0]), default=None
    )
    if fits is None:
        return word
    rest = word[: -len(fits[0])]
    if _measure(rest) < least or (fits[0] == "ion" and not rest.endswith(("s", "t"))):
        return word
    return rest + fits[1]


def _tidied(word: str) -> str:
    if word.endswith("e"):
        rest = word[:-1]
        if (many := _measure(rest)) > 1 or (many == 1 and not _SHORT.match(rest)):
            word = rest
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word


def _measure(rest: str) -> int:
    """How often vowels are followed by consonants in it."""
    return len(_MEASURE.findall(rest))


def _double(rest: str) -> bool:
    return len(rest) > 1 and rest[-1] == rest[-2] and rest[-1] not in "aeiouy"
