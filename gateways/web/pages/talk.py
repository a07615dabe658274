"""The conversation: reading it by pages, saying something, stopping what runs."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

from fastapi import APIRouter
from starlette.responses import JSONResponse, RedirectResponse, Response

from gateways.web.errors import HttpError
from gateways.web.pages import tasks
from gateways.web.pages.frame import Here, Seat, back, entries_shown, given
from gateways.web.render import words
from shared.bus.images import MAX_IMAGE_BYTES, MAX_IMAGES, Image, image_of
from shared.bus.messages import default_session
from shared.bus.reading import MAX_BYTES
from shared.client.fanout import is_cursor
from shared.client.types import Sent
from shared.client.views import pending, status, visible
from shared.client.views.conversation import running
from shared.client.views.conversation.transcript import entries_of, transcript
from shared.client.views.conversation.transcript import image_of as stored_image
from shared.client.views.permissions import approvals
from shared.errors import BadMessage, PromptDockError

router = APIRouter()
_SOURCE = "web"
_LOOK = "(a picture)"  # what is said where nothing else is


@router.get("/")
async def home(here: Here) -> Response:
    """The board, beside the person's own conversation."""
    return await tasks.shown(here, "")


@router.get("/chat")
async def own(here: Here) -> Response:
    """The person's own conversation."""
    return RedirectResponse(f"/chat/{words.part(default_session(here.person.user_id))}", 303)


@router.post("/chat/new")
async def new(here: Here) -> Response:
    """A conversation in which nothing was said yet."""
    return RedirectResponse(f"/chat/web-{uuid4().hex[:12]}", 303)


@router.get("/chat/{session:path}/turn/{turn}")
async def turn(here: Here, turn: str, said: bool = False) -> Response:
    """What one turn came to, as it stands in the conversation; with `said` the words that opened it."""
    await visible.session(here.client, here.person.sight, here.session)
    found = await entries_of(here.client, here.session, turn)
    return await entries_shown(here, [one for one in found if said == (one.kind == "said")], "")


@router.get("/chat/{session:path}/entries")
async def entries(here: Here, before: str = "") -> Response:
    """A page of the conversation, for a script."""
    await visible.session(here.client, here.person.sight, here.session)
    found = await transcript(here.client, here.session, before)
    return await entries_shown(here, found.entries, found.before)


@router.get("/chat/{session:path}/running")
async def runs(here: Here, until: str = "") -> Response:
    """The events of the turn that runs, for a page that was opened in its middle."""
    await visible.session(here.client, here.person.sight, here.session)
    if until and not is_cursor(until):
        raise HttpError(422, "that is no cursor")
    found = await running.running(here.client, here.session, until)
    return JSONResponse({"events": [{"kind": one.kind, "data": one.payload} for one in found]})


@router.get("/chat/{session:path}/pulse")
async def pulse(here: Here, agent: str, request: str) -> Response:
    """How an agent is that was asked."""
    await visible.session(here.client, here.person.sight, here.session)
    doing, silent, beat = await running.pulse(here.client, agent[:64], request[:200])
    return JSONResponse({"doing": doing, "silent": silent, "beat_ms": beat})


@router.get("/chat/{session:path}/image/{message}/{number}")
async def picture(here: Here, message: str, number: int) -> Response:
    """A picture that came with a message; what a message holds never changes."""
    await visible.session(here.client, here.person.sight, here.session)
    found = (
        await stored_image(here.client, here.session, message, number) if 0 <= number < MAX_IMAGES else None
    )
    if found is None:
        raise HttpError(404, "there is no such picture")
    kept = {"cache-control": "private, max-age=31536000, immutable"}
    return Response(found.content, media_type=found.media_type, headers=kept)


