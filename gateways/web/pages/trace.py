"""A turn as a waterfall over the agents that it asked, with what each took and cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from fastapi import APIRouter
from starlette.responses import Response

from gateways.web.pages.frame import Here, Seat, known, view
from shared.client.types import Card
from shared.client.views import trace, visible
from shared.client.views.conversation.transcript import TranscriptPage, transcript
from shared.errors import PromptDockError

router = APIRouter()
_WIDE = 1000  # units of the drawing
_LEAST = 3  # of a bar, so that it is seen


@dataclass(frozen=True)
class Bar:
    """A stretch of time: where it begins and how wide it is, of `_WIDE`."""

    left: float
    width: float


@dataclass(frozen=True)
class Step:
    what: str
    kind: str
    left: float
    width: float
    seconds: float | None
    tokens: Sequence[int]
    failed: bool


@dataclass(frozen=True)
class Turn:
    agent: str
    depth: int
    state: str
    left: float
    width: float
    seconds: float | None
    input: int
    output: int
    cost: float
    error: str
    steps: list[Step]


@dataclass(frozen=True)
class Total:
    seconds: float
    input: int
    output: int
    cost: float


@dataclass(frozen=True)
class Recent:
    turn: str
    said: str
    at: datetime


@router.get("/trace")
async def newest(here: Here) -> Response:
    """The person's last turn."""
    return await _shown(here, "")


@router.get("/trace/{name:path}")
async def one(here: Here, name: str) -> Response:
    """The turn of a message or a task."""
    return await _shown(here, name)


async def _shown(here: Seat, name: str) -> Response:
    problem, found = "", list[Card]()
    try:
        found = await trace.trace(here.client, name, here.person.user_id)
    except PromptDockError as error:
        problem = error.what
    if found and not here.person.owner and found[0]["session"]:
        await visible.session(here.client, here.person.sight, str(found[0]["session"]))
    page = await known(transcript(here.client, here.session), TranscriptPage(here.session))
    said = {one.turn: one.text for one in page.entries if one.kind == "said"}
    recent = [
        Recent(one.turn, said.get(one.turn, ""), one.at) for one in reversed(page.entries) if one.seconds
    ]
    turns, total = drawn(found)
    return await view(
        here, "trace", "trace.html", turns=turns, total=total, problem=problem, recent=recent[:20]
    )


def drawn(cards: list[Card]) -> tuple[list[Turn], Total]:
    """The turns as bars over one span of time."""
    if not cards:
        return [], Total(0, 0, 0, 0)
    starts = [datetime.fromisoformat(str(card["started_at"])).timestamp() * 1000 for card in cards]
    ends = [start + (card["ms"] or 0) for start, card in zip(starts, cards, strict=True)]
    begin, span = min(starts), max(1.0, max(ends) - min(starts))

    def bar(after: float, ms: float) -> Bar:
        left = min(_WIDE - _LEAST, max(0.0, after / span * _WIDE))
        return Bar(round(left, 1), round(min(_WIDE - left, max(_LEAST, ms / span * _WIDE)), 1))

    turns = []
    for start, card in zip(starts, cards, strict=True):
        whole = bar(start - begin, card["ms"] or 0)
        steps = []
        for step in card["steps"]:
            ms = float(step["ms"] or 0)
            part = bar(start - begin + float(step["after_ms"] or 0), ms)
            usage = step["usage"] or ()
            kind = "model" if step["kind"] == "model" else "tool"
            took = ms / 1000 if step["ms"] is not None else None
            what = str(step["what"])
            steps.append(Step(what, kind, part.left, part.width, took, usage[:2], bool(step["failed"])))
        seconds = card["ms"] / 1000 if card["ms"] is not None else None
        turns.append(
            Turn(
                *(
                    str(card["agent"]),
                    int(card["depth"]),
                    str(card["state"]),
                    whole.left,
                    whole.width,
                    seconds,
                ),
                *(
                    int(card["input"]),
                    int(card["output"]),
                    float(card["cost"]),
                    str(card["error"] or ""),
                    steps,
                ),
            )
        )
    total = Total(
        span / 1000,
        sum(one.input for one in turns),
        sum(one.output for one in turns),
        sum(one.cost for one in turns),
    )
    return turns, total
