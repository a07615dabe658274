"""Names in fewer bytes, as a shell would spell them: `create_hook edit_hook fire_hook` is `{create,edit,fire}_hook`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_FEWEST = 3  # of two, the braces cost what they spare


@dataclass(frozen=True)
class _Group:
    before: str
    after: str
    names: list[str]

    @property
    def spares(self) -> int:
        return (len(self.names) - 1) * len(self.before + self.after) - len("{}")

    def __str__(self) -> str:
        end = len(self.after)
        inner = ",".join(name[len(self.before) : len(name) - end] for name in self.names)
        return f"{self.before}{{{inner}}}{self.after}"


def abridged(names: Iterable[str]) -> str:
    """The names, apart by spaces, in their order but for those that share their first or last words."""
    left, told = list(names), list[str]()
    while left:
        found = [group for group in _groups(left) if len(group.names) >= _FEWEST and group.spares > 0]
        best = max(found, key=lambda group: group.spares, default=None)
        told.append(str(best) if best else left[0])
        left = [name for name in left if name not in (best.names if best else left[:1])]
    return " ".join(told)


def _groups(names: list[str]) -> Iterator[_Group]:
    """Whom the first of the names could stand together with."""
    words = names[0].split("_")
    for place in range(1, len(words)):
        before, after = "_".join(words[:place]) + "_", "_" + "_".join(words[place:])
        yield _Group(before, "", [name for name in names if name.startswith(before) and name != before])
        yield _Group("", after, [name for name in names if name.endswith(after) and name != after])