@router.post("/chat/{session:path}/say")
async def say(here: Here) -> Response:
    """Send words; with files, these come behind them as text."""
    await visible.session(here.client, here.person.sight, here.session)
    form = await here.request.form(max_files=10, max_part_size=2 * MAX_BYTES)
    text, images = await _whole(form)
    answers = await approvals.answered(here.client, here.session, here.person.user_id, text)
    try:
        sent = await here.client.say(
            text,
            here.person.user_id,
            None if here.own else here.session,
            message_id=given(form, "id", 100) or None,
            in_reply_to=given(form, "in_reply_to", 200) or None,
            force=bool(given(form, "force")),
            source=_SOURCE,
            roles=list(here.person.roles) or None,
            images=images or None,
        )
        note = await _note(here, sent, answers)
    except PromptDockError as error:
        if here.part:
            raise
        return back(here, _address(here), "bad", error.told())
    if here.part:
        return JSONResponse({"id": sent.id, "outcome": sent.outcome, "note": note})
    return back(here, _address(here), "", note)


async def _whole(form: Any) -> tuple[str, list[dict[str, str]]]:
    """The words with the text files that came along behind them, and the pictures."""
    parts, images = [given(form, "text", MAX_BYTES)], list[Image]()
    for one in form.getlist("file"):
        if isinstance(one, str) or not one.filename:
            continue
        content = await one.read()
        if image := image_of(content):
            images.append(image)
        elif b"\0" in content:
            raise BadMessage(
                f"{one.filename[:100]} cannot be sent",
                "it is neither text nor a PNG, JPEG, GIF or WebP picture",
            )
        else:
            parts.append(fenced(one.filename, content.decode("utf-8", "replace")))
    size = sum(len(image.data) * 3 // 4 for image in images)
    if len(images) > MAX_IMAGES or size > MAX_IMAGE_BYTES:
        raise BadMessage(
            "the pictures cannot be sent together",
            f"{len(images)} of {size // 1024} KB; {MAX_IMAGES} of {MAX_IMAGE_BYTES // 1024} KB together are the most",
            "send fewer or smaller ones",
        )
    words = "\n\n".join(part for part in parts if part)
    return words or (_LOOK if images else ""), [image.model_dump() for image in images]


def fenced(name: str, content: str) -> str:
    """A file as it stands in a message: behind its name, in a fence that nothing in it ends."""
    longest = max((len(run) for run in content.replace("\n", " ").split() if set(run) == {"`"}), default=0)
    fence = "`" * max(3, longest + 1)
    plain = " ".join(name.replace("`", "'").split())[:200]
    return f"`{plain}`:\n{fence}\n{content.rstrip()}\n{fence}"


async def _note(here: Seat, sent: Sent, answers: bool) -> str:
    """What the person should know of the message: that nobody reads it now, or what it waits behind.

    One that `answers` a request for permission waits behind nothing.
    """
    if unread := await status.unread(here.client, sent):
        return unread
    if sent.waiting and not answers and (before := await pending.behind(here.client, here.session, sent.id)):
        return f"this waits behind: {before}"
    return ""


@router.post("/chat/{session:path}/stop")
async def stop(here: Here) -> Response:
    """End the turn that runs, or what one agent does for it."""
    await visible.session(here.client, here.person.sight, here.session)
    form = await here.request.form()
    turn, request = given(form, "turn", 200), given(form, "request", 200)
    reason = given(form, "reason", 500) or None
    if not turn and not request and (first := await pending.first(here.client, here.session)):
        turn = str(first["id"])
    await here.client.stop(here.person.user_id, here.session, turn or None, request or None, reason)
    if here.part:
        return Response(json.dumps({"stopped": turn or request}), media_type="application/json")
    return back(here, _address(here), "", "stopping")


@router.get("/chat/{session:path}")
async def conversation(here: Here, before: str = "") -> Response:
    """A conversation by its address; on a phone it is all that is shown."""
    await visible.session(here.client, here.person.sight, here.session)
    return await tasks.shown(here, "", zone="talk", before=before)


def _address(here: Seat) -> str:
    return f"/chat/{words.part(here.session)}"
