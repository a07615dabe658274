"""What an agent does now: one for each turn that it holds, under `doing` in its presence card."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from shared.redaction import redacted

_WORDS = 200  # characters of a title, and of what is done
# The arguments that say best what a call is about, the first that is there.
_TELLING = (
    "command", "path", "query", "pattern", "question", "url", "title", "name", "task_id", "agent", "content",
)  # fmt: skip


def act(kind: str, payload: Mapping[str, Any]) -> str:
    """A live event as what is done in it: `bash: python -m unittest`; "" for what tells nothing."""
    match kind:
        case "tool_call" | "tool_result":
            detail = _telling(payload.get("arguments"))
            return f"{payload.get('tool', '')}: {detail}" if detail else str(payload.get("tool", ""))
        case "consult":
            return f"asks {payload.get('agent', '')}" if payload.get("state") in ("sent", "working") else ""
        case "checks":
            commands = payload.get("commands")
            named = [str(one) for one in commands] if isinstance(commands, list) else []
            return f"checks: {'; '.join(named)}"[:_WORDS]
        case "waiting" | "silent":
            return f"waits for the model's provider: {payload.get('content', '')}".strip(": ")[:_WORDS]
    return {"thinking": "thinks", "chunk": "writes"}.get(kind, "")


def _telling(arguments: object) -> str:
    if not isinstance(arguments, Mapping):
        return ""
    named = [arguments[name] for name in _TELLING if arguments.get(name)]
    texts = named or [value for value in arguments.values() if isinstance(value, str) and value]
    return " ".join(str(texts[0]).split())[:_WORDS] if texts else ""


def stream_of(agent: str, session: str) -> str:
    """The session whose live events are those of a request that an agent works on."""
    return f"{agent}:{session}"[:200]


@dataclass
class Activity:
    """Times are milliseconds since 1970, by the server's clock. All but `turn` and `since` may be unknown."""

    turn: str
    since: int
    kind: str = ""  # message, question or task
    task: str = ""
    title: str = ""
    session: str = ""  # the conversation for which it is done
    user: str = ""  # and its person
    events: str = ""  # the session whose live events tell more
    act: str = ""  # what was done last
    waits: str = ""  # why nothing is done: the model's provider makes it wait
    waits_since: int = 0

    def __post_init__(self) -> None:
        self._made = time.monotonic()

    def take(self, kind: str, payload: Mapping[str, Any]) -> None:
        """A live event of the turn."""
        if kind == "tool_result" or not (text := act(kind, payload)):
            return
        self.act = text
        if kind not in ("waiting", "silent"):
            self.waits, self.waits_since = "", 0
            return
        self.waits = str(payload.get("content") or "")
        # `since` is the server's time, and was now when this was made
        self.waits_since = self.waits_since or self.since + int((time.monotonic() - self._made) * 1000)

    def card(self) -> dict[str, Any]:
        """As it is published, without secrets."""
        card: dict[str, Any] = redacted({key: value for key, value in asdict(self).items() if value})
        texts = {name: str(card.get(name, ""))[:_WORDS] for name in ("title", "act")}
        return card | texts | ({"waits": card["waits"][:_WORDS]} if "waits" in card else {})

    @classmethod
    def of(cls, value: object) -> Activity | None:
        """As it came, from whomever: what is no text where a text belongs is left out."""
        if not isinstance(value, Mapping) or not isinstance(value.get("turn"), str):
            return None
        since, waits_since = value.get("since"), value.get("waits_since")
        texts = {
            field.name: value[field.name]
            for field in fields(cls)
            if field.name not in ("since", "waits_since") and isinstance(value.get(field.name), str)
        }
        return cls(
            since=since if isinstance(since, int) else int(time.time() * 1000),
            waits_since=waits_since if isinstance(waits_since, int) else 0,
            **texts,
        )

    @property
    def about(self) -> str:
        """What it is, in words: `neat-cloud Add a greeting module`."""
        who = f"a {self.kind or 'message'} of {self.user}" if self.user else ""
        return f"{self.task} {self.title}".strip() or who or self.turn


def doing(card: Mapping[str, Any]) -> list[Activity]:
    """What a presence card says that its agent does; of a release before, the names of its turns alone."""
    listed = card.get("doing")
    if isinstance(listed, list):
        return [activity for one in listed[:20] if (activity := Activity.of(one))]
    current = card.get("current")
    now = int(time.time() * 1000)
    return (
        [Activity(turn, now) for turn in current.split(", ")] if isinstance(current, str) and current else []
    )
