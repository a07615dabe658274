"""What stands around every view: who is here, what it costs, what waits; and how a view becomes an answer."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar
from urllib.parse import quote

from fastapi import Depends, Request
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse, RedirectResponse, Response

from gateways.web.access import Person
from gateways.web.pages import static
from gateways.web.render import words
from gateways.web.render.markdown import code, markdown
from shared.bus.messages import default_session
from shared.client import Client, Heard
from shared.client.last_words import missed
from shared.client.local import key
from shared.client.local.release import release
from shared.client.views import budgets, inbox, status, visible
from shared.client.views.conversation import listed, running
from shared.client.views.conversation.transcript import TranscriptEntry, TranscriptPage, transcript
from shared.client.views.inbox import Item
from shared.client.views.status import Working
from shared.client.views.tasks.board import changed
from shared.errors import PromptDockError, ToolError

_PART = "x-part"  # the header by which a script asks for a view without what stands around it
_PATIENCE = 2.5  # seconds that what stands around a view may take; the view itself is there without
_TOLD = 300.0  # seconds for which what was told is kept for the page that shows it
_TEMPLATES = Path(__file__).parents[1] / "templates"
T = TypeVar("T")


@dataclass(frozen=True)
class Tab:
    """One view of the work's side."""

    name: str
    title: str
    key: str = ""  # pressed after g


TABS = (
    Tab("tasks", "Tasks", "t"),
    Tab("inbox", "Inbox", "i"),
    Tab("trace", "Trace", "r"),
    Tab("sessions", "Sessions", "s"),
    Tab("notes", "Notes", "n"),
    Tab("hooks", "Hooks", "h"),
    Tab("memory", "Memory", "y"),
    Tab("agents", "Agents", "a"),
    Tab("models", "Models", "m"),
    Tab("budgets", "Budgets", "b"),
    Tab("health", "Health", "e"),
)


@dataclass(frozen=True)
class AgentHere:
    """One agent in the line on top: idle, working, offline or silent, and since when it works on what."""

    name: str
    state: str
    about: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Around:
    """What stands around a view."""

    person: Person
    session: str
    own: bool  # whether that is the person's default conversation
    tab: str
    agents: list[AgentHere] = field(default_factory=list)
    demo: bool = False
    model: str = ""
    spent: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0
    limit: float | None = None
    waiting: list[Item] = field(default_factory=list)
    away: str = ""  # why the cluster does not answer
    store: str = ""  # why the Store cannot be read
    after: str = ""  # the cursors behind which what is not shown here comes
    told: tuple[str, str] = ("", "")  # how it went, and what is said of what was just done
    title: str = ""  # what the conversation is called, where it has a title


@dataclass(frozen=True)
class Seat:
    """Where a request comes from: who asks, on which line, looking at which conversation."""

    request: Request
    person: Person
    client: Client
    session: str

    @property
    def own(self) -> bool:
        return self.session == default_session(self.person.user_id)

    @property
    def part(self) -> str:
        """Which part a script asks for; "" for the whole page."""
        return self.request.headers.get(_PART, "")

    @property
    def signs_in(self) -> bool:
        """Whether the person could sign out."""
        return self.person.how == "cookie"


async def seat(request: Request) -> Seat:
    """The session is that of the address, else of `s`, else the person's own; Missing for one that they do not see."""
    named = request.path_params.get("session") or request.query_params.get("s") or ""
    here = own_seat(request)
    if named and named != here.session:  # each page shows some of it: its title, what was said, what runs
        await visible.session(here.client, here.person.sight, named)
    return replace(here, session=named or here.session)


def own_seat(request: Request) -> Seat:
    """In the person's own conversation, whatever the address names."""
    person, client = request.state.person, request.app.state.client
    assert isinstance(person, Person) and isinstance(client, Client)
    return Seat(request, person, client, default_session(person.user_id))


Here = Annotated[Seat, Depends(seat)]


@cache
def templates() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "markdown": markdown, "code": code, "moment": words.moment, "count": words.count, "dollars": words.dollars,
        "seconds": words.seconds, "state": words.state, "plain": words.plain, "brief": words.brief,
        "pretty": words.pretty, "part": words.part, "stat": changed, "tone": words.tone, "glyph": words.glyph,
        "whither": words.whither,
    }  # fmt: skip
    made.globals |= {"static": static.address, "tabs": TABS, "release": release()}
    return made


async def view(here: Seat, tab: str, template: str, **values: Any) -> Response:
    """A view of the work's side: alone for a script that asks for it, else with all that stands around it."""
    values |= {"here": here, "to": _linked(here)}
    if here.part == "work":
        around = Around(here.person, here.session, here.own, tab, told=taken(here))
        return HTMLResponse(await _rendered(template, around=around, layout="part.html", **values))
    after = ",".join(await known(running.marks(here.client, here.session), ()))  # before the rest is read
    around, talk = await asyncio.gather(
        surroundings(here, tab, after), talked(here, str(values.get("before") or ""))
    )
    html = await _rendered(template, around=around, talk=talk, layout="page.html", **values)
    return HTMLResponse(html)


async def fragment(template: str, here: Seat, **values: Any) -> Response:
    """A piece of a page."""
    return HTMLResponse(await _rendered(template, here=here, to=_linked(here), **values))


async def _rendered(template: str, **values: Any) -> str:
    """Beside the loop: a long conversation takes a while."""
    made = templates().get_template(template)
    return await asyncio.to_thread(made.render, values)


