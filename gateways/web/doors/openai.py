"""/v1: agents as models, for any client of OpenAI. An ordinary visitor: its words go to Chatter, or to one agent."""

from __future__ import annotations

import asyncio
import json
import time
from collections import OrderedDict
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from fastapi import APIRouter
from fastapi.sse import format_sse_event
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from gateways.web import errors
from gateways.web.access import Line, Person, Visitor
from gateways.web.api.chat import answer_of, last, opened
from gateways.web.calls import call
from gateways.web.doors.openai_messages import (
    PREFIX,
    CompletionRequest,
    digest,
    pairs,
    usage_of,
    with_past,
)
from gateways.web.errors import HttpError
from gateways.web.events import COMMENT, EVERY, EventStream
from shared.client.client import Client
from shared.client.turn import Asking, TurnEvent
from shared.client.views import agents
from shared.client.views.questions import numbered
from shared.errors import PromptDockError

router = APIRouter(prefix="/v1", tags=["OpenAI"])
CHATTER = "chatter"
_KNOWN = 10_000  # conversations whose sessions are remembered
_SESSION = "X-Session-Id"


@dataclass
class _Conversations:
    """Which session a client's conversation is: clients send all of it each time, and no name."""

    _known: OrderedDict[str, str] = field(default_factory=OrderedDict)

    def find(self, key: str) -> str | None:
        return self._known.get(key)

    def keep(self, key: str, session: str) -> None:
        self._known[key] = session
        self._known.move_to_end(key)
        if len(self._known) > _KNOWN:
            self._known.popitem(last=False)


@dataclass(frozen=True)
class _Completion:
    """One request as it is answered."""

    request: CompletionRequest
    person: Person
    asking: Asking
    warnings: list[str]
    conversations: _Conversations
    id: str = field(default_factory=lambda: f"chatcmpl-{uuid4().hex}")
    created: int = field(default_factory=lambda: int(time.time()))

    def head(self, kind: str) -> dict[str, Any]:
        more = {"warnings": self.warnings} if self.warnings else {}
        return {"id": self.id, "object": kind, "created": self.created, "model": self.request.model, **more}

    def remember(self, answer: str) -> None:
        """What the client sends next begins with this."""
        said = [*pairs(self.request.messages), ("assistant", answer)]
        key = digest(self.person.user_id, self.request.model, said)
        self.conversations.keep(key, self.asking.session)


@router.get("/models")
async def models(client: Line, _visitor: Visitor) -> dict[str, Any]:
    """The agents that are here, as models."""
    names = [one.name for one in await agents.known(client) if one.state != "offline"]
    return {"object": "list", "data": [_model(name) for name in sorted({CHATTER, *names})]}


@router.get("/models/{name:path}")
async def model(name: str, client: Line, _visitor: Visitor) -> dict[str, Any]:
    """One of them."""
    await _check_agent(client, name.removeprefix(PREFIX))
    return _model(name.removeprefix(PREFIX))


def _model(name: str) -> dict[str, Any]:
    return {"id": f"{PREFIX}{name}", "object": "model", "created": 0, "owned_by": "promptdock"}


@router.post("/chat/completions")
async def completions(asked: CompletionRequest, request: Request, client: Line, visitor: Visitor) -> Response:
    """An answer of Chatter, or of the agent that the model names. Who breaks off ends the work.

    `X-Session-Id` (or `metadata.session_id`) names the conversation; without it, it is known by what was said in it.
    """
    warnings = asked.warnings()
    conversations = _conversations(request)
    before, text = asked.asked()
    session, known = _session(request, asked, visitor, conversations)
    text = text if known or not before else with_past(before, text)
    asking = Asking(
        text, visitor.user_id, session, roles=visitor.roles, source="openai", temperature=asked.temperature
    )
    completion = _Completion(asked, visitor, asking, warnings, conversations)
    if asked.agent != CHATTER:
        await _check_agent(client, asked.agent)
        return await _of_agent(completion, client)
    events = await opened(request, client, visitor, asking)
    headers = {_SESSION: session}
    if asked.stream:
        response = EventStream(_until_left(completion, client, events))
        response.headers.update(headers)
        return response
    try:
        ended = await last(events, request)
    except HttpError as error:
        if error.status == 499:
            await client.stop(visitor.user_id, session, asking.id)
        raise
    answer = answer_of(ended)
    said = answer.answer + _options(ended)
    completion.remember(said)
    return JSONResponse(_whole(completion, said, answer.thinking, usage_of(answer.usage)), headers=headers)


def _conversations(request: Request) -> _Conversations:
    state = request.app.state
    if not hasattr(state, "openai"):
        state.openai = _Conversations()
    found = state.openai
    assert isinstance(found, _Conversations)
    return found


