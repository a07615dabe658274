"""What runs by itself: when next, what it looks at, who allowed that, and what its runs came to."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter
from starlette.responses import Response

from gateways.web.errors import HttpError
from gateways.web.pages.frame import Here, back, called, given, view
from gateways.web.render.words import part as quoted
from shared.client.views import hooks
from shared.errors import PromptDockError

router = APIRouter()
_ACTS: dict[str, tuple[str, dict[str, object], str]] = {
    "on": ("edit_hook", {"enabled": True}, "It is on."),
    "off": ("edit_hook", {"enabled": False}, "It is off: it is launched no more by itself."),
    "run": ("fire_hook", {}, "It runs."),
    "allow": ("allow_hook", {}, "Its steps are allowed as they are now."),
    "delete": ("delete_hook", {}, "It is deleted, with the history of its runs."),
}


@router.get("/hooks")
async def listed(here: Here) -> Response:
    """All hooks, and the newest runs."""
    found, runs = await asyncio.gather(hooks.hooks(here.client), hooks.runs(here.client))
    if not here.person.owner:
        found = [one for one in found if one.project in here.person.projects]
        runs = [run for run in runs if run.hook in {one.id for one in found}]
    return await view(here, "hooks", "hooks.html", hooks=found, runs=runs, hook=None)


@router.get("/hooks/{id}")
async def one(here: Here, id: str) -> Response:
    """One hook."""
    found = await _hook(here, id)
    return await view(
        here, "hooks", "hooks.html", hook=found, hooks=[found], runs=await hooks.runs(here.client, id)
    )


async def _hook(here: Here, id: str) -> hooks.HookView:
    for found in await hooks.hooks(here.client):
        if found.id == id and (here.person.owner or found.project in here.person.projects):
            return found
    raise HttpError(404, f"there is no hook {id[:100]!r}", "", "go back to all hooks")


@router.post("/hooks/{id}")
async def act(here: Here, id: str) -> Response:
    """What a button of a hook says."""
    found, form = await _hook(here, id), await here.request.form()
    name = given(form, "act", 20)
    if name not in _ACTS:
        raise HttpError(422, "there is nothing of that name to do with a hook")
    tool, arguments, told = _ACTS[name]
    there = "/hooks" if name == "delete" else f"/hooks/{quoted(found.id)}"
    try:
        result = await called(here, tool, {"hook_id": found.id, **arguments})
    except PromptDockError as error:
        return back(here, f"/hooks/{quoted(found.id)}", "bad", error.told())
    return back(here, there, "", f"{told} {result.get('warning') or ''}".strip())
