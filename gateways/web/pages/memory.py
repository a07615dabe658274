"""What is remembered of a person: looking, searching, putting right, forgetting; and for an answer."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from gateways.web.errors import HttpError
from gateways.web.pages.frame import Here, back, called, given, view
from gateways.web.render.words import part as quoted
from shared.client.types import Card
from shared.client.views import memory
from shared.errors import PromptDockError

router = APIRouter()
_MOST = 100
_HITS = 30
KINDS = ("turn", "fact", "entity", "strategy", "goal")


@router.get("/memory")
async def listed(here: Here, q: str = "", kind: str = "", past: str = "") -> Response:
    """The newest first, or what fits the words."""
    user, wanted = here.person.user_id, kind if kind in KINDS else None
    if q.strip():
        found = await memory.search(here.client, q[:500], user, None, None, _HITS)
    else:
        found = await memory.listed(here.client, user, wanted, None, bool(past), _MOST)  # type: ignore[arg-type]
    return await view(
        here, "memory", "memory.html", found=found, q=q, kind=kind, kinds=KINDS, past=past, one=None, why=None
    )


@router.get("/memory/for/{turn:path}")
async def remembered(here: Here, turn: str) -> Response:
    """What was remembered for the answer of a turn."""
    why = await memory.why(here.client, here.person.user_id, turn)
    return await view(here, "memory", "memory.html", why=why, one=None, **_EMPTY)


@router.get("/memory/{id}")
async def one(here: Here, id: str) -> Response:
    """One memory: where it comes from, and what became of it."""
    found = await memory.one(here.client, here.person.user_id, id)
    return await view(here, "memory", "memory.html", one=found, why=None, **_EMPTY)


_EMPTY: dict[str, object] = {"found": list[Card](), "q": "", "kind": "", "kinds": (), "past": ""}


@router.post("/memory/{id}")
async def change(here: Here, id: str) -> Response:
    """Put other words in its place, or forget it."""
    form = await here.request.form()
    act, text = given(form, "act", 20), given(form, "text")
    found = await memory.one(here.client, here.person.user_id, id)
    try:
        if act == "correct" and text:
            result = await called(here, "correct_memory", {"memory_id": found["id"], "text": text})
            return back(here, f"/memory/{quoted(str(result['memory_id']))}", "", "Put right.")
        if act == "forget":
            await called(here, "forget_memory", {"memory_id": found["id"]})
            return back(here, "/memory", "", "Forgotten.")
    except PromptDockError as error:
        return back(here, f"/memory/{quoted(id)}", "bad", error.told())
    raise HttpError(422, "a correction needs words", "", "write what holds")
