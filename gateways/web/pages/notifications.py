"""Who is told outside of what happens: webhooks and notifications, added, tried and removed; how they fare."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from gateways.web.errors import HttpError
from gateways.web.pages.frame import Here, Seat, back, called, given, view
from shared.client.views import notifications as views
from shared.errors import PromptDockError

router = APIRouter()
_HERE = "/notifications"
_DEFAULT: dict[views.Transport, list[str]] = {"webhook": ["attention", "task"], "push": ["attention"]}
_GROUPS = ("attention", "task", "turn", "all")
_PATIENCE = 20.0  # seconds in which a test says on the page how it went
_ACTS = ("test", "retry", "remove")


@router.get("/notifications")
async def listed(here: Here) -> Response:
    """All that this person may see."""
    found = await views.subscriptions(here.client, here.person.sight)
    told = [(row, views.brief(row.events)) for row in found]
    return await view(here, "inbox", "notifications.html", found=told, groups=_GROUPS)


@router.post("/notifications")
async def add(here: Here) -> Response:
    """One more; the secret of a webhook is told this once."""
    form = await here.request.form()
    transport = _transport(given(form, "transport"))
    chosen = [one for one in form.getlist("events") if isinstance(one, str)]
    try:
        order = await views.adding(
            *(here.client, here.person.sight, transport, given(form, "url", 2000)),
            chosen or _DEFAULT[transport],
            name=given(form, "name", 60),
        )
        made = await called(here, order.tool, order.arguments)
    except PromptDockError as error:
        return back(here, _HERE, "bad", error.told())
    name = str(made.get("name") or order.arguments["name"])
    secret = f" The secret that signs its requests, shown this once: {order.secret}" if order.secret else ""
    return back(here, _HERE, "", f"{name} is told from now on.{secret}")


@router.post("/notifications/{name}")
async def act(here: Here, name: str) -> Response:
    """Try one, send again what did not arrive, or tell it no more."""
    form = await here.request.form()
    does = given(form, "act", 20)
    if does not in _ACTS:
        raise HttpError(422, "there is nothing of that name to do with a subscription")
    try:
        order = await views.changing(here.client, here.person.sight, name, does)
        made = await called(here, order.tool, order.arguments)
        how, told = await _outcome(here, name, made) if does == "test" else ("", _TOLD[does].format(name))
    except PromptDockError as error:
        return back(here, _HERE, "bad", error.told())
    return back(here, _HERE, how, told)


_TOLD = {"retry": "What waits for {} is sent now.", "remove": "{} is told no more."}


async def _outcome(here: Seat, name: str, made: dict[str, object]) -> tuple[str, str]:
    outcome = await views.tried(here.client, str(made["delivery"]), _PATIENCE)
    why = outcome.error or (f"it answered {outcome.status}" if outcome.status else "")
    match outcome.state:
        case "delivered":
            return "", f"The test has reached {name}."
        case "pending":
            return (
                "bad",
                f"The test has not reached {name} yet{': ' + why if why else ''}; it is tried again.",
            )
        case _:
            return "bad", f"The test did not reach {name}{': ' + why if why else ''}."


def _transport(name: str) -> views.Transport:
    match name:
        case "webhook":
            return "webhook"
        case "push":
            return "push"
    raise HttpError(422, "that is no way to tell somebody", "", "choose a webhook or a notification")
