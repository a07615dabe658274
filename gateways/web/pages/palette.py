"""What the palette and the composer complete: views, tasks, agents, conversations."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from gateways.web.pages.frame import TABS, Here, known
from gateways.web.render.words import part, state
from shared.client.types import Card
from shared.client.views.conversation import listed as conversations
from shared.client.views.conversation.listed import ConversationCard
from shared.client.views.tasks import tasks

router = APIRouter()
_MOST = 200
_VIEWS = {
    "tasks": "all tasks", "inbox": "what waits for you", "trace": "the last turn", "sessions": "all conversations",
    "notes": "notes of the project", "hooks": "what runs by itself", "memory": "what is remembered",
    "agents": "who is here", "models": "models and keys", "budgets": "what was spent",
    "health": "how the cluster is",
}  # fmt: skip
_COMMANDS = {
    "/new": "another conversation", "/stop": "end the turn that runs", "/force": "words, without validation first",
    "/help": "keys and help",
}  # fmt: skip


@router.get("/palette.json")
async def everything(here: Here) -> Response:
    """Rows of `{kind, name, words, to}`, the newest first within a kind."""
    whose = "" if here.person.owner else here.person.user_id
    listed, talks, agents = await asyncio.gather(
        known(tasks.tasks(here.client, tasks.Filter(limit=_MOST)), list[Card]()),
        known(conversations.recent(here.client, whose), list[ConversationCard]()),
        known(here.client.presence.agents(), list[str]()),
    )
    rows = [
        {"kind": "view", "name": tab.title, "words": f"g {tab.key}", "to": f"/{tab.name}"} for tab in TABS
    ]
    rows += [
        {"kind": "command", "name": f"/{name}", "words": words, "to": f"/{name}"}
        for name, words in _VIEWS.items()
    ]
    rows += [{"kind": "command", "name": name, "words": words, "to": ""} for name, words in _COMMANDS.items()]
    for card in listed:
        if here.person.owner or card["project"] in here.person.projects:
            words = f"{card['title']} · {state(str(card['status']))}"
            rows.append(
                {
                    "kind": "task",
                    "name": str(card["id"]),
                    "words": words,
                    "to": f"/tasks/{part(str(card['id']))}",
                }
            )
    rows += [{"kind": "agent", "name": name, "words": "", "to": f"/agents/{part(name)}"} for name in agents]
    rows += [
        {"kind": "conversation", "name": one.title, "words": one.user, "to": f"/chat/{part(one.key)}"}
        for one in talks
    ]
    return JSONResponse({"rows": rows})
