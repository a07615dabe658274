"""The messages of the public contract (docs/wire.md): what may come in, and what we send.

`read` of reading.py turns bytes from anywhere into an object that is safe to look at; `human` and `agent` then check
the fields. What cannot be used raises BadMessage, whose words go to the sender.
"""

from __future__ import annotations

import hashlib
import json
import re
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, TypeAlias
from urllib.parse import quote

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)

from shared import people
from shared.bus.images import MAX_IMAGES, Image
from shared.bus.keys import WIRE
from shared.bus.reading import MAX_BYTES
from shared.errors import BadMessage
from shared.plain import complaint
from shared.redaction import redacted

_LONGEST = 200  # characters of an id of a session

Id = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\s\x00-\x1f\x7f]+$")]
Name = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=r"^[a-z0-9][a-z0-9_.-]*$")]
# Inside, one more for who did not sign: shared/people.py.
UserId = Annotated[
    str,
    StringConstraints(
        min_length=1, max_length=201, pattern=r"^(?:\?[^\x00-\x1f\x7f]{1,200}|[^\x00-\x1f\x7f]{1,200})$"
    ),
]
SessionId = Annotated[
    str,
    StringConstraints(min_length=1, max_length=_LONGEST, pattern=r"^[^@\s\x00-\x1f\x7f][^\s\x00-\x1f\x7f]*$"),
]
# A channel of a surface: `discord:123`.
ChannelPlace = Annotated[
    str, StringConstraints(max_length=190, pattern=r"^[a-z][a-z0-9_-]{0,31}:[^\s\x00-\x1f\x7f]{1,150}$")
]
Text = Annotated[str, StringConstraints(max_length=MAX_BYTES)]


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("it is empty")
    return text


Words = Annotated[Text, AfterValidator(_not_blank)]


# Sessions that are a person's by their name; PLAIN is that of a person who does not sign.
OWN, COMMANDS, PLAIN = "user:", "command:", "plain:"
PERSONAL = (OWN, COMMANDS)
TITLES = "title:"  # in which conversations get their titles
RESERVED_SESSIONS = (*PERSONAL, "approval:", "asks:", "apart:", "summary:", "memory:", TITLES)


