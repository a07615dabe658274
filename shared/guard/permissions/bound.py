"""What a yes is bound to: facts that the person is shown, and that must still hold when it is used.

A tool that depends on more than its arguments says by `binds` on what: an address, commits, what a checkout holds.
"""

from __future__ import annotations

from collections.abc import Mapping

Facts = Mapping[str, str]

TOLD = frozenset({"changes"})  # words about the others: they are shown, and not compared
LASTING = frozenset(
    {"address", "server", "definition"}
)  # a standing permission is bound to these: commits come and go
_SHORT = 12  # of a commit or a digest: as many letters as people compare
_NAMES = {
    "address": "it leads to",
    "commit": "the commit is",
    "into": "it is merged into",
    "folder": "it runs in",
    "files": "the files are those of",
    "steps": "the steps are those of",
    "server": "the server is",
    "definition": "the tool is as described by",
}
_DIGESTS = frozenset({"commit", "into", "files", "steps", "definition"})


def describe(facts: Facts) -> str:
    """The facts in words, for whoever is asked; "" where there are none."""
    parts = [
        f"{_NAMES.get(name, name)} {_shown(name, value)}" for name, value in facts.items() if name not in TOLD
    ]
    return "; ".join([*parts, *(facts[name] for name in sorted(TOLD) if facts.get(name))])


def changed(before: Facts, now: Facts) -> str:
    """What does not hold any more of what was shown, in words; "" where all of it does."""
    parts = []
    for name, was in before.items():
        if name in TOLD or now.get(name, "") == was:
            continue
        is_now = _shown(name, now[name]) if name in now else "not known any more"
        parts.append(f"{_NAMES.get(name, name)} now {is_now}, not {_shown(name, was)} as it was shown")
    if parts and (more := "; ".join(now[name] for name in sorted(TOLD) if now.get(name))):
        parts.append(more)
    return "; ".join(parts)


def lasting(facts: Facts) -> dict[str, str]:
    """Those that a standing permission for this very call is bound to."""
    return {name: value for name, value in facts.items() if name in LASTING}


def _shown(name: str, value: str) -> str:
    return (value[:_SHORT] or "none yet") if name in _DIGESTS else value