def _session(
    request: Request, asked: CompletionRequest, person: Person, known: _Conversations
) -> tuple[str, bool]:
    """The session, and whether what was said before is known there."""
    named = request.headers.get(_SESSION) or (asked.metadata or {}).get("session_id")
    if named:
        return named, True
    before = asked.messages[:-1]
    found = known.find(digest(person.user_id, asked.model, pairs(before))) if before else None
    return (found, True) if found else (str(uuid4()), False)


async def _check_agent(client: Client, name: str) -> None:
    names = sorted(one.name for one in await agents.known(client))
    if name not in names:
        there = ", ".join(PREFIX + one for one in names)
        raise HttpError(
            404, f"there is no model {name[:100]!r}", f"there are: {there}", "name one of them", field="model"
        )


async def _of_agent(completion: _Completion, client: Client) -> Response:
    """One agent is asked as Chatter asks it, through the same door."""
    asking, name = completion.asking, completion.request.agent
    consulting = call(
        client, completion.person, "consult_agent", {"agent": name, "question": asking.text}, patience=300.0
    )
    if completion.request.stream:
        return EventStream(_consulted(completion, consulting))
    answer = _said(await consulting)
    return JSONResponse(_whole(completion, answer, "", usage_of(None)))


def _said(result: dict[str, Any]) -> str:
    told = result.get("answer", result)
    return told if isinstance(told, str) else json.dumps(told, ensure_ascii=False, indent=2)


def _whole(completion: _Completion, answer: str, thinking: str, usage: dict[str, Any]) -> dict[str, Any]:
    message = {"role": "assistant", "content": answer, "refusal": None}
    message |= {"reasoning_content": thinking} if thinking else {}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    return {**completion.head("chat.completion"), "choices": [choice], "usage": usage}


def _options(ended: TurnEvent) -> str:
    options = ended.payload.get("options") or []
    return "\n\n" + "\n".join(line.strip() for line in numbered(options)) if options else ""


async def _consulted(completion: _Completion, consulting: Any) -> AsyncIterator[bytes]:
    work = asyncio.ensure_future(consulting)
    try:
        yield _piece(completion, {"role": "assistant", "content": ""})
        while not work.done():
            await asyncio.wait({work}, timeout=EVERY)
            if not work.done():
                yield COMMENT
        try:
            yield _piece(completion, {"content": _said(work.result())})
        except PromptDockError as error:
            yield _data({"error": errors.openai(error)})
        else:
            yield _piece(completion, {}, "stop")
        yield format_sse_event(data_str="[DONE]")
    finally:
        work.cancel()


async def _until_left(
    completion: _Completion, client: Client, events: AsyncIterator[TurnEvent]
) -> AsyncIterator[bytes]:
    """The stream; who leaves before its end does not want the rest, and the turn is stopped."""
    ended = False
    try:
        async for data in _pieces(completion, events):
            yield data
        ended = True
    finally:
        if not ended:
            asking = completion.asking
            stopping = asyncio.ensure_future(client.stop(asking.user_id, asking.session, asking.id))
            stopping.add_done_callback(lambda done: done.cancelled() or done.exception())


async def _pieces(completion: _Completion, events: AsyncIterator[TurnEvent]) -> AsyncIterator[bytes]:
    yield _piece(completion, {"role": "assistant", "content": ""})
    said, quiet = "", time.monotonic()
    async for event in events:
        match event.kind:
            case "chunk":
                said += event.payload["content"]
                yield _piece(completion, {"content": event.payload["content"]})
            case "thinking":
                yield _piece(completion, {"reasoning_content": event.payload.get("content", "")})
            case "approval":
                asks = f"\n\n> {event.payload['content']}\n> Answer on the page or in the terminal.\n\n"
                said += asks
                yield _piece(completion, {"content": asks})
            case "done":
                if more := _options(event):
                    said += more
                    yield _piece(completion, {"content": more})
                completion.remember(said)
                yield _piece(completion, {}, "stop")
                options = completion.request.stream_options
                if options and options.include_usage:
                    yield _usage(completion, usage_of(event.payload.get("usage")))
            case "error":
                yield _error(str(event.payload["error"]))
            case _:
                if time.monotonic() - quiet > EVERY:
                    yield COMMENT
                else:
                    continue
        quiet = time.monotonic()
    yield format_sse_event(data_str="[DONE]")


def _piece(completion: _Completion, delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
    return _data({**completion.head("chat.completion.chunk"), "choices": [choice]})


def _usage(completion: _Completion, usage: dict[str, Any]) -> bytes:
    return _data({**completion.head("chat.completion.chunk"), "choices": [], "usage": usage})


def _error(words: str) -> bytes:
    return _data({"error": {"message": words, "type": "server_error", "param": None, "code": None}})


def _data(value: dict[str, Any]) -> bytes:
    return format_sse_event(data_str=json.dumps(value, ensure_ascii=False))