async def entries_shown(here: Seat, entries: list[TranscriptEntry], before: str) -> Response:
    """Entries of a conversation as a script puts them in; above what they stand under is said in a header."""
    talk = TranscriptPage(here.session, entries, before)
    html = await _rendered("entries.html", here=here, talk=talk, to=_linked(here))
    return HTMLResponse(html, headers={"x-before": before})


async def called(here: Seat, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """What a tool of the cluster answers to this person's command; its error is raised."""
    found = await here.client.command(tool, arguments, here.person.user_id, roles=here.person.roles)
    if "error" in found:
        raise ToolError(*(str(found.get(name) or "") for name in ("error", "why", "fix")))
    return found


def _linked(here: Seat) -> Callable[[str], str]:
    """Addresses of views that keep the conversation beside them."""
    if here.own:
        return lambda path: path
    more = f"s={quote(here.session, safe='')}"
    return lambda path: f"{path}{'&' if '?' in path else '?'}{more}"


async def talked(here: Seat, before: str = "") -> TranscriptPage:
    """The newest of the conversation, or what stands before; empty where it cannot be read now."""
    found = await known(transcript(here.client, here.session, before), TranscriptPage(here.session))
    if found.entries and not before:
        for heard in await known(missed(here.client, here.session, here.person.user_id), list[Heard]()):
            here.client.shown(heard)  # it stands in what is shown
    return found


async def known(asked: Awaitable[T], otherwise: T) -> T:
    """What can be known in time."""
    try:
        async with asyncio.timeout(_PATIENCE):
            return await asked
    except (PromptDockError, TimeoutError):
        return otherwise


async def surroundings(here: Seat, tab: str, after: str) -> Around:
    """Who is here, what today cost, what waits."""
    cluster, waiting, (spent, limit), store, title = await asyncio.gather(
        known(_cluster(here.client), None),
        known(inbox.known(here.client, here.person.user_id), []),
        known(_money(here.client), ((0.0, 0, 0), None)),
        status.unreadable(here.client),
        known(listed.title(here.client, here.session), ""),
    )
    agents, demo, model = cluster or ([], not key.is_set(here.client.settings), "")
    return Around(
        *(here.person, here.session, here.own, tab, agents, demo, model, *spent),
        limit=limit,
        waiting=waiting,
        away="" if cluster else status.absence(here.client),
        store=store,
        after=after,
        told=taken(here),
        title=title,
    )


async def _cluster(client: Client) -> tuple[list[AgentHere], bool, str]:
    await client.reach()
    cards = await client.presence.here()
    doing = {one.agent: one for one in reversed(await status.doing(client, cards))}
    names = dict.fromkeys([*_FIRST, *sorted(await client.presence.agents())])
    here = {str(card.get("agent")) for card in cards}
    demo = any(card.get("demo") for card in cards)
    return [_agent(name, name in here, doing.get(name)) for name in names], demo, status.speaks(cards)


_FIRST = ("chatter", "planner", "researcher", "frontend", "backend")


def _agent(name: str, here: bool, working: Working | None) -> AgentHere:
    if not here:
        return AgentHere(name, "offline")
    if working is None:
        return AgentHere(name, "idle")
    waits = bool(working.activity.waits)
    seconds = working.waits if waits else working.seconds
    return AgentHere(name, "waiting" if waits else "working", working.told(200 if waits else 120), seconds)


async def _money(client: Client) -> tuple[tuple[float, int, int], float | None]:
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    cards, limits = await asyncio.gather(budgets.spent(client, "day", midnight), budgets.budgets(client))
    whole = budgets.total(cards)
    spent = (float(whole["cost"]), int(whole["input"]), int(whole["output"]))
    return spent, next((card["budget"] for card in limits if card["scope"] == "day"), None)


# What was done, told once on the page that comes after it.

_telling: dict[str, tuple[float, str, str]] = {}


def tell(how: str, words: str) -> str:
    """Keep it for the next page, and the name by which that finds it."""
    now = time.monotonic()
    for old in [name for name, (at, *_rest) in _telling.items() if now - at > _TOLD]:
        del _telling[old]
    name = secrets.token_urlsafe(9)
    _telling[name] = (now, how, words)
    return name


def taken(here: Seat) -> tuple[str, str]:
    """What the page has to tell."""
    found = _telling.pop(here.request.query_params.get("told", ""), None)
    return (found[1], found[2]) if found else ("", "")


def back(here: Seat, to: str, how: str = "", words: str = "") -> Response:
    """To another address of the page after something was done; the conversation on its left stays."""
    more: dict[str, str] = {}
    if not here.own and not to.startswith("/chat/"):
        more["s"] = here.session
    if words:
        more["told"] = tell(how or "done", words)
    query = "&".join(f"{name}={quote(value, safe='')}" for name, value in more.items())
    fork = "&" if "?" in to else "?"
    return RedirectResponse(f"{to}{fork}{query}" if query else to, 303)


def local(address: str, otherwise: str) -> str:
    """An address of this page; `otherwise` for any other."""
    return address if address.startswith("/") and not address.startswith(("//", "/\\")) else otherwise


def given(form: Mapping[str, Any], name: str, most: int = 20_000) -> str:
    """A field of a form as text."""
    value = form.get(name)
    return value.strip()[:most] if isinstance(value, str) else ""
