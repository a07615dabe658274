"""A name of which a person typed a part: the one that is meant, or what comes close."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from shared.errors import UsageError

_NAMED = 6  # names that an error lists
_SHORTEST = 3  # characters that a part has which is no beginning: less fits by chance


def pick(typed: str, names: Iterable[str], kind: str, fix: str = "") -> str:
    """The name that is meant: it itself, the only one that begins so, or the only one that holds it.

    UsageError where there is none or more than one; `kind` is the word for what is named, `fix` shows them all.
    """
    known = sorted(set(names))
    if typed in known:
        return typed
    wanted = typed.casefold()
    beginning = [name for name in known if wanted and name.casefold().startswith(wanted)]
    holding = [name for name in known if len(wanted) >= _SHORTEST and wanted in name.casefold()]
    found = beginning or holding
    if len(found) == 1:
        return found[0]
    if found:
        more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        raise UsageError(
            f"{typed!r} is the name of no {kind}, and part of several",
            f"there are: {', '.join(found[:_NAMED])}{more}",
            "write more of it",
        )
    close = get_close_matches(wanted, known, n=3, cutoff=0.6)
    why = f"did you mean {' or '.join(close)}?" if close else ""
    raise UsageError(f"there is no {kind} {typed!r}", why, fix)
