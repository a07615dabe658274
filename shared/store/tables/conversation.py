"""What was said."""

# ruff: noqa: RUF012 - pydantic copies a mutable default for each row
from __future__ import annotations

from typing import Literal
from uuid import UUID

from pydantic import Field

from shared.store.row import Changing, Json, Row, Time, Whole, now


class Message(Row):
    """One message that passed on the bus; `id` is derived from `message_id`."""

    table = "messages"
    index = (("created_at",), ("session_id", "created_at"), ("request_id",), ("message_id",))

    message_id: str | None = None
    from_agent: str
    to_agent: str
    type: str
    payload: Json = {}
    channel: str = ""
    session_id: str | None = None
    turn_id: str | None = None
    request_id: str | None = None
    user_id: str | None = None


class Post(Row):
    """Under which id a surface shows a message or an output; `id` is derived from channel and `surface_id`.

    What was reported `signed`, by a gateway of ours, is found by nobody else's replies, and the other way about.
    """

    table = "posts"
    index = (("created_at",), ("channel", "surface_id"))

    channel: str
    surface_id: str
    session_id: str
    message_id: str = ""
    signed: bool = False


class ConversationMessage(Row):
    """One message of a conversation as the model reads it; `seq` has no gaps within a session."""

    table = "conversation_messages"
    searched = ("user_name", "content")
    scopes = ("session_id",)
    unique = (("session_id", "seq"),)
    index = (("session_id", "created_at"), ("source_message_id",))

    session_id: str
    seq: Whole
    thread_id: str | None = None
    turn_id: str | None = None
    role: Literal["user", "assistant", "tool", "system"]
    content: list[Json] = []
    tool_calls: list[Json] = []
    tool_call_id: str | None = None
    user_id: str | None = None
    user_name: str | None = None
    source: str | None = None
    source_message_id: str | None = None
    said_at: Time | None = None  # of what came from another conversation or a file: when it was said there


class Session(Changing):
    """A conversation; its `key` is the `session_id` of messages.

    The window begins behind message `clear_seq`, and after `clear_at`. `channel` and `number` are its place among the
    threads of a surface; `titled` says whose the title is, and a person's stays.
    """

    table = "sessions"
    unique = (("key",),)
    index = (("user_id", "last_active_at"), ("last_active_at",))

    key: str
    user_id: str | None = None
    agent: str = "chatter"
    project_id: UUID | None = None
    channel: str | None = None
    active_project: UUID | None = None
    clear_at: Time | None = None
    title: str = ""
    last_active_at: Time = Field(default_factory=now)
    origin: Json = {}
    clear_seq: Whole = 0
    talked: bool = False  # something was said since the window began
    titled: Literal["words", "model", "person"] = "words"
    archived: bool = False
    number: Whole | None = None


class SnapshotRow(Row):
    """A window that was saved, or the summary of the messages `first_seq` to `last_seq` of a session."""

    table = "snapshots"
    index = (("session_id", "created_at"),)

    session_id: str
    agent: str = "chatter"
    kind: Literal["saved", "summary"] = "saved"
    user_id: str | None = None
    description: str = ""
    summary: str = ""
    message_count: Whole = 0
    first_seq: Whole | None = None
    last_seq: Whole | None = None
    content: list[Json] = []
    tool_calls: Whole = 0  # how many stand in `content`
    origin: Json = {}
