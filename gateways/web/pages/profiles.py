"""Profiles of agents that are rows: their sections, model, tools and permissions, and the prompt that comes of them."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.datastructures import FormData
from starlette.responses import Response

from gateways.web.errors import HttpError
from gateways.web.pages.frame import Here, Seat, back, called, given, view
from gateways.web.render.words import part as quoted
from shared.errors import PromptDockError

router = APIRouter()
MODES = ("standard", "guarded", "locked", "builder", "open")
_TEXT = 50_000
_NEW = {
    "id": "", "name": "", "description": "", "model": "", "permission_mode": "standard", "allowed_tools": [],
    "sections": [{"name": "persona", "text": "", "enabled": True}, {"name": "task", "text": "", "enabled": True}],
    "system_prompt_suffix": "", "agents": [],
}  # fmt: skip


def _owner(here: Seat) -> None:
    if not here.person.owner:
        raise HttpError(403, "only the owner shapes agents")


@router.get("/profiles/new")
async def new(here: Here) -> Response:
    """One that is not there yet."""
    _owner(here)
    return await view(here, "agents", "profile.html", profile=_NEW, modes=MODES, sent="")


@router.get("/profiles/{id}")
async def one(here: Here, id: str) -> Response:
    """One profile, and what its agents' model is sent."""
    _owner(here)
    found = await called(here, "get_profile", {"profile_id": id})
    return await view(here, "agents", "profile.html", profile=found, modes=MODES, sent=composed(found))


def composed(found: dict[str, Any]) -> str:
    """The profile's own part of the prompt: its sections that are on, in their order."""
    texts = [str(one.get("text") or "").strip() for one in found["sections"] if one.get("enabled", True)]
    texts.append(str(found.get("system_prompt_suffix") or "").strip())
    return "\n\n".join(text for text in texts if text)


@router.post("/profiles")
async def create(here: Here) -> Response:
    """A new one."""
    _owner(here)
    form = await here.request.form(max_part_size=20 * _TEXT)
    id = given(form, "id", 100)
    try:
        made = await called(here, "create_profile", {"id": id, **_fields(form)})
    except PromptDockError as error:
        return back(here, "/profiles/new", "bad", error.told())
    return back(here, f"/profiles/{quoted(str(made['created']))}", "", "Made.")


@router.post("/profiles/{id}")
async def edit(here: Here, id: str) -> Response:
    """Change it: it holds from the next turn on."""
    _owner(here)
    form = await here.request.form(max_part_size=20 * _TEXT)
    there = f"/profiles/{quoted(id)}"
    try:
        if given(form, "act", 20) == "delete":
            await called(here, "delete_profile", {"profile_id": id})
            return back(here, "/agents", "", "The profile is deleted.")
        await called(here, "edit_profile", {"profile_id": id, **_fields(form)})
    except PromptDockError as error:
        return back(here, there, "bad", error.told())
    return back(here, there, "", "Kept; it holds from the next turn on.")


def _fields(form: FormData) -> dict[str, Any]:
    names, texts, on = form.getlist("section"), form.getlist("text"), set(form.getlist("on"))
    sections = [
        {"name": str(name).strip()[:100], "text": str(text)[:_TEXT], "enabled": str(number) in on}
        for number, (name, text) in enumerate(zip(names, texts, strict=False))
        if str(name).strip()
    ]
    return {
        "name": given(form, "name", 200),
        "description": given(form, "description"),
        "model": given(form, "model", 200) or None,
        "permission_mode": given(form, "permission_mode", 40) or "standard",
        "allowed_tools": given(form, "allowed_tools").replace(",", " ").split(),
        "sections": sections,
        "system_prompt_suffix": given(form, "suffix", _TEXT),
    }