def default_session(user: str, kind: str = OWN) -> str:
    """A person's session of that kind, where none is named: theirs alone, and an id that a session can have.

    What no id holds (blanks) is written as %20 and the like; what would be too long ends with its digest.
    """
    if not people.signs(user):
        kind, user = PLAIN + kind.removeprefix(OWN).removeprefix(PLAIN), people.called(user)
    escaped = kind + re.sub(r"[%\s]", lambda match: quote(match[0]), user)
    if len(escaped) <= _LONGEST:
        return escaped
    digest = hashlib.sha256(user.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"{escaped[: _LONGEST - len(digest) - 2]}%~{digest}"  # %~ stands in no id that is whole


def in_channel(user: str, channel: str, kind: str = OWN) -> str:
    """A person's session in a channel, where none is named."""
    return default_session(user, f"{'' if kind == OWN else kind}on:{channel}:")


def now() -> str:
    """This moment as the contract writes it: ISO 8601, UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Envelope(BaseModel):
    """What all messages share; unknown fields are kept and passed on."""

    # Built on first use: a process that looks at no message does not wait for them.
    model_config = ConfigDict(
        extra="allow", strict=True, populate_by_name=True, allow_inf_nan=False, defer_build=True
    )

    timestamp: str | None = None
    v: int = WIRE

    @field_validator("timestamp")
    @classmethod
    def _iso(cls, value: str | None) -> str | None:
        if value is not None:
            year = datetime.fromisoformat(value).year
            if not 1970 <= year < 2200:
                raise ValueError("the year is out of range")
        return value

    @field_validator("v")
    @classmethod
    def _known(cls, value: int) -> int:
        if value > WIRE:
            raise ValueError(
                f"version {value} of the envelope is newer than this release, which reads {WIRE}"
            )
        return value


class Human(Envelope):
    """From a person; `session` is where it belongs."""

    user_id: UserId
    id: Id | None = None
    session_id: SessionId | None = None
    user_name: Annotated[str, StringConstraints(max_length=200)] | None = None
    roles: list[str] = []
    shared: bool = False
    deadline: str | None = None

    @property
    def session(self) -> str:
        """The session that it names, else the person's default one."""
        return self.session_id or default_session(self.user_id)


class Placed(Human):
    """From a place of a surface: a channel, a thread of it, a post that it answers (docs/threads.md)."""

    channel: ChannelPlace | None = None
    thread: Annotated[int, Field(ge=1, le=1_000_000)] | None = None  # by its number in the channel
    reply_to: Id | None = None

    @model_validator(mode="after")
    def _in_a_channel(self) -> Placed:
        if not self.channel and (self.thread or getattr(self, "replies", False)):
            raise ValueError("a thread is one of a channel, and no channel is named")
        return self

    @property
    def threaded(self) -> bool:
        """Whether the queue finds its session, which the message does not name."""
        return not self.session_id and bool(self.thread or self.reply_to or getattr(self, "replies", False))

    @property
    def session(self) -> str:
        """In a channel its person has a conversation of that channel."""
        return (
            super().session if self.session_id or not self.channel else in_channel(self.user_id, self.channel)
        )


class Said(Placed):
    """A person's words, and pictures beside them."""

    type: Literal["message"] = "message"
    content: Words
    surface_id: Id | None = None  # under which the surface shows these words
    replies: bool = False  # the surface has replies: what is none begins a thread
    in_reply_to: str | None = None
    project_id: str | None = None
    profile_id: str | None = None
    model: str | None = None
    # Each provider has a bound above.
    temperature: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    use_memory: bool = True
    mode: Literal["simple", "full"] = "simple"
    notes: bool = False
    force: bool = False
    source: str | None = None
    images: Annotated[list[Image], Field(max_length=MAX_IMAGES)] = []


PersonDecision = Literal["allow_once", "always", "deny"]


class ApprovalMessage(Human):
    """A person's answer to a request for permission."""

    type: Literal["approval"]
    approval_id: Id
    decision: PersonDecision
    pattern: str | None = None
    scope: Literal["session", "project", "everywhere"] | None = None
    reason: str | None = None
    arguments_hash: str | None = None


class Amend(Placed):
    """Words for the turn that is running."""

    type: Literal["amend"]
    content: Words
    turn_id: Id | None = None


class Stop(Placed):
    """End a turn, or one request of it; `reason` is for the model that goes on.

    `kill` takes back what waits in its conversation, too.
    """

    type: Literal["stop"]
    kill: bool = False
    turn_id: Id | None = None
    request_id: Id | None = None
    reason: Annotated[str, StringConstraints(max_length=500)] | None = None

    @model_validator(mode="after")
    def _all_or_one(self) -> Stop:
        if self.kill and (self.turn_id or self.request_id):
            raise ValueError("kill ends all of a conversation, and a turn or a request of it is named")
        return self


class CommandMessage(Placed):
    """One tool through the executor of tools."""

    type: Literal["command"]
    tool: str
    arguments: dict[str, Any] = {}
    profile: str | None = None


class Posted(Human):
    """A surface says under which ids it shows an output, so that what replies to one of them finds its conversation.

    It is no turn, and nothing answers it.
    """

    type: Literal["posted"]
    channel: ChannelPlace
    session_id: SessionId
    output: Id
    surface_ids: Annotated[list[Id], Field(min_length=1, max_length=50)]


AnyHuman: TypeAlias = Said | ApprovalMessage | Amend | Stop | CommandMessage | Posted
_HUMAN: TypeAdapter[AnyHuman] = TypeAdapter(
    Annotated[Said | ApprovalMessage | Amend | Stop | CommandMessage | Posted, Field(discriminator="type")],
    config=ConfigDict(defer_build=True),
)

AgentType = Literal["question", "task", "response", "progress", "amend", "cancel", "command", "error"]
REQUESTS = frozenset({"question", "task", "command"})
ANSWERS = frozenset({"response", "error"})
SENDERS = ("system", "operator", "human")  # that no program may claim to be
RESERVED = (*SENDERS, "person", "status")  # what no agent is called: senders, and channels of their own


class AgentMessage(Envelope):
    """Between agents. A `response`, `error` or `progress` carries `payload.request_id`."""

    id: Id
    sender: Name = Field(alias="from")
    to: Name
    type: AgentType
    payload: dict[str, Any] = {}
    patience: float | None = None
    deadline: str | None = None
    hops: Annotated[int, Field(ge=0, le=1000)] = 0
    reply_channel: str | None = None
    traceparent: str | None = None

    @classmethod
    def outgoing(
        cls, id: str, sender: str, to: str, type: AgentType, payload: dict[str, Any], **more: Any
    ) -> AgentMessage:
        """A message of ours, of this moment. Whoever receives it checks it; `more` are its further fields."""
        return cls.model_construct(
            id=id, sender=sender, to=to, type=type, payload=payload, timestamp=now(), v=WIRE, **more
        )

    def fields(self) -> dict[str, Any]:
        """What was set, by the contract's names and in its order."""
        return {
            "from" if name == "sender" else name: getattr(self, name)
            for name in sorted({*self.model_fields_set, *(self.model_extra or ())}, key=_position)
        }

    def to_bytes(self) -> bytes:
        """As it is sent; half a character, which is no text, becomes a question mark."""
        return json.dumps(self.fields(), ensure_ascii=False, default=str).encode("utf-8", "replace")

    @property
    def request_id(self) -> str | None:
        """The request that this answers."""
        value = self.payload.get("request_id")
        return value if isinstance(value, str) and value else None


_ORDER = (
    *("id", "sender", "to", "type", "payload", "timestamp", "patience", "deadline", "hops", "reply_channel"),
    *("traceparent", "on_behalf_of", "origin", "v", "sig", "via"),
)


def _position(name: str) -> tuple[int, str]:
    return (_ORDER.index(name) if name in _ORDER else len(_ORDER)), name


Status = Literal["progress", "awaiting_input", "awaiting_approval", "task_update", "complete", "error"]
CLOSING = frozenset({"complete", "error", "awaiting_input"})
_TEXTS = (
    "content",
    "footer",
    "question",
    "options",
    "approval",
    "task",
    "result",
)  # words of Output that others wrote
ACKNOWLEDGING = frozenset({"cli", "terminal", "web"})  # `source` of the gateways that say what they showed


class Output(Envelope):
    """What the person reads."""

    user_id: str
    content: str
    status: Status
    id: str
    session_id: str
    in_reply_to: str | None = None
    answers: list[str] = []
    channel: str | None = None  # where its conversation is held, if in a channel of a surface
    thread_id: str | None = None  # the number of its thread there
    demo: bool | None = None
    model: str | None = None
    footer: list[str] | None = (
        None  # beside the answer: another model that answered, a wish it could not heed
    )
    agent: str | None = None  # who answered, where that was not Chatter
    question: str | None = None
    options: list[str] | None = None
    approval: dict[str, Any] | None = None
    task: dict[str, Any] | None = None
    result: dict[str, Any] | None = None
    usage: dict[str, Any] | None = None
    code: int | None = None
    via: str | None = None
    unsigned: bool | None = None  # nobody of the cluster signed it; who shows it says so

    def disowned(self) -> Output:
        """As of who did not sign: a request for permission would be taken for the cluster's of that id."""
        asks = {"status": "progress", "approval": None, "options": None}
        return self.model_copy(
            update={"unsigned": True, **(asks if self.approval or self.status == "awaiting_approval" else {})}
        )

    def text(self, via: str) -> str:
        """As it is sent on the channel `via`, without secrets."""
        clean = {name: redacted(value) for name in _TEXTS if (value := getattr(self, name)) is not None}
        clean["user_id"] = people.called(self.user_id)
        stamped = self.model_copy(update={**clean, "via": via, "timestamp": self.timestamp or now()})
        return stamped.model_dump_json(exclude_none=True)


_KINDS = (
    "message",
    "approval",
    "amend",
    "stop",
    "command",
    "posted",
)  # of a person's message: no part of a place


def _complaints(error: ValidationError) -> str:
    seen = []
    for item in error.errors(include_url=False, include_input=False)[:4]:
        place = ".".join(str(part) for part in item["loc"] if part not in _KINDS)
        seen.append(f"{place or 'message'}: {complaint(item)}")
    return "; ".join(seen)


_QUESTION = (
    'send e.g. {"from": "me", "to": "planner", "type": "question", "payload": {"question": "Which way?"}}'
)


def human(value: dict[str, Any]) -> AnyHuman:
    """A person's message; without a type it is words."""
    try:
        return _HUMAN.validate_python({"type": "message"} | value)
    except ValidationError as error:
        raise BadMessage(
            "the message cannot be understood",
            _complaints(error),
            'send e.g. {"user_id": "ada", "content": "Hello"}',
        ) from None


def _asks(payload: dict[str, Any]) -> bool:
    question = payload["question"] if "question" in payload else payload.get("command_file")
    return isinstance(question, str) and bool(question.strip())


def agent(value: dict[str, Any]) -> AgentMessage:
    """A message between agents."""
    try:
        message = AgentMessage.model_validate(value)
    except ValidationError as error:
        raise BadMessage("the message cannot be understood", _complaints(error), _QUESTION) from None
    if message.type in ANSWERS | {"progress", "cancel"} and message.request_id is None:
        raise BadMessage(f"a {message.type} must say what it answers", "payload.request_id is missing")
    if message.type == "question" and not _asks(message.payload):
        raise BadMessage("a question must ask something", "payload.question is no text, or empty", _QUESTION)
    if message.sender in SENDERS:
        raise BadMessage("the sender cannot be taken", f"the name {message.sender!r} is reserved")
    return message


def deadline_ms(iso: str | None) -> int:
    """Milliseconds of a deadline since 1970, 0 for none; BadMessage where it is no time."""
    if iso is None:
        return 0
    try:
        moment = datetime.fromisoformat(iso)
    except ValueError:
        raise BadMessage(
            "the deadline is not a time", "it must be ISO 8601", "e.g. 2030-01-31T12:00:00Z"
        ) from None
    # Before 1970 is long ago too: 0 and less mean something else.
    return max(1, int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000))
