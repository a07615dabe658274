"""What clients of OpenAI send and read: of it what is honoured, what is told to be ignored, and what is refused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from gateways.web.errors import HttpError

PREFIX = "promptdock/"
_TEXTS = ("text", "input_text", "output_text")
_IGNORED = {
    "tools": "tools of the client are not called: the agents have their own",
    "functions": "functions of the client are not called: the agents have their own tools",
    "max_tokens": "max_tokens is not kept: each agent has its own limit",
    "max_completion_tokens": "max_completion_tokens is not kept: each agent has its own limit",
    "stop": "stop sequences are not looked for",
    "top_p": "top_p is not passed on",
    "seed": "seed is not passed on",
    "presence_penalty": "presence_penalty is not passed on",
    "frequency_penalty": "frequency_penalty is not passed on",
    "logit_bias": "logit_bias is not passed on",
    "reasoning_effort": "reasoning_effort is not passed on: the model's own holds",
}
_REFUSED = {
    "n": (1, "one answer is given"),
    "logprobs": (False, "no agent tells probabilities"),
    "audio": (None, "agents answer in text"),
}


class _Part(BaseModel):
    model_config = ConfigDict(extra="allow")

    type: str
    text: str | None = None


class ChatMessage(BaseModel):
    """One message of the conversation as the client keeps it."""

    model_config = ConfigDict(extra="allow")

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[_Part] | None = None

    @property
    def text(self) -> str:
        """Its words; HttpError for what is no text."""
        if self.content is None or isinstance(self.content, str):
            return self.content or ""
        other = [part.type for part in self.content if part.type not in _TEXTS]
        if other:
            raise HttpError(
                400, f"{other[0][:40]} cannot be read here", "agents read text", "send text parts only"
            )
        return "\n".join(part.text or "" for part in self.content)


class _StreamOptions(BaseModel):
    model_config = ConfigDict(extra="allow")

    include_usage: bool = False


class CompletionRequest(BaseModel):
    """A request for an answer. Further fields are known by name: told as ignored, or refused."""

    model_config = ConfigDict(extra="allow")

    model: Annotated[str, Field(min_length=1, max_length=200)]
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=2000)]
    stream: bool | None = False
    stream_options: _StreamOptions | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    user: Annotated[str, Field(max_length=200)] | None = None
    metadata: dict[str, str] | None = None

    @property
    def agent(self) -> str:
        """Whom the model's name means."""
        return self.model.removeprefix(PREFIX)

    def warnings(self) -> list[str]:
        """What of this request is ignored, in words; HttpError for what cannot be answered as asked."""
        given = {name: value for name, value in (self.model_extra or {}).items() if value is not None}
        for name, (usual, why) in _REFUSED.items():
            if name in given and given[name] != usual:
                raise HttpError(400, f"{name} cannot be honoured", why, f"leave {name} out")
        shape = given.get("response_format")
        if isinstance(shape, dict) and shape.get("type") != "text":
            raise HttpError(
                400, "response_format cannot be honoured", "agents answer in prose", "ask for it in words"
            )
        told = [words for name, words in _IGNORED.items() if given.get(name) not in (None, [], {})]
        if self.user:
            told.append("user is not who speaks: that is whoever the token belongs to")
        return told

    def asked(self) -> tuple[list[ChatMessage], str]:
        """What was said before, and the person's last words."""
        if self.messages[-1].role != "user" or not self.messages[-1].text.strip():
            raise HttpError(
                400, "there is nothing to answer", "the last message is not a user's", "end with one"
            )
        return self.messages[:-1], self.messages[-1].text


def digest(owner: str, model: str, messages: Sequence[tuple[str, str]]) -> str:
    """What tells a conversation, as far as a client keeps it: roles and words, in order."""
    told = json.dumps([owner, model, [(role, text.strip()) for role, text in messages]], ensure_ascii=False)
    return hashlib.sha256(told.encode("utf-8", "replace")).hexdigest()


def pairs(messages: Sequence[ChatMessage]) -> list[tuple[str, str]]:
    """Roles and words."""
    return [(message.role, message.text) for message in messages]


def with_past(before: Sequence[ChatMessage], text: str) -> str:
    """The words, with what went before them in a conversation that the cluster does not know."""
    told = [f"{message.role}: {message.text.strip()}" for message in before if message.text.strip()]
    if not told:
        return text
    return "What went before, as my client tells it:\n\n" + "\n\n".join(told) + f"\n\nNow:\n\n{text}"


def usage_of(usage: dict[str, Any] | None) -> dict[str, Any]:
    """Tokens by the names that these clients know."""
    found = usage or {}
    cached = int(found.get("cache_read") or 0)
    prompt = int(found.get("input") or 0) + cached + int(found.get("cache_write") or 0)
    output = int(found.get("output") or 0)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "total_tokens": prompt + output,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
