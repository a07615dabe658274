"""Talking: one message and its answer, whole or as a stream."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from fastapi.sse import format_sse_event
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request

from gateways.web.access import Line, Person, Visitor
from gateways.web.errors import HttpError
from gateways.web.events import COMMENT, EVERY, EventStream, data_of
from shared.bus.images import MAX_IMAGES, Image
from shared.bus.messages import SessionId, Words
from shared.client.client import Client
from shared.client.turn import Asking, TurnEvent, converse
from shared.client.types import Sent
from shared.client.views import status, visible

router = APIRouter(prefix="/api/agent", tags=["chat"])

# What an error at the end of a turn is over HTTP, by the exit code that it has for a command.
_NUMBERS = {2: 422, 3: 503, 4: 503, 5: 504, 6: 403}


class ChatRequest(BaseModel):
    """A person's message."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=())

    message: Words
    session_id: SessionId | None = Field(None, description="The conversation; none begins a new one.")
    model: Annotated[str, Field(max_length=200)] | None = Field(
        None, description="Another model than the set one."
    )
    profile_id: Annotated[str, Field(max_length=200)] = Field(
        "default", description="The profile to answer by."
    )
    temperature: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = Field(
        None, description="How freely it chooses words, within the bounds of the model's provider."
    )
    use_memory: bool = Field(True, description="Recall what is remembered, and remember this.")
    project_id: Annotated[str, Field(max_length=200)] | None = Field(
        None, description="The project to work on."
    )
    force: bool = Field(False, description="Also what would be asked back first.")
    images: Annotated[list[Image], Field(max_length=MAX_IMAGES)] = Field(
        [], description="Pictures as base64: PNG, JPEG, GIF or WebP, 176 KB together."
    )

    def question(self, person: Person, mode: Literal["simple", "full"] = "simple") -> Asking:
        """As it is said on the bus."""
        named = {"session": self.session_id} if self.session_id else {}
        return Asking(
            self.message,
            person.user_id,
            **named,
            roles=person.roles,
            model=self.model,
            profile_id=None if self.profile_id == "default" else self.profile_id,
            temperature=self.temperature,
            use_memory=self.use_memory,
            mode=mode,
            project_id=self.project_id,
            force=self.force,
            images=[image.model_dump() for image in self.images],
        )


class ChatAnswer(BaseModel):
    """The answer, whole. `status` is `awaiting_input` where it is a question back, which the next message answers."""

    model_config = ConfigDict(protected_namespaces=())

    answer: str
    thinking: str
    has_thinking: bool
    session_id: str
    task_id: str
    model: str | None
    usage: dict[str, Any] | None
    total_time_ms: int
    status: str = "complete"
    question: str | None = None
    options: list[str] | None = None
    demo: bool = False
    stopped: bool = False


@router.post("/chat")
async def chat(asked: ChatRequest, request: Request, client: Line, visitor: Visitor) -> ChatAnswer:
    """Say it and await the answer."""
    return await _whole(request, client, visitor, asked.question(visitor))


@router.post("/run")
async def run(asked: ChatRequest, request: Request, client: Line, visitor: Visitor) -> ChatAnswer:
    """The same in full mode: taken apart, with a strategy chosen, then carried out."""
    return await _whole(request, client, visitor, asked.question(visitor, "full"))


@router.post("/chat/stream", response_class=EventStream)
async def stream(asked: ChatRequest, request: Request, client: Line, visitor: Visitor) -> EventStream:
    """Say it; `start chunk thinking tool_call tool_result consult approval progress` as they come, then `done` or
    `error`, in every case. The chunks, joined, are the answer. Whoever leaves does not end the work.
    """
    events = await opened(request, client, visitor, asked.question(visitor))
    return EventStream(_lines(events))


async def opened(
    request: Request, client: Client, person: Person, question: Asking
) -> AsyncIterator[TurnEvent]:
    """What comes of it, once it is accepted; what is refused is raised here, before an answer begins."""
    await visible.session(client, person.sight, question.session)
    events = converse(client, request.app.state.hub, question)
    first = await anext(events)
    sent = Sent(question.id, first.payload["outcome"], first.payload["waiting"])
    if unread := await status.unread(client, sent):
        first.payload["unread"] = unread
    return _after(first, events)


async def begun(events: AsyncGenerator[TurnEvent, None]) -> AsyncIterator[TurnEvent]:
    """The events, of which the first has come."""
    return _after(await anext(events), events)


async def _after(first: TurnEvent, events: AsyncGenerator[TurnEvent, None]) -> AsyncIterator[TurnEvent]:
    try:
        yield first
        async for event in events:
            yield event
    finally:
        await events.aclose()


async def _whole(request: Request, client: Client, person: Person, question: Asking) -> ChatAnswer:
    return answer_of(await last(await opened(request, client, person, question), request))


async def last(events: AsyncIterator[TurnEvent], request: Request) -> TurnEvent:
    """The event that ends it. Who went away is not waited for."""
    found = TurnEvent("error", {"error": "nothing came", "code": 1})
    async for event in events:
        found = event
        if event.kind == "idle" and await request.is_disconnected():
            raise HttpError(499, "the caller went away", "", "the answer is kept in its session")
    return found


def answer_of(ended: TurnEvent) -> ChatAnswer:
    """What a turn ended with; HttpError where that is an error."""
    if ended.kind != "done":
        words, code = str(ended.payload["error"]), int(ended.payload.get("code") or 1)
        session = str(ended.payload.get("session_id", ""))
        raise HttpError(_NUMBERS.get(code, 502), words, "", "", {"X-Session-Id": session} if session else {})
    return ChatAnswer.model_validate({name: ended.payload[name] for name in _told(ended)})


def _told(ended: TurnEvent) -> list[str]:
    return [name for name in ChatAnswer.model_fields if name in ended.payload]


async def _lines(events: AsyncIterator[TurnEvent]) -> AsyncIterator[bytes]:
    quiet = time.monotonic()
    async for event in events:
        if event.kind != "idle":
            yield format_sse_event(event=event.kind, data_str=data_of(event.payload))
        elif time.monotonic() - quiet < EVERY:
            continue
        else:
            yield COMMENT
        quiet = time.monotonic()
