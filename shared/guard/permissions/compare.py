"""Whether new permissions may allow more than old ones. What cannot be told for certain counts as more.

Patterns are not compared with each other: that one regex means less than another is hard to prove, and easy to
feign. What is certain: a preset that stands lower with none but denials before it, and the same rules with more
denials.
"""

from __future__ import annotations

from shared.guard.permissions.presets import Policies, Preset

# Each preset votes at least as strictly as the next one, on every action.
_RANKS: tuple[Preset | None, ...] = (None, "locked", "standard", "builder", "guarded", "open")


def wider(old: Policies, new: Policies) -> str:
    """Why the new permissions may allow more; "" where they certainly do not."""
    if lost := sorted(set(old.deny) - set(new.deny)):
        return f"they do not deny {lost[0]!r} any more"
    if _RANKS.index(new.preset) > _RANKS.index(old.preset):
        return f"{new.preset!r} allows more than {old.preset or 'no preset'!r}"
    if new.approval_minutes > old.approval_minutes:
        return "they leave more time for an answer"
    same = new.preset == old.preset and set(new.allow) == set(old.allow) and set(new.ask) == set(old.ask)
    if same:
        return ""
    # A spelling on which a lower preset is silent leaves the word to rules that were overruled before; and a
    # rule of one's own that asks stands before what a preset allows.
    if new.allow or new.ask:
        return "they have rules of their own that allow or ask"
    return "rules that ask would be gone" if old.ask else ""
