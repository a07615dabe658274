"""How wide the columns of a table are on a line that is too short for them: names and states stay, texts give way."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rich.cells import cell_len, set_cell_size

GAP = 2  # blanks between two columns
_TEXT = 16  # what is wider is a text; the rest is a name, a state, a number
_SMALL = 8  # what is not wider is never cut, unless all else was
_STEPS = (20, 12, 4)  # to which texts give way; names go on from the second


def widths(
    rows: Sequence[Sequence[str]], heads: Sequence[str], room: int, whole: Collection[int] = ()
) -> list[int]:
    """The width of each column, all of them together in `room` where that can be.

    The first column and those in `whole` are cut only when everything else was, states before the first.
    """
    content = [max((cell_len(row[at]) for row in rows), default=0) for at in range(len(heads))]
    wide = [max(width, cell_len(head)) for width, head in zip(content, heads, strict=True)]
    kept = {0, *whole}
    free = [at for at in range(len(wide)) if at not in kept]
    texts = [at for at in free if content[at] > _TEXT]
    names = [at for at in free if content[at] > _SMALL]
    stages: list[tuple[Collection[int], list[int]]] = [
        (texts, [_STEPS[0]] * len(wide)),
        ([at for at in range(len(wide)) if wide[at] > content[at]], [max(4, width) for width in content]),
        (texts, [_STEPS[1]] * len(wide)),
        (names, [_STEPS[2]] * len(wide)),
        (free, [_STEPS[2]] * len(wide)),
        (sorted(set(whole) - {0}), [_STEPS[2]] * len(wide)),
        (range(len(wide)), [1] * len(wide)),
    ]
    room -= GAP * (len(wide) - 1)
    for columns, least in stages:
        while sum(wide) > room:
            able = [at for at in columns if wide[at] > least[at]]
            if not able:
                break
            wide[max(able, key=lambda at: (wide[at], at))] -= 1
    return wide


def lines(rows: Sequence[Sequence[str]], room: int, whole: Collection[int] = ()) -> list[str]:
    """The rows as lines without a head, what is too wide cut with an ellipsis."""
    wide = widths(rows, [""] * len(rows[0]), room, whole) if rows else []
    gap = " " * GAP
    return [
        gap.join(_cut(cell, width) for cell, width in zip(row, wide, strict=True)).rstrip() for row in rows
    ]


def _cut(text: str, width: int) -> str:
    return set_cell_size(text, width) if cell_len(text) <= width else set_cell_size(text, width - 1) + "…"
